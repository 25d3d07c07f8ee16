"""Requests of all four dialects become the prompts that the server would make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import recorded_of
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rendering import Rendered, Renderer, UnrenderableRequest
from hotprefix.doctor.text_model import TextModel, open_text_model
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import ModelStore
from hotprefix.profiles.loader import load_profiles

MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def recorded(document: dict[str, Any]) -> Recorded:
    found = recorded_of(document, Place("a.json", 1))
    assert found is not None
    return found


def render(document: dict[str, Any], renderer: Renderer | None = None) -> Rendered:
    return (renderer or Renderer(TextModel(), load_profiles())).render(recorded(document))


CHAT = {
    "model": "qwen-plus",
    "tools": [TOOL],
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "Be brief.", **MARK}]},
        {"role": "user", "content": "Where?"},
    ],
}


def test_chat_in_the_layout_of_qwen() -> None:
    found = render(CHAT)
    assert found.profile.name == "dashscope-2026-10"
    assert [span.block.path for span in found.prompt.spans] == [
        "messages[0].content[0]",
        "messages[1].content",
    ]
    assert found.prompt.text.startswith("<|im_start|>system\nBe brief.\n\n# Tools")
    assert found.prompt.text.endswith("<|im_start|>assistant\n")
    assert [marker.block for marker in found.turn.markers] == [0]
    assert found.marks == ("messages[0].content[0].cache_control",)


def test_tools_of_openai_come_first() -> None:
    found = render(CHAT | {"model": "gpt-5"})
    assert found.profile.vendor == "openai"
    assert found.prompt.text.index("look") < found.prompt.text.index("Be brief.")


def test_the_pieces_are_the_text() -> None:
    found = render({"messages": [{"role": "user", "content": "Ünï 中文字 \u2028 a1b2, done…"}]})
    span = found.prompt.spans[0]
    assert found.prompt.text[: span.end_char].endswith("done…")
    assert 0 < span.end_token < len(found.prompt.token_ids)


def test_the_other_dialects_say_the_same() -> None:
    talk = {
        "openai-responses": {"instructions": "Be brief.", "input": "Where?"},
        "dashscope": {
            "input": {
                "messages": [
                    {"role": "system", "content": [{"text": "Be brief."}]},
                    {"role": "user", "content": "Where?"},
                ]
            }
        },
        "anthropic": {"system": "Be brief.", "messages": [{"role": "user", "content": "Where?"}]},
    }
    texts = set()
    for name, body in talk.items():
        found = render({"model": "m", **body})
        assert found.recorded.dialect == name
        texts.add(found.prompt.text)
    assert len(texts) == 1


def test_what_the_server_does_not_take_is_read_all_the_same() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "See"}, IMAGE]}
    same = render({"messages": [message], "tools": [{"type": "web_search"}], "audio": {"voice": "x"}})
    other = {"type": "image_url", "image_url": {"url": "data:image/png;base64,BBBB"}}
    changed = render({"messages": [{"role": "user", "content": [{"type": "text", "text": "See"}, other]}]})
    first, second = (found.prompt.spans[1].block.text for found in (same, changed))
    assert first.startswith("<image ")
    assert first != second
    assert "web_search" in same.prompt.text
    assert any("image" in note for note in same.notes)


def test_images_of_anthropic_and_calls_with_objects() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}, **MARK}
    found = render({"system": "S", "messages": [{"role": "user", "content": [image]}], "model": "claude-x"})
    assert found.prompt.spans[1].block.text.startswith("<image ")
    assert len(found.turn.markers) == 1
    call = {"id": "1", "function": {"name": "look", "arguments": {"at": "door"}}}
    talk = [{"role": "assistant", "tool_calls": [call]}, {"role": "function", "name": "look", "content": "x"}]
    assert '{"at": "door"}' in render({"messages": talk}).prompt.text


def test_responses_follow_one_another_within_a_file() -> None:
    renderer = Renderer(TextModel(), load_profiles())
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Here."}]}
    first = {
        "request": {"model": "qwen-plus", "input": "Where?"},
        "response": {"id": "r1", "output": [answer]},
    }
    headers = {"X-DashScope-Session-Cache": "enable"}
    second = {
        "request": {"model": "qwen-plus", "input": "Why?", "previous_response_id": "r1"},
        "headers": headers,
    }
    render(first, renderer)
    found = render(second, renderer)
    assert found.is_session
    assert (
        found.prompt.text.index("Where?") < found.prompt.text.index("Here.") < found.prompt.text.index("Why?")
    )
    alone = render(second)
    assert "Where?" not in alone.prompt.text
    assert "r1" in alone.notes[0]


def test_a_result_without_its_call_is_no_error() -> None:
    item = {"type": "function_call_output", "call_id": "c1", "output": "12 boxes"}
    found = render({"model": "qwen-plus", "input": [item], "previous_response_id": "gone"})
    assert "12 boxes" in found.prompt.text


def test_nonsense_names_its_place() -> None:
    with pytest.raises(UnrenderableRequest, match=r"a\.json:1"):
        render({"messages": [7]})
    with pytest.raises(UnrenderableRequest, match="half of a character"):
        render({"messages": [{"role": "user", "content": "\ud800"}]})


def test_a_models_own_files(tiny_model: ModelManifest, tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "none")
    (tmp_path / "tokenizer.json").write_bytes(tiny_model.tokenizer.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "[{{ messages[0].content }}]"}')
    by_folder = open_text_model(store, str(tmp_path))
    assert not by_folder.is_estimate
    assert by_folder.notes == ()
    body = {"messages": [{"role": "user", "content": "Where?"}]}
    found = render(body, Renderer(by_folder, load_profiles()))
    assert found.prompt.text == "[Where?]"
    template = tmp_path / "own.jinja"
    template.write_text("<{{ messages[0].content }}>")
    by_files = open_text_model(store, None, tmp_path / "tokenizer.json", template)
    assert render(body, Renderer(by_files, load_profiles())).prompt.text == "<Where?>"
    only_template = open_text_model(store, None, None, template)
    with_tools = body | {"tools": [TOOL], "messages": [{"role": "system", "content": "S"}, *body["messages"]]}
    assert '"name": "look"' in render(with_tools, Renderer(only_template, load_profiles())).prompt.text
    assert open_text_model(store).notes[0].startswith("Token counts are estimates")
