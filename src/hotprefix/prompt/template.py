"""Chat templates in Jinja, run as Hugging Face's transformers run them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.meta
import jinja2.nodes
import jinja2.parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hotprefix.base.clock import Clock, SystemClock
from hotprefix.base.errors import InvalidRequest, UnsupportedModel
from hotprefix.prompt.chat import Message, Tool

PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
)
"""For models that come without a template."""

_RUN_ERRORS = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)


class JinjaTemplate:
    """A compiled chat template; an empty `source` means `PLAIN_TEMPLATE`.

    Deterministic unless the template asks `strftime_now` for the date, which `clock` gives.
    Raises `UnsupportedModel` if the source is not valid Jinja.
    """

    def __init__(
        self, source: str, *, bos_token: str = "", eos_token: str = "", clock: Clock | None = None
    ) -> None:
        source = source or PLAIN_TEMPLATE
        environment = _environment(clock or SystemClock())
        try:
            names = jinja2.meta.find_undeclared_variables(environment.parse(source))
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise UnsupportedModel(f"The model's chat template is not valid Jinja: {error}.") from error
        self._handles_tools = "tools" in names
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}

    @property
    def handles_tools(self) -> bool:
        return self._handles_tools

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        values = {"documents": None, "add_generation_prompt": True} | self._tokens | dict(variables or {})
        values |= {"messages": [_plain(m) for m in messages], "tools": list(tools) or None}
        try:
            return self._template.render(values)
        except jinja2.TemplateError as error:
            raise InvalidRequest(
                f"The model's chat template refuses these messages: {error.message or error}",
                param="messages",
            ) from error
        except _RUN_ERRORS as error:
            raise InvalidRequest(
                f"The model's chat template can't render these messages: {error}", param="messages"
            ) from error


def flat_content(content: Any) -> str:
    """The text of a message's content: a string, nothing, or a list of text parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content
    ):
        return "".join(part["text"] for part in content)
    raise InvalidRequest("Message content must be text or a list of text parts.", param="messages")


def _plain(message: Message) -> dict[str, Any]:
    """The message as templates expect it: text content, tool arguments as an object."""
    plain = dict(message) | {"content": flat_content(message.get("content"))}
    calls = message.get("tool_calls")
    if calls:
        plain["tool_calls"] = [_plain_call(call) for call in calls]
    else:
        plain.pop("tool_calls", None)
    return plain


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return dict(call)
    try:
        arguments = json.loads(function["arguments"])
    except (ValueError, RecursionError):
        return dict(call)
    return dict(call) | {"function": dict(function) | {"arguments": arguments}}


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks the assistant's words for training; here it only shows its body."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment(clock: Clock) -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _strftime(clock)
    return environment


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime(clock: Clock) -> Callable[[str], str]:
    def strftime_now(pattern: str) -> str:
        return datetime.fromtimestamp(clock.wall()).strftime(pattern)

    return strftime_now
