"""Pre-processing as a whole: what holds for every step, whatever the text."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.prompt.preprocess.catalogue import StepName, Steps, parse_steps
from hotprefix.prompt.preprocess.draft import Draft
from hotprefix.prompt.spans import ContentBlock

STEPS = Steps(limit=400, count=len)
NASTY = st.sampled_from(
    [
        *(
            "\r",
            "\r\n",
            "\n",
            "------",
            "=======",
            "++++++++",
            "***********",
            "```\n",
            "~~~\n",
            "|",
            "    ",
            "`",
        ),
        *(
            "\x00",
            "\x7f",
            "\ufeff",
            "\u2028",
            "\ufffe",
            "e\u0301",
            "\u212b",
            "\u0345",
            "\u0344",
            "中",
            "가",
            "ᄀ",
            "ᅡ",
        ),
        *("\U0001f469\u200d\U0001f52c", "中", "가", "ᄀ", "ᅡ"),
        "x-anthropic-billing-header: cch=a1b2c; rest",
    ]
)
TEXTS = st.lists(st.one_of(NASTY, st.text(max_size=6)), max_size=14).map("".join)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
SCHEMAS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "properties", "required", "enum", "default", "items", "b", "a"]), inner
        ),
    ),
    max_leaves=12,
)


def draft_of(*messages: tuple[str, list[str]], tools: list[object] | None = None) -> Draft:
    """Messages with a role and the texts of their content blocks."""
    blocks = [
        tuple(ContentBlock(f"messages[{i}].content[{j}]", role, text) for j, text in enumerate(texts))
        for i, (role, texts) in enumerate(messages)
    ]
    plain = [{"role": role, "content": "".join(texts)} for role, texts in messages]
    named = [
        {"type": "function", "function": {"name": f"tool{number}", "parameters": schema}}
        for number, schema in enumerate(tools or ())
    ]
    return Draft(tuple(plain), tuple(blocks), tuple(named))


DRAFTS = st.builds(
    lambda messages, tools: draft_of(*messages, tools=tools),
    st.lists(st.tuples(ROLES, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=5),
    st.lists(SCHEMAS, max_size=3),
)


@given(DRAFTS, st.sets(st.sampled_from(list(StepName))))
def test_twice_is_once(draft: Draft, names: set[StepName]) -> None:
    pipeline = STEPS.pipeline([name for name in StepName if name in names])
    once, _ = pipeline.run(draft)
    twice, report = pipeline.run(once)
    assert twice is once
    assert report.edits == ()


@given(DRAFTS, st.sampled_from(list(StepName)))
def test_a_step_alone_is_idempotent_and_honest(draft: Draft, name: StepName) -> None:
    """Something was changed if, and only if, an edit says so."""
    pipeline = STEPS.pipeline([name])
    once, report = pipeline.run(draft)
    assert (once is draft) == (not report.edits)
    assert pipeline.run(once)[0] is once
    if report.edits:
        assert json.dumps(once.messages) != json.dumps(draft.messages) or json.dumps(
            once.tools
        ) != json.dumps(draft.tools)


@given(DRAFTS)
def test_valid_unicode_stays_valid_and_content_is_its_blocks(draft: Draft) -> None:
    done, _ = STEPS.pipeline(list(StepName)).run(draft)
    for message, group in zip(done.messages, done.blocks, strict=True):
        assert message["content"] == "".join(block.text for block in group)
        message["content"].encode()


@given(DRAFTS)
def test_every_edit_can_be_taken_back(draft: Draft) -> None:
    names = [name for name in StepName if name is not StepName.TRUNCATE]
    done, report = STEPS.pipeline(names).run(draft)
    for before, after in zip(draft.blocks, done.blocks, strict=True):
        for old, new in zip(before, after, strict=True):
            assert report.original(new.path, new.text) == old.text


@given(DRAFTS)
def test_what_the_assistant_said_is_never_touched(draft: Draft) -> None:
    names = [name for name in StepName if name is not StepName.TRUNCATE]
    done, _ = STEPS.pipeline(names).run(draft)
    for before, after in zip(draft.messages, done.messages, strict=True):
        assert before["role"] != "assistant" or before is after


@given(TEXTS)
def test_unicode_is_nfc_and_nothing_else(text: str) -> None:
    done, _ = STEPS.pipeline([StepName.UNICODE]).run(draft_of(("user", [text])))
    assert done.messages[0]["content"] == unicodedata.normalize("NFC", text)


def test_without_steps_a_draft_is_the_same_object() -> None:
    """T11: bytes are equal when everything is off."""
    draft = draft_of(("system", ["a\r\n\x7f\u2028------"]), ("user", ["e\u0301"]))
    done, report = STEPS.pipeline([]).run(draft)
    assert done is draft
    assert (report.steps, report.edits, report.summary()) == ((), (), "")


def test_the_summary_counts_and_names_the_first_place() -> None:
    draft = draft_of(("system", ["x", "a------\nb======"]), ("user", ["plain"]))
    _, report = STEPS.pipeline(parse_steps("pollution,unicode")).run(draft)
    assert report.summary() == 'unicode;n=0, pollution;n=2;first="messages[0].content[1]+4"'
    (first, second) = report.of("pollution")
    assert (first.removed, first.inserted, second.start) == ("---", "", 12)


def test_lone_surrogates_are_dropped() -> None:
    """They can't come over HTTP; a caller in Python may have them."""
    draft = draft_of(("user", ["a\ud800b\x00c\u2028d"]))
    done, _ = STEPS.pipeline([StepName.INVALID_CHARACTERS]).run(draft)
    assert done.messages[0]["content"] == "abc\u2028d"


def test_line_ends() -> None:
    done, report = STEPS.pipeline([StepName.LINE_ENDS]).run(draft_of(("user", ["a\r\nb\rc\nd"])))
    assert done.messages[0]["content"] == "a\nb\nc\nd"
    assert len(report.edits) == 2


def test_names_are_parsed_into_the_order_they_run_in() -> None:
    assert parse_steps(" truncate, line-ends ,line-ends") == (StepName.LINE_ENDS, StepName.TRUNCATE)
    assert parse_steps("none") == parse_steps("") == ()
    with pytest.raises(ValueError, match=r"'colour'; there are invalid-characters, .*truncate, and none"):
        parse_steps("line-ends,colour")


def test_blocks_keep_their_paths_and_roles() -> None:
    draft = draft_of(("system", ["a\r", "b"]), ("user", ["c"]))
    done, _ = STEPS.pipeline([StepName.LINE_ENDS]).run(draft)
    assert done.blocks[1] is draft.blocks[1]
    assert done.blocks[0] == (replace(draft.blocks[0][0], text="a\n"), draft.blocks[0][1])
