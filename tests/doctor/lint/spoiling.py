"""Ways to spoil a well-formed request, each with the rule that must find it; None if one does not apply."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.vendors import Vendors
from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import recorded_of
from hotprefix.profiles.loader import load_profiles
from hotprefix.profiles.profile import Profile

Document = dict[str, Any]
Spoil = Callable[[Document], Document | None]
SpoilAll = Callable[[Document], list[Document] | None]
MARKER = {"type": "ephemeral"}
VENDORS = Vendors(load_profiles())


class Request:
    """A document taken apart; what is changed here changes the document."""

    def __init__(self, document: Document) -> None:
        recorded = recorded_of(document, Place("x"))
        assert recorded is not None
        self.document = document
        self.dialect = recorded.dialect
        self.body: Any = recorded.body
        self.profile: Profile = VENDORS.profile(recorded.dialect, recorded.model)

    @property
    def settings(self) -> Any:
        return self.body["parameters"] if self.dialect is Dialect.DASHSCOPE else self.body

    @property
    def messages(self) -> list[Any]:
        holder = self.body["input"] if self.dialect is Dialect.DASHSCOPE else self.body
        found = holder.get("input") if self.dialect is Dialect.RESPONSES else holder.get("messages")
        return found if isinstance(found, list) else []

    @property
    def tools(self) -> list[Any]:
        found: list[Any] = self.settings.get("tools", [])
        return found

    @property
    def system(self) -> tuple[Any, Any] | None:
        """The holder and key of the system text."""
        if self.dialect is Dialect.RESPONSES:
            return (self.body, "instructions") if "instructions" in self.body else None
        if self.dialect is Dialect.ANTHROPIC:
            return self.body["system"][0], "text"
        first = self.messages[0] if self.messages else {}
        if first.get("role") not in ("system", "developer"):
            return None
        return (first["content"][0], "text") if isinstance(first["content"], list) else (first, "content")

    def with_system(self, change: Callable[[str], str]) -> Document | None:
        place = self.system
        if place is None:
            return None
        holder, key = place
        holder[key] = change(holder[key])
        return self.document

    @property
    def is_marked(self) -> bool:
        return "cache_control" in json.dumps(self.body)

    @property
    def is_short_task(self) -> bool:
        return any(self.settings.get(name, 999) <= 16 for name in ("max_tokens", "max_output_tokens"))

    @property
    def has_minimum(self) -> bool:
        return self.profile.vendor != "hotprefix"

    @property
    def is_wrapped(self) -> bool:
        return self.document is not self.body


def copy(document: Document) -> Document:
    made: Document = json.loads(json.dumps(document))
    return made


# One request


def early(text: str) -> Spoil:
    return lambda document: Request(document).with_system(lambda system: f"{text}\n{system}")


def late(text: str) -> Spoil:
    """Behind the system prompt; only where something follows that is lost."""

    def spoil(document: Document) -> Document | None:
        request = Request(document)
        if len(request.messages) < 4 or request.is_marked:
            return None
        return request.with_system(lambda system: f"{system}\n\n{text}")

    return spoil


def home_in_a_tool(document: Document) -> Document | None:
    request = Request(document)
    if not request.tools or (request.is_marked and request.dialect is not Dialect.ANTHROPIC):
        return None
    tool = request.tools[0]
    function = tool.get("function", tool)
    function["description"] += " Files are in /home/anna.berg/data."
    return document


def too_short(document: Document) -> Document | None:
    request = Request(document)
    if (
        not request.has_minimum
        or request.dialect is Dialect.RESPONSES
        or request.is_marked
        or len(request.messages) > 2
    ):
        return None
    return request.with_system(lambda system: system[:200])


def marked_too_short(document: Document) -> Document | None:
    request = Request(document)
    if not request.has_minimum or not request.is_marked or len(request.messages) > 2 or request.tools:
        return None
    return request.with_system(lambda system: system[:200])


def marker_beside_string(document: Document) -> Document | None:
    request = Request(document)
    if request.dialect is Dialect.RESPONSES or not request.messages or request.profile.explicit is None:
        return None
    found = next((one for one in request.messages if isinstance(one.get("content"), str)), None)
    if found is None:
        return None
    found["cache_control"] = MARKER
    return document


def marker_beside_array(document: Document) -> Document | None:
    request = Request(document)
    if request.dialect is Dialect.RESPONSES:
        return None
    found = next((one for one in request.messages if isinstance(one.get("content"), list)), None)
    if found is None:
        return None
    found["cache_control"] = MARKER
    return document


def marker_null(document: Document) -> Document | None:
    request = Request(document)
    if not request.messages:
        return None
    request.messages[-1]["cache_control"] = None
    return document


def marker_of_unknown_kind(document: Document) -> Document | None:
    request = Request(document)
    place = request.system
    if not request.is_marked or place is None or "cache_control" not in place[0]:
        return None
    place[0]["cache_control"] = {"type": "persistent"}
    return document


def too_many(document: Document) -> Document | None:
    request = Request(document)
    if not request.is_marked or request.profile.explicit is None or not request.messages:
        return None
    blocks = [{"type": "text", "text": f"Part {n}.", "cache_control": MARKER} for n in range(5)]
    request.messages[-1]["content"] = blocks
    return document


def marker_on_tool(document: Document) -> Document | None:
    request = Request(document)
    if (
        request.dialect not in (Dialect.CHAT, Dialect.DASHSCOPE)
        or not request.tools
        or request.profile.explicit is None
    ):
        return None
    request.tools[-1]["cache_control"] = MARKER
    return document


def marker_in_a_function(document: Document) -> Document | None:
    request = Request(document)
    if request.dialect is not Dialect.CHAT or not request.tools:
        return None
    request.tools[0]["function"]["cache_control"] = MARKER
    return document


def short_lived_first(document: Document) -> Document | None:
    request = Request(document)
    if request.dialect is not Dialect.ANTHROPIC or not isinstance(request.messages[-1]["content"], list):
        return None
    if "cache_control" not in request.messages[-1]["content"][-1]:
        return None
    request.body["system"][0]["cache_control"] = MARKER
    request.messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    return document


def no_marker_at_all(document: Document) -> Document | None:
    request = Request(document)
    if request.dialect is not Dialect.ANTHROPIC or not request.is_marked:
        return None
    del request.body["system"][0]["cache_control"]
    last = request.messages[-1]["content"]
    if isinstance(last, list):
        last[-1].pop("cache_control", None)
    return document


def marker_on_responses(document: Document) -> Document | None:
    request = Request(document)
    if request.dialect is not Dialect.RESPONSES or request.is_wrapped:
        return None
    text = {"type": "input_text", "text": "Again.", "cache_control": MARKER}
    request.body["input"] = [{"role": "user", "content": [text]}]
    return document


def header(value: str, *dialects: Dialect, is_marked: bool = False) -> Spoil:
    def spoil(document: Document) -> Document | None:
        request = Request(document)
        if request.dialect not in dialects or request.is_wrapped or request.is_marked is not is_marked:
            return None
        return {"request": document, "headers": {"x-dashscope-session-cache": value}}

    return spoil


def other_model(name: str, dialect: Dialect, *, vendor: str) -> Spoil:
    def spoil(document: Document) -> Document | None:
        request = Request(document)
        if request.dialect is not dialect or not request.is_marked or request.profile.vendor != vendor:
            return None
        request.body["model"] = name
        return document

    return spoil


def setting(name: str, value: Any, *dialects: Dialect, short: bool | None = None) -> Spoil:
    def spoil(document: Document) -> Document | None:
        request = Request(document)
        if dialects and request.dialect not in dialects:
            return None
        if short is not None and request.is_short_task is not short:
            return None
        request.settings[name] = value
        return document

    return spoil


def long_answer(document: Document) -> Document | None:
    request = Request(document)
    if not request.is_short_task or request.dialect is Dialect.RESPONSES:
        return None
    request.settings["max_tokens"] = 4_000
    return document


def text_format(document: Document) -> Document | None:
    request = Request(document)
    if request.dialect is not Dialect.DASHSCOPE or not (request.tools or request.is_marked):
        return None
    request.settings["result_format"] = "text"
    return document


def history_twice(document: Document) -> Document | None:
    request = Request(document)
    if request.dialect is not Dialect.RESPONSES or not request.messages:
        return None
    request.body["previous_response_id"] = "resp_1"
    return document


_OWN = (Dialect.CHAT, Dialect.DASHSCOPE)
_ANY = tuple(Dialect)
SINGLES: dict[str, tuple[str, Spoil]] = {
    "clock": ("HP101", early("Current time: 2031-04-05 10:00:01")),
    "clock in Chinese": ("HP101", early("当前时间:2031年4月5日 10点03分")),
    "clock of a report": ("HP101", early("Report time 2031-04-05T10:00:01")),
    "clock behind": ("HP101", late("Now: 09:14")),
    "day": ("HP101", early("Today's date is April 5, 2031.")),
    "session id": ("HP102", early("Session ID: 3f2a9c01-1111-4222-8333-444455556666")),
    "user id": ("HP102", early("user_id: u_84213")),
    "user id in Chinese": ("HP102", early("用户编号:84213")),
    "folder": ("HP103", early("Working directory: /home/anna/src/shop")),
    "branch": ("HP103", early("Current branch: fix/rounding")),
    "client header": ("HP105", early("x-anthropic-billing-header: cc_version=9.9.1; cch=a1b2c;")),
    "home in a tool": ("HP104", home_in_a_tool),
    "marked too short": ("HP201", marked_too_short),
    "too short": ("HP202", too_short),
    "marker beside a string": ("HP301", marker_beside_string),
    "marker beside an array": ("HP302", marker_beside_array),
    "null marker": ("HP303", marker_null),
    "unknown marker": ("HP304", marker_of_unknown_kind),
    "too many markers": ("HP305", too_many),
    "marker on a tool": ("HP306", marker_on_tool),
    "marker in a function": ("HP307", marker_in_a_function),
    "short-lived marker first": ("HP308", short_lived_first),
    "no marker": ("HP309", no_marker_at_all),
    "marker on Responses": ("HP401", marker_on_responses),
    "session header on Chat": ("HP402", header("enable", *_OWN, Dialect.ANTHROPIC)),
    "marker and session header": ("HP403", header("enable", *_OWN, Dialect.ANTHROPIC, is_marked=True)),
    "session header misspelt": ("HP404", header("on", *_ANY)),
    "model without explicit cache": (
        "HP405",
        other_model("qwen2.5-72b-instruct", Dialect.CHAT, vendor="dashscope"),
    ),
    "markers for OpenAI": ("HP406", other_model("gpt-4.1", Dialect.CHAT, vendor="dashscope")),
    "cache key": ("HP407", setting("cache_key", "rules-1")),
    "history twice": ("HP408", history_twice),
    "hot": ("HP701", setting("temperature", 1.3, short=True)),
    "long answer": ("HP702", long_answer),
    "stream": ("HP703", setting("stream", True, short=True)),
    "text format": ("HP704", text_format),
}


# Several requests


def twice(change: Callable[[Request], Document | None]) -> SpoilAll:
    """A request and the same, changed."""

    def spoil(document: Document) -> list[Document] | None:
        other = copy(document)
        made = change(Request(other))
        return [document, made] if made is not None else None

    return spoil


def clock_moves(document: Document) -> list[Document] | None:
    if Request(document).system is None:
        return None
    stamps = ("10:00:01", "10:00:02")
    return [early(f"Report time 2031-04-05T{stamp}")(copy(document)) or {} for stamp in stamps]


def word_changes(request: Request) -> Document | None:
    return request.with_system(lambda system: system[:12] + "Be brief. " + system[12:])


def tools_turn(request: Request) -> Document | None:
    if len(request.tools) < 2:
        return None
    request.tools.reverse()
    return request.document


def tool_changes(request: Request) -> Document | None:
    if not request.tools or (request.is_marked and request.dialect is not Dialect.ANTHROPIC):
        return None
    tool = request.tools[-1]
    function = tool.get("function", tool)
    function["description"] += " At once."
    return request.document


def schema_keys_turn(request: Request) -> Document | None:
    if not request.tools:
        return None
    tool = request.tools[0]
    function = tool.get("function", tool)
    name = "input_schema" if "input_schema" in function else "parameters"
    if len(function[name]) < 3:
        return None
    function[name] = dict(reversed(function[name].items()))
    return request.document


def call_keys_turn(request: Request) -> Document | None:
    found = next((one for one in request.messages if one.get("tool_calls")), None)
    if found is None:
        return None
    function = found["tool_calls"][0]["function"]
    arguments = json.loads(function["arguments"])
    function["arguments"] = json.dumps(dict(reversed(arguments.items())), ensure_ascii=False)
    return request.document


def blanks_change(request: Request) -> Document | None:
    return request.with_system(lambda system: system[:20] + "\n" + system[20:])


def model_changes(document: Document) -> list[Document] | None:
    request = Request(document)
    if request.dialect is Dialect.RESPONSES or not request.messages or request.messages[-1]["role"] != "user":
        return None
    after = copy(document)
    other = Request(after)
    other.messages.append({"role": "assistant", "content": "So it is."})
    other.messages.append({"role": "user", "content": "And then?"})
    other.body["model"] += "-2"
    return [document, after]


def salts(document: Document) -> list[Document] | None:
    made = []
    for number in range(3):
        one = copy(document)
        Request(one).settings["cache_salt"] = f"salt-{number * 7919}"
        made.append(one)
    return made


def session_of_another_scene(document: Document) -> list[Document] | None:
    request = Request(document)
    if request.system is None or request.dialect is Dialect.ANTHROPIC:
        return None
    other = copy(document)
    for one, system in (
        (request, None),
        (Request(other), "Tell the weather of a village by the sea, in one line."),
    ):
        one.body["session_id"] = "shared"
        if system is not None:
            one.with_system(lambda _, text=system: text)  # type: ignore[misc]
    return [document, other]


PAIRS: dict[str, tuple[str, SpoilAll]] = {
    "clock moves": ("HP111", clock_moves),
    "words change": ("HP111", twice(word_changes)),
    "tools turn": ("HP112", twice(tools_turn)),
    "a tool changes": ("HP113", twice(tool_changes)),
    "schema keys turn": ("HP118", twice(schema_keys_turn)),
    "call keys turn": ("HP118", twice(call_keys_turn)),
    "blanks change": ("HP119", twice(blanks_change)),
    "the model changes": ("HP121", model_changes),
    "salts": ("HP603", salts),
    "a session for two scenes": ("HP601", session_of_another_scene),
}
