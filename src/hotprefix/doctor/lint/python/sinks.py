"""Calls that send a request, and what of a program is a prompt without being sent here."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hotprefix.doctor.dialect import Dialect, dialect_of
from hotprefix.doctor.lint.python.module import Module
from hotprefix.doctor.lint.python.scope import is_changing
from hotprefix.doctor.lint.python.value import Value, deep_suspects, text_of, unknown
from hotprefix.doctor.lint.suspect import Suspect

_BY_METHOD = (
    (re.compile(r"(?:^|\.)chat\.completions\.(?:with_\w+\.)?(?:create|parse|stream)$"), Dialect.CHAT),
    (re.compile(r"^(?:litellm\.)(?:a?completion)$"), Dialect.CHAT),
    (re.compile(r"(?:^|\.)responses\.(?:with_\w+\.)?(?:create|parse|stream)$"), Dialect.RESPONSES),
    (
        re.compile(r"(?:^|\.)messages\.(?:with_\w+\.)?(?:create|stream|parse|count_tokens)$"),
        Dialect.ANTHROPIC,
    ),
    (re.compile(r"(?:^|\.)(?:Aio)?(?:Generation|MultiModalConversation)\.call$"), Dialect.DASHSCOPE),
)
_POSTS = re.compile(r"(?:^|\.)(?:post|request|stream)$")
_EXTRAS = ("extra_body", "extra_headers", "extra_query", "timeout")
_NATIVE = ("model", "messages", "prompt", "history", "api_key", "workspace", "headers", "plugins")
_MESSAGE_CLASSES = {
    "SystemMessage": "system",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "SystemMessagePromptTemplate.from_template": "system",
    "HumanMessagePromptTemplate.from_template": "user",
}
_ROLES = {
    "system": "system",
    "developer": "system",
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
}
_PROMPT_NAME = re.compile(
    r"(?:^|_)(?:sys(?:tem)?_?(?:prompt|message|msg|instructions?|text|template)|instructions?|preamble|prompt_prefix)$|^system$",
    re.IGNORECASE,
)
_OF_MODELS = re.compile(
    r"prompt|\bllms?\b|assistant|openai|anthropic|dashscope|litellm|langchain|llama|agents|ollama|cohere|mistral"
    r"|genai|groq|bedrock|vllm|transformers",
    re.IGNORECASE,
)
"""Words of programs that talk to models; in others `system_message` is one of an operating system."""
_PROMPT_FUNCTION = re.compile(
    r"(?:^|_)(?:system_?(?:prompt|message|instructions?)|instructions)(?:$|_)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Sink:
    """A request as a program makes it: `body` and `headers` are objects; `is_sent` by a known call."""

    dialect: Dialect
    body: Value
    headers: Value
    node: ast.AST
    is_sent: bool = True


@dataclass(slots=True)
class Sinks:
    """All that a module sends, and prompts that it makes without sending them."""

    module: Module
    found: list[Sink] = field(default_factory=list)
    _loose: list[Value] = field(default_factory=list)
    _sent: set[int] = field(default_factory=set)
    _sent_nodes: set[int] = field(default_factory=set)

    def call(self, node: ast.Call, dotted: str, args: list[Value], named: Mapping[str, Value]) -> None:
        """A call: a request if it is one of a known client's, else perhaps instructions of an agent."""
        dialect = next((dialect for pattern, dialect in _BY_METHOD if pattern.search(dotted)), None)
        if dialect is not None:
            self._add(_request(node, dialect, args, named))
        elif _POSTS.search(dotted):
            self._posted(node, args, named)
        else:
            for name, value in named.items():
                if _PROMPT_NAME.search(name) and self._is_meant(name):
                    self._loose.append(value)

    def assigned(self, name: str, value: Value) -> None:
        """A variable whose name says that it holds a prompt, or a list of messages."""
        last = name.rsplit(".", 1)[-1]
        if (_PROMPT_NAME.search(last) and self._is_meant(last)) or _is_conversation(value):
            self._loose.append(value)

    def returned(self, function: str, value: Value) -> None:
        """What a function gives back."""
        is_prompt = _PROMPT_FUNCTION.search(function) is not None and self._is_meant(function)
        if is_prompt or _is_conversation(value):
            self._loose.append(value)

    def _is_meant(self, name: str) -> bool:
        """Whether a name that may be one of a prompt is: it says so, or the program is about models."""
        return "prompt" in name.lower() or _OF_MODELS.search(self.module.text) is not None

    def written(self, value: Value) -> None:
        """An object or a message that stands in the program."""
        members = value.members
        if members is not None and _role_of(members) == "system" and "content" in members:
            self._loose.append(value)

    def listed(self, value: Value) -> None:
        """A list of messages that stands in the program."""
        if _is_conversation(value):
            self._loose.append(value)

    def finish(self) -> list[Sink]:
        """All requests; prompts that are not sent here as requests that lack the rest."""
        told = {_source(s) for sink in self.found for s in deep_suspects(sink.body) if is_changing(s)}
        conversations = {id(value): value for value in self._loose if _is_conversation(value)}.values()
        for value in conversations:
            # One that was sent with other arguments is the same list, of which more is known.
            if id(value) not in self._sent and id(value.node) not in self._sent_nodes:
                told |= {_source(suspect) for suspect in deep_suspects(value)}
                self.found.append(_sink(Dialect.CHAT, {"messages": value}, value))
        for value in self._loose:
            changing = {_source(suspect) for suspect in deep_suspects(value) if is_changing(suspect)}
            if _is_conversation(value) or not changing - told:
                continue
            told |= changing
            content = value.members["content"] if value.members and "content" in value.members else value
            role = Value(text="system")
            message = Value(value.node, members={"role": role, "content": _as_text(content)})
            rest = unknown(None, "history")
            self.found.append(_sink(Dialect.CHAT, {"messages": Value(items=[message, rest])}, value))
        return self.found

    def _add(self, sink: Sink) -> None:
        self.found.append(sink)
        for member in (sink.body.members or {}).values():
            self._sent.add(id(member))
            self._sent_nodes |= {id(member.node)} if member.node is not None else set()
            self._sent |= {id(item) for item in (member.members or {}).values()}

    def _posted(self, node: ast.Call, args: list[Value], named: Mapping[str, Value]) -> None:
        body = named.get("json") or named.get("data") or named.get("content")
        url = text_of(named.get("url") or (args[0] if args else unknown(None, "")))[0]
        if body is None or body.members is None:
            return
        plain = {name: _plain(value) for name, value in body.members.items()}
        dialect = dialect_of(plain, url)
        if dialect is not None:
            headers = named.get("headers") or Value(members={})
            self._add(Sink(dialect, body, headers, node))


def message_of(dotted: str, args: list[Value], named: Mapping[str, Value], node: ast.AST) -> Value | None:
    """`SystemMessage(content=…)` and its like as the object that it becomes."""
    last = dotted.split(".")
    role = _MESSAGE_CLASSES.get(last[-1]) or _MESSAGE_CLASSES.get(".".join(last[-2:]))
    content = named.get("content") or named.get("template") or (args[0] if args else None)
    if role is None or content is None:
        return None
    members = {"role": Value(text=role), "content": content}
    members |= {name: value for name, value in named.items() if name not in members}
    return Value(node, members=members)


def messages_of(pairs: Value) -> Value:
    """`[("system", "…"), …]` of LangChain's templates as messages."""
    items: list[Value] = []
    for item in pairs.items or ():
        role = item.items[0].text if item.items is not None and len(item.items) == 2 else None
        if item.items is not None and role in _ROLES:
            members = {"role": Value(text=_ROLES[role]), "content": item.items[1]}
            items.append(Value(item.node, members=members))
        else:
            items.append(item)
    return replace(pairs, items=items)


def _request(node: ast.Call, dialect: Dialect, args: list[Value], named: Mapping[str, Value]) -> Sink:
    members = {name: value for name, value in named.items() if name not in _EXTRAS}
    headers = named.get("extra_headers") or named.get("headers") or Value(members={})
    extra = named.get("extra_body")
    if extra is not None and extra.members is not None:
        members |= extra.members
    if dialect is Dialect.DASHSCOPE:
        return Sink(dialect, Value(node, members=_native(args, members)), headers, node)
    return Sink(dialect, Value(node, members=members), headers, node)


def _native(args: list[Value], members: dict[str, Value]) -> dict[str, Value]:
    given: dict[str, Value] = {
        name: members[name] for name in ("messages", "prompt", "history") if name in members
    }
    rest = {name: value for name, value in members.items() if name not in _NATIVE}
    made = {"input": Value(members=given), "parameters": Value(members=rest)}
    model = members.get("model") or (args[0] if args else None)
    return made | ({"model": model} if model is not None else {})


def _sink(dialect: Dialect, members: dict[str, Value], origin: Value) -> Sink:
    node = origin.node or ast.Constant(value=None)
    return Sink(dialect, Value(node, members=members), Value(members={}), node, is_sent=False)


def _as_text(value: Value) -> Value:
    if value.text is not None or value.items is not None:
        return value
    text, suspects = text_of(value)
    return Value(value.node, text=text, suspects=suspects)


def _is_conversation(value: Value) -> bool:
    """Whether a list holds messages, and not only one."""
    roles = [
        _role_of(item.members) for item in value.items or () if item.members and "content" in item.members
    ]
    return len(roles) >= 2


def _role_of(members: Mapping[str, Value]) -> str:
    role = members.get("role")
    return "system" if role is not None and role.text == "developer" else (role.text or "") if role else ""


def _source(suspect: Suspect) -> tuple[Any, ...]:
    return suspect.cause, suspect.line, suspect.column


def _plain(value: Value) -> Any:
    """Enough of a value to tell which API it is for."""
    if value.members is not None:
        return {name: _plain(item) for name, item in value.members.items()}
    if value.items is not None:
        return [_plain(item) for item in value.items]
    return value.text if value.text is not None else ""
