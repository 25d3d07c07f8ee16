"""Chat templates behave as in transformers."""

from __future__ import annotations

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.base.errors import InvalidRequest, UnsupportedModel
from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.template import JinjaTemplate
from tests.tiny_gguf import CHATML

USER = {"role": "user", "content": "hi"}
QWEN_TOOLS = (
    "{%- if tools %}{{- '<tools>' }}{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}"
    "{{- '</tools>' }}{%- endif %}"
    "{%- for message in messages %}{%- if message.content %}{{- message.content }}{%- endif %}"
    "{%- for call in message.tool_calls %}{{- call.function.name + (call.function.arguments | tojson) }}"
    "{%- endfor %}{%- endfor %}"
)
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"stadt": "Köln <3"}'}}


def test_chatml() -> None:
    text = JinjaTemplate(CHATML).render([{"role": "system", "content": "s"}, USER])
    assert text == "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_blocks_are_trimmed_and_loop_controls_work() -> None:
    source = (
        "{% for m in messages %}\n    {% if loop.index > 1 %}\n{% break %}\n    {% endif %}\n"
        "{{ m.content }}\n{% endfor %}"
    )
    assert JinjaTemplate(source).render([USER, USER]) == "hi\n"


def test_to_json_keeps_characters_and_takes_indent() -> None:
    source = "{{ messages[0].x | tojson }}|{{ messages[0].x | tojson(indent=1) }}"
    text = JinjaTemplate(source).render([{"role": "user", "content": "", "x": {"b": "é<&'", "a": 1}}])
    assert text == '{"b": "é<&\'", "a": 1}|{\n "b": "é<&\'",\n "a": 1\n}'


def test_generation_blocks_show_their_body() -> None:
    assert JinjaTemplate("a{% generation %}b{% endgeneration %}c").render([USER]) == "abc"


def test_special_tokens_and_variables() -> None:
    template = JinjaTemplate(
        "{{ bos_token }}{{ eos_token }}{{ enable_thinking }}", bos_token="<s>", eos_token="</s>"
    )
    assert template.render([USER], variables={"enable_thinking": False}) == "<s></s>False"


def test_variables_cannot_replace_the_messages() -> None:
    template = JinjaTemplate("{{ messages[0].content }}{{ add_generation_prompt }}")
    assert template.render([USER], variables={"messages": [], "add_generation_prompt": False}) == "hiFalse"


def test_the_date_comes_from_the_clock() -> None:
    clock = ManualClock(86_400.0 * 365)
    assert JinjaTemplate("{{ strftime_now('%Y') }}", clock=clock).render([USER]) == "1971"


def test_a_templates_own_refusal_reaches_the_client() -> None:
    template = JinjaTemplate("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(InvalidRequest, match="roles must alternate") as caught:
        template.render([USER])
    assert caught.value.param == "messages"


@pytest.mark.parametrize(
    "source", ["{{ messages[0]['content'] + 1 }}", "{{ nothing.at.all }}", "{{ 1 / 0 }}"]
)
def test_an_error_inside_the_template_is_no_traceback(source: str) -> None:
    with pytest.raises(InvalidRequest, match="template"):
        JinjaTemplate(source).render([USER])


@pytest.mark.parametrize("source", ["{{ ''.__class__.__mro__ }}", "{% set _ = messages.append(1) %}"])
def test_templates_run_in_a_sandbox(source: str) -> None:
    with pytest.raises(InvalidRequest):
        JinjaTemplate(source).render([USER])


def test_broken_source() -> None:
    with pytest.raises(UnsupportedModel, match="not valid Jinja"):
        JinjaTemplate("{% for %}")


def test_without_a_source_roles_are_named() -> None:
    assert JinjaTemplate("").render([USER]) == "user: hi\nassistant:"


def test_tools_are_seen_in_the_source_not_in_its_text() -> None:
    assert JinjaTemplate(QWEN_TOOLS).handles_tools
    assert not JinjaTemplate("the word tools").handles_tools
    assert not JinjaTemplate(CHATML).handles_tools


def test_tool_calls_reach_the_template_as_objects() -> None:
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
    text = JinjaTemplate(QWEN_TOOLS).render(messages, tools=[{"type": "function"}])
    assert text == '<tools>\n{"type": "function"}</tools>hif{"stadt": "Köln <3"}'


def test_content_may_be_missing_or_in_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "user", "content": parts}, {"role": "assistant"}]
    assert "user\nab<|im_end|>\n<|im_start|>assistant\n<|im_end|>" in JinjaTemplate(CHATML).render(messages)
    with pytest.raises(InvalidRequest, match="text parts"):
        JinjaTemplate(CHATML).render([{"role": "user", "content": [{"type": "image_url"}]}])


def test_equal_messages_give_equal_text() -> None:
    template = JinjaTemplate(CHATML)
    assert template.render([USER]) == template.render([dict(USER)])


@pytest.mark.model
def test_default_model_puts_its_own_system_message_first(default_model: ModelManifest) -> None:
    text = JinjaTemplate(default_model.chat_template).render([USER])
    assert text.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert text.endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
