"""A small world for diagnoses: a real chat template and spans, a word tokenizer, an ideal cache."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hotprefix.base.clock import ManualClock
from hotprefix.diagnosis.explain import explain
from hotprefix.diagnosis.facts import EXPLICIT, IMPLICIT, CacheRules, MissFacts, StoreFacts
from hotprefix.diagnosis.memory import SnapshotMemory
from hotprefix.diagnosis.reason import MissReport
from hotprefix.diagnosis.snapshot import PromptSnapshot, SnapshotExtras, take_snapshot
from hotprefix.prompt.spanning import block_ends
from hotprefix.prompt.spans import BlockSpan, ContentBlock, SpannedPrompt
from hotprefix.prompt.template import JinjaTemplate

Message = dict[str, Any]

# As Qwen's: tools behind the system text, thoughts kept only since the last user message.
TEMPLATE = """\
{%- set ns = namespace(last_user=-1) -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{%- set ns.last_user = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for m in messages -%}
<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and m.reasoning_content and loop.index0 > ns.last_user -%}
<think>
{{ m.reasoning_content }}
</think>

{% endif -%}
{{ m.content }}
{%- for call in m.tool_calls or [] %}
<tool_call>
{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}
</tool_call>
{%- endfor -%}
{%- if loop.first and tools %}

# Tools
{% for tool in tools %}
{{ tool | tojson }}
{%- endfor -%}
{%- endif -%}
<|im_end|>
{% endfor -%}
<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking -%}
<think>

</think>

{% endif -%}
"""

_WORDS = re.compile(r"<\|\w+\|>|[一-鿿]| ?[A-Za-z]+| ?\d{1,3}|\s|.", re.DOTALL)


class WordTokenizer:
    """Words, digits in threes, Chinese characters one by one: ids in order of appearance."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> tuple[list[int], list[int]]:
        """Ids and where each token ends."""
        found = list(_WORDS.finditer(text))
        ids = [self._ids.setdefault(match.group(), len(self._ids) + 1) for match in found]
        return ids, [match.end() for match in found]


TOKENIZER = WordTokenizer()
JINJA = JinjaTemplate(TEMPLATE)


@dataclass
class Chat:
    """A request: messages, tools, template variables and marked blocks (indices)."""

    messages: list[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    variables: dict[str, Any] = field(default_factory=dict)
    markers: Sequence[int] = ()
    model: str = "qwen-plus"
    scene: str = ""
    parameters: dict[str, str] = field(default_factory=dict)

    def prompt(self) -> SpannedPrompt:
        def render(messages: Sequence[Mapping[str, Any]]) -> str:
            return JINJA.render(messages, self.tools, self.variables)

        groups = [_blocks(index, message) for index, message in enumerate(self.messages)]
        text = render(self.messages)
        ids, ends = TOKENIZER.encode(text)
        spans = tuple(
            BlockSpan(block, end, sum(e <= end for e in ends))
            for block, end in zip(
                [block for group in groups for block in group],
                block_ends(render, text, self.messages, groups),
                strict=True,
            )
        )
        return SpannedPrompt(text, tuple(ids), spans)

    def snapshot(self, now: float = 0.0) -> PromptSnapshot:
        variables = {name: str(value) for name, value in self.variables.items()}
        extras = SnapshotExtras(self.model, variables | self.parameters, self.tools, self.markers, self.scene)
        return take_snapshot(self.prompt(), extras, now)


def _blocks(index: int, message: Message) -> list[ContentBlock]:
    content, role = message.get("content"), message["role"]
    if content is None:
        return []
    if isinstance(content, str):
        return [ContentBlock(f"messages[{index}].content", role, content)]
    return [
        ContentBlock(f"messages[{index}].content[{k}]", role, part["text"]) for k, part in enumerate(content)
    ]


class World:
    """A server that caches everything for ever, remembers prompts, and explains each request."""

    def __init__(self, tenant: str = "t") -> None:
        self.clock = ManualClock(1000.0)
        self.memory = SnapshotMemory()
        self.tenant = tenant
        self.cached: list[tuple[int, ...]] = []
        self.entries: dict[tuple[int, ...], float] = {}

    def implicit(self, chat: Chat, answer: str = "", **facts: Any) -> MissReport:
        """One request, whose answer, if any, is cached with it."""
        prompt, snapshot = chat.prompt(), chat.snapshot(self.clock.now())
        matched = max((common(ids, prompt.token_ids) for ids in self.cached), default=0)
        matched = facts.pop("matched", min(matched, len(prompt.token_ids) - 1))
        report = self._explain(chat, snapshot, IMPLICIT, matched, facts)
        drawn = TOKENIZER.encode(answer + "<|im_end|>")[0] if answer else []
        self.cached.append((*prompt.token_ids, *drawn))
        self.memory.remember(self.tenant, snapshot.answered(answer, drawn) if answer else snapshot)
        return report

    def explicit(self, chat: Chat, rules: CacheRules, ttl: float = 300.0, **facts: Any) -> MissReport:
        """One request with markers, under the rules of DashScope."""
        prompt, now = chat.prompt(), self.clock.now()
        reach = rules.lookback if rules.lookback is not None else len(prompt.spans)
        matched, expired = 0, None
        for block in {b for m in chat.markers for b in range(max(0, m - reach), m + 1)}:
            prefix = prompt.token_ids[: prompt.spans[block].end_token]
            until = self.entries.get(prefix)
            if until is not None and until > now and len(prefix) > matched:
                matched = len(prefix)
                self.entries[prefix] = now + ttl
            elif until is not None and until <= now:
                expired = now - until
        if expired is not None and not matched:
            facts.setdefault("store", StoreFacts(expired_for=expired, ttl=ttl))
        snapshot = chat.snapshot(now)
        report = self._explain(chat, snapshot, EXPLICIT, matched, {"rules": rules} | facts)
        for block in chat.markers:
            end = prompt.spans[block].end_token
            if end >= rules.minimum:
                self.entries[prompt.token_ids[:end]] = now + ttl
        self.memory.remember(self.tenant, snapshot)
        return report

    def _explain(
        self, chat: Chat, snapshot: PromptSnapshot, mode: str, matched: int, facts: dict[str, Any]
    ) -> MissReport:
        earlier = self.memory.nearest(self.tenant, snapshot)
        return explain(MissFacts(snapshot, earlier, mode, matched, **facts))


def common(left: Sequence[int], right: Sequence[int]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def rules_text(tokens: int, subject: str = "Shelf") -> str:
    """Numbered rules of about so many tokens."""
    lines, size, number = [], 0, 0
    while size < tokens:
        number += 1
        kind, aisle = number * 7 % 97, number * 13 % 89
        line = f"{subject} {number}: boxes of class {kind} go to aisle {aisle} before noon.\n"
        size += len(TOKENIZER.encode(line)[0])
        lines.append(line)
    return "".join(lines)


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str | None, **more: Any) -> Message:
    return {"role": "assistant", "content": text, **more}


def call(name: str, arguments: str, number: int = 0) -> Message:
    """An assistant message of one tool call."""
    function = {"name": name, "arguments": arguments}
    return assistant(None, tool_calls=[{"id": f"c{number}", "type": "function", "function": function}])


def result(text: str, number: int = 0) -> Message:
    return {"role": "tool", "content": text, "tool_call_id": f"c{number}"}


def tool(name: str, description: str = "", properties: Mapping[str, Any] | None = None) -> dict[str, Any]:
    described = description or f"Does what {name} is for, with a long enough text to be worth caching."
    parameters = {"type": "object", "properties": dict(properties or {"query": {"type": "string"}})}
    function = {"name": name, "description": described, "parameters": parameters}
    return {"type": "function", "function": function}


def turns(count: int, words: int = 30, subject: str = "item") -> list[Message]:
    """User and assistant messages, each with its own text."""
    messages: list[Message] = []
    for number in range(count):
        messages.append(
            user(f"Where does {subject} {number} go? " + f"It has colour {number}. " * (words // 5))
        )
        messages.append(
            assistant(f"Put {subject} {number} on shelf {number + 3}. " + "Thank you. " * (words // 3))
        )
    return messages
