"""Equal tools become equal bytes."""

from __future__ import annotations

import json
import random
from typing import Any

from hotprefix.prompt.preprocess.canonical_tools import canonical_schema
from hotprefix.prompt.preprocess.catalogue import StepName, Steps
from hotprefix.prompt.preprocess.draft import Draft

STEPS = Steps(limit=10_000, count=len)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["b", "a"]},
        "unit": {"default": {"z": [2, 1], "required": ["y", "x"]}, "type": "object"},
        "required": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["unit", "city"],
}


def draft(*tools: tuple[str, Any]) -> Draft:
    return Draft(
        (),
        (),
        tuple(
            {"type": "function", "function": {"name": name, "description": "d", "parameters": schema}}
            for name, schema in tools
        ),
    )


def shuffled(value: Any, dice: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        dice.shuffle(keys)
        return {key: shuffled(value[key], dice) for key in keys}
    return value


def test_t06_permuted_keys_are_the_same_bytes() -> None:
    seen = set()
    for seed in range(5):
        done, _ = STEPS.pipeline([StepName.CANONICAL_TOOLS]).run(
            draft(("a", shuffled(SCHEMA, random.Random(seed))))
        )
        seen.add(json.dumps(done.tools))
    assert len(seen) == 1


def test_names_are_no_keywords_and_data_keeps_its_order() -> None:
    schema = canonical_schema(SCHEMA)
    assert schema["required"] == ["city", "unit"]
    assert schema["properties"]["city"]["enum"] == ["b", "a"]
    assert schema["properties"]["unit"]["default"] == {"required": ["y", "x"], "z": [2, 1]}
    assert list(schema) == ["properties", "required", "type"]
    assert list(schema["properties"]) == ["city", "required", "unit"]


def test_the_edit_names_the_tool_and_the_place() -> None:
    done, report = STEPS.pipeline([StepName.CANONICAL_TOOLS]).run(
        draft(("a", {"a": 1}), ("b", {"type": "x", "properties": {}}))
    )
    assert done.tools[0] == draft(("a", {"a": 1})).tools[0]
    (edit,) = report.edits
    assert (edit.path, edit.start) == ("tools[1].function.parameters", 2)


def test_the_order_of_tools_is_kept_unless_asked_for() -> None:
    tools = [(name, {"type": "object"}) for name in "cab"]
    for step, order in ((StepName.CANONICAL_TOOLS, "cab"), (StepName.TOOLS_BY_NAME, "abc")):
        done, report = STEPS.pipeline([step]).run(draft(*tools))
        assert "".join(tool["function"]["name"] for tool in done.tools) == order
        assert [(edit.path, edit.removed, edit.inserted) for edit in report.edits] == (
            [("tools", "c, a, b", "a, b, c")] if order == "abc" else []
        )


def test_t04_tools_that_come_in_another_order() -> None:
    tools = [(name, SCHEMA) for name in "abcdef"]
    texts = set()
    for turn in range(6):
        done, _ = STEPS.pipeline([StepName.TOOLS_BY_NAME]).run(draft(*tools[turn:], *tools[:turn]))
        texts.add(json.dumps(done.tools))
    assert len(texts) == 1
