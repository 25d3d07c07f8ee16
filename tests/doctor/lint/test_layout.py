"""Tokens before each part of a prompt: of the texts alone, and as a model's own template renders them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.layout import RenderedLayout, layout_of
from hotprefix.doctor.lint.measure import MARGIN, Measure, RulerBook, ruler_of
from hotprefix.doctor.lint.request import LintRequest, Origin, Source
from hotprefix.doctor.lint.unfold import unfold
from hotprefix.doctor.place import Place
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.text_model import TextModel
from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.template import JinjaTemplate
from tests.api.scripted_engine import ByteTokenizer
from tests.doctor.lint.support import RULES, chat, part, tool

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% if loop.first and tools %} TOOLS {{ tools | tojson }}{% endif %}|{% endfor %}<assistant>"
)
MODEL = TextModel("m", ByteTokenizer(), JinjaTemplate(TEMPLATE))


def request(body: dict[str, Any], dialect: Dialect = Dialect.CHAT) -> LintRequest:
    place = Place("x")
    return unfold(Recorded(dialect, body, place), Origin.DATA, Source(place), tools_first=False)


def test_a_template_counts() -> None:
    made = request(chat([part("One."), part("Two.")], "Three?", "Four.", "Five?"))
    layout = layout_of(made, ruler_of(MODEL))
    assert isinstance(layout, RenderedLayout)
    text = "<system>One.Two.|<user>Three?|<assistant>Four.|<user>Five?|<assistant>"
    assert layout.total == len(text)
    for number, said in enumerate(("One.", "Two.", "Three?", "Four.", "Five?")):
        assert layout.before(number) == text.index(said)
        assert layout.before(number, 2) == text.index(said) + 2
        assert layout.up_to(number) == text.index(said) + len(said)


def test_tools_stand_where_the_template_puts_them() -> None:
    tools = [tool("a"), tool("b")]
    made = request(chat("One.", "Two?", tools=tools))
    layout = layout_of(made, ruler_of(MODEL))
    text = f"<system>One. TOOLS {json.dumps(tools)}|<user>Two?|<assistant>"
    paths = [block.path for block in made.blocks]
    assert paths == ["messages[0].content", "tools[0]", "tools[1]", "messages[1].content"]
    assert layout.before(2) == text.index(json.dumps(tools[1]))
    assert layout.before(3) == text.index("Two?")


def test_without_a_template_texts_are_put_together() -> None:
    layout = layout_of(request(chat("One.", "Two?")), ruler_of(TextModel("m", ByteTokenizer())))
    assert (layout.total, layout.before(1), layout.before(1, 2), layout.up_to(0)) == (8, 4, 6, 4)


def test_a_template_that_refuses_is_not_used() -> None:
    refuses = JinjaTemplate("{{ raise_exception('no') }}")
    layout = layout_of(request(chat("One.", "Two?")), ruler_of(TextModel("m", ByteTokenizer(), refuses)))
    assert layout.total == 8


@pytest.mark.parametrize("chosen", [TextModel(), TextModel("own", ByteTokenizer())])
def test_a_prepared_model_of_the_same_name_is_used(chosen: TextModel) -> None:
    book = RulerBook(chosen, lambda name: MODEL if name == "m" else None)
    assert book.of("m").measure.name == (chosen.name or "m")
    assert book.of("other").measure.name == chosen.name


def test_half_characters_are_counted() -> None:
    assert Measure(TextModel("m", ByteTokenizer())).count("a\ud800b") == 3


@pytest.mark.model
def test_the_estimate_is_within_its_margin(default_model: ModelManifest) -> None:
    tokenizer = HfTokenizer(default_model.tokenizer)
    estimate = Measure(TextModel())
    texts = [
        RULES,
        json.dumps([tool(name, item="string") for name in "abcdef"] * 3),
        RULES.replace("\n", " "),
    ]
    for text in texts:
        assert estimate.count(text) == pytest.approx(len(tokenizer.encode(text)), rel=MARGIN)
