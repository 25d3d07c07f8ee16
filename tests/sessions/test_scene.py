from __future__ import annotations

import pytest

from hotprefix.base.errors import InvalidRequest
from hotprefix.sessions.scene import Scene


@pytest.mark.parametrize("text", ["support-bot@3", "a@1", "A.b_c-d@2026-03.1", "x" * 64 + "@" + "1" * 32])
def test_named_and_versioned(text: str) -> None:
    assert str(Scene.parse(text, "session_id")) == text


@pytest.mark.parametrize(
    "text",
    ["", "support", "@1", "a@", "a@1@2", "a b@1", "-a@1", "x" * 65 + "@1", "é@1", "a@1\n", "a@" + "1" * 33],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="name@version") as raised:
        Scene.parse(text, "session_id")
    assert raised.value.param == "session_id"


def test_partitions_differ_by_every_part_and_never_by_how_parts_are_glued() -> None:
    scenes = [Scene("a", "1"), Scene("a", "2"), Scene("b", "1"), Scene("a1", ""), Scene("", "a1")]
    names = {scene.partition(tenant) for scene in scenes for tenant in ("", "t", "ta", "t1")}
    assert len(names) == 20
    assert Scene("a", "1").partition("t") == Scene("a", "1").partition("t")
