"""What kind of change stands between two prompts, at their first difference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.diagnosis.alignment import Parting, Remains
from hotprefix.diagnosis.call_change import call_path, calls_in, rewritten_call
from hotprefix.diagnosis.reason import Reason
from hotprefix.diagnosis.snapshot import ANSWER, PromptSnapshot, SnapshotBlock
from hotprefix.diagnosis.text import common_length, differs_in_space_only
from hotprefix.diagnosis.tool_change import tool_change
from hotprefix.diagnosis.toolset import ToolSet
from hotprefix.diagnosis.volatile import Volatile, volatile_kind

_SYSTEM = ("system", "developer")
_IMAGE = re.compile(r"^\s*(?:data:image/|<\|?(?:image|vision)|\{\"(?:type\":\s*\"image|image))")
_MESSAGE = re.compile(r"^\w+\[(\d+)\]")
_SEPARATORS = ("", "\n", "\n\n", " ")


@dataclass(frozen=True, slots=True)
class Case:
    """Two prompts and the two blocks in which they first differ."""

    old: PromptSnapshot
    new: PromptSnapshot
    before: SnapshotBlock
    after: SnapshotBlock
    at: Parting


@dataclass(frozen=True, slots=True)
class Verdict:
    """The kind of change. `says_the_same`: only bytes differ, so nothing of the block need be lost."""

    reason: Reason
    path: str
    detail: str = ""
    subject: str = ""
    says_the_same: bool = False


def classify(
    case: Case,
    olds: Sequence[SnapshotBlock],
    news: Sequence[SnapshotBlock],
    rest: Remains,
    parameter: str,
) -> Verdict:
    """Name the change at the first difference. `parameter` is one that has changed, if any."""
    tools = _tools(case)
    if tools is not None:
        return tools
    before, after = case.before, case.after
    has_same_text = before.body.text_digest == after.body.text_digest
    if before.role == after.role and (has_same_text or before.path == ANSWER or _is_in_lead(case, parameter)):
        return _rendering(case, parameter, has_same_text)
    if before.path == ANSWER:
        return _answer(case)
    first = rest.steps[0]
    if first.kind == "delete":
        return _vanished(case, olds, rest)
    if first.kind == "insert":
        return Verdict(Reason.BLOCK_INSERTED, after.path, _label(after), after.role)
    if has_same_text:
        return Verdict(Reason.ROLE_CHANGED, after.path, f"{before.role}→{after.role}", after.role)
    return _merged(case, olds, news) or _edited(case)


def _tools(case: Case) -> Verdict | None:
    """The tools, if they changed and stand where the prompts part."""
    leads = case.before.body.lead, case.after.body.lead
    is_tool_block = any(block.path.startswith("tools") for block in (case.before, case.after))
    change = tool_change(case.old.tools, case.new.tools)
    if change is None:
        if is_tool_block and case.before.path == case.after.path:
            return Verdict(Reason.TOOLS_CHANGED, case.after.path)
        return None
    shown = _shows(leads[0], case.old.tools) or _shows(leads[1], case.new.tools)
    if not is_tool_block and not (case.before.body.lead_digest != case.after.body.lead_digest and shown):
        return None
    says_the_same = change.reason is not Reason.TOOLS_CHANGED
    return Verdict(change.reason, change.path, change.detail, change.tool, says_the_same)


def _shows(lead: str, tools: ToolSet) -> bool:
    return any(f'"{tool.name}"' in lead for tool in tools.tools if tool.name)


def _is_in_lead(case: Case, parameter: str) -> bool:
    """Whether a changed parameter shows in the template's text before the block's own."""
    before, after = case.before.body, case.after.body
    if not parameter or before.is_altered or after.is_altered:
        return False
    return common_length(before.rendered, after.rendered) < min(len(before.lead), len(after.lead))


def _rendering(case: Case, parameter: str, has_same_text: bool) -> Verdict:
    """The client sent the same text; the template or the tokenizer made something else of it."""
    before, after = case.before.body, case.after.body
    if case.before.path == ANSWER and not has_same_text and before.lead_digest == after.lead_digest:
        return _answer(case)
    call = _call(case)
    if call is not None:
        return call
    if parameter:
        return Verdict(Reason.PARAM_CHANGED, f"parameters.{parameter}", parameter, parameter)
    if before.lead_digest == after.lead_digest and not before.is_altered:
        return Verdict(Reason.RETOKENISED, case.after.path, says_the_same=True)
    if case.before.path == ANSWER:
        return Verdict(Reason.GENERATION_PROMPT, case.after.path)
    if _lost_a_message(case):
        return Verdict(Reason.HISTORY_EDITED, case.after.path, _label(case.after), case.after.role)
    at = common_length(before.rendered, after.rendered)
    kind = volatile_kind(before.rendered, after.rendered, at)
    detail = "" if kind is Volatile.OTHER else str(kind)
    return Verdict(Reason.EXPECTED_TEMPLATE, case.after.path, detail)


def _lost_a_message(case: Case) -> bool:
    """Whether a message without content of its own, such as one of tool calls, changed or went."""
    one, other = _MESSAGE.match(case.before.path), _MESSAGE.match(case.after.path)
    if one and other and one.group(1) != other.group(1):
        return True
    return calls_in(case.before.body.lead) != calls_in(case.after.body.lead)


def _answer(case: Case) -> Verdict:
    """The model's answer comes back as something else than what it was."""
    before, after = case.before.body, case.after.body
    _thought, mark, said = before.text.rpartition("</think>")
    if mark and said.strip() == after.text.strip():
        return Verdict(Reason.EXPECTED_TEMPLATE, case.after.path, "THOUGHTS_DROPPED")
    call = _call(case)
    if call is not None:
        return call
    return _edited(case)


def _call(case: Case) -> Verdict | None:
    before, after = case.before.body, case.after.body
    index = rewritten_call(before.rendered, after.rendered)
    if index is None:
        return None
    is_in_lead = "<tool_call>" in after.lead and case.after.role != "assistant"
    path = call_path(case.after.path, index, of_message_before=is_in_lead)
    if differs_in_space_only(before.rendered, after.rendered):
        return Verdict(Reason.WHITESPACE_ONLY, path, says_the_same=True)
    return Verdict(Reason.ARG_KEY_ORDER, path, says_the_same=True)


def _vanished(case: Case, olds: Sequence[SnapshotBlock], rest: Remains) -> Verdict:
    gone = rest.steps[0]
    before = case.before
    if _is_head(case, olds, gone.old_to, rest):
        return Verdict(Reason.HEAD_TRIMMED, case.after.path, str(gone.old_to - gone.old_from))
    return Verdict(Reason.BLOCK_VANISHED, before.path, _label(before), before.role)


def _is_head(case: Case, olds: Sequence[SnapshotBlock], removed: int, rest: Remains) -> bool:
    """Whether the oldest turns were cut off: all that is left of the old prompt begins the new one.

    A single block beside another one of the same role is no turn, but a reminder.
    """
    start = case.at.old_block
    if any(block.role not in _SYSTEM for block in olds[:start]) or case.before.role in _SYSTEM:
        return False
    kept = rest.steps[1] if len(rest.steps) > 1 else None
    if kept is None or kept.kind != "equal":
        return False
    left_over = [b for b in olds[start + kept.old_to :] if b.path != ANSWER]
    is_reminder = removed == 1 and olds[start + 1].role == case.before.role
    return not left_over and not is_reminder


def _merged(case: Case, olds: Sequence[SnapshotBlock], news: Sequence[SnapshotBlock]) -> Verdict | None:
    """Whether two blocks became one, or one became two, with the same words."""
    before = [block.body.text for block in olds[case.at.old_block :][:2]]
    after = [block.body.text for block in news[case.at.block :][:2]]
    for separator in _SEPARATORS:
        if len(before) == 2 and before[1] and separator.join(before) == after[0]:
            return Verdict(Reason.ROLE_CHANGED, case.after.path, "MERGED", case.after.role)
        if len(after) == 2 and after[1] and separator.join(after) == before[0]:
            return Verdict(Reason.ROLE_CHANGED, case.after.path, "SPLIT", case.after.role)
    return None


def _edited(case: Case) -> Verdict:
    before, after = case.before.body, case.after.body
    if (_IMAGE.match(before.text) or _IMAGE.match(after.text)) and case.before.role == case.after.role:
        return Verdict(Reason.IMAGE_REPLACED, case.after.path)
    call = _call(case)
    if call is not None:
        return call
    if before.is_complete and after.is_complete and differs_in_space_only(before.text, after.text):
        return Verdict(Reason.WHITESPACE_ONLY, case.after.path, says_the_same=True)
    at = common_length(before.text, after.text)
    kind = volatile_kind(before.text, after.text, at)
    if case.before.role in _SYSTEM and case.after.role in _SYSTEM:
        return Verdict(Reason.SYSTEM_CHANGED, case.after.path, str(kind))
    detail = _label(case.after) if kind is Volatile.OTHER else str(kind)
    return Verdict(Reason.HISTORY_EDITED, case.after.path, detail, case.after.role)


def _label(block: SnapshotBlock) -> str:
    return block.role
