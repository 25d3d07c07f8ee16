"""Tools of a Responses request, and what they demand of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from hotprefix.api.fields import FreeObject, Wire
from hotprefix.engine.request import Grammar, GrammarKind
from hotprefix.prompt.tools import tool_call_lark

_MOST_CALLS = 8
"""In one answer of a model that has to call."""


class FunctionTool(Wire):
    """A function that the client runs."""

    type: Literal["function"]
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]
    description: str | None = None
    parameters: FreeObject | None = None
    strict: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _only_functions(cls, value: Any) -> Any:
        if isinstance(value, dict) and (kind := value.get("type")) != "function":
            shown = kind[:40] if isinstance(kind, str) else "missing"
            raise PydanticCustomError(
                "unsupported",
                "this server has no tools of its own, such as {kind}: give functions, and run them yourself",
                {"kind": shown, "field": "type"},
            )
        return value

    def plain(self) -> dict[str, Any]:
        """The tool as the chat template takes it."""
        function: dict[str, Any] = {"name": self.name}
        if self.description is not None:
            function["description"] = self.description
        function["parameters"] = self.parameters or {"type": "object", "properties": {}}
        return {"type": "function", "function": function}

    def shown(self) -> dict[str, Any]:
        """The tool as the response repeats it."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "strict": self.strict,
        }


class NamedTool(Wire):
    """`tool_choice` that names the one function to call."""

    type: Literal["function"]
    name: str


def _choice(value: Any) -> Any:
    if value in ("none", "auto", "required"):
        return value
    if isinstance(value, dict) and value.get("type") == "function":
        return NamedTool.model_validate(value)
    raise PydanticCustomError(
        "value", "should be 'none', 'auto', 'required' or {{\"type\": \"function\", \"name\": …}}"
    )


ToolChoice = Annotated[NamedTool | Literal["none", "auto", "required"], BeforeValidator(_choice)]


def call_grammar(
    choice: NamedTool | str | None, tools: Sequence[dict[str, Any]], *, most: int = _MOST_CALLS
) -> Grammar | None:
    """A grammar that forces a call, if the choice does."""
    if isinstance(choice, NamedTool):
        named = [tool for tool in tools if tool["function"]["name"] == choice.name]
        return Grammar(GrammarKind.LARK, tool_call_lark(named))
    if choice == "required":
        return Grammar(GrammarKind.LARK, tool_call_lark(tools, most))
    return None
