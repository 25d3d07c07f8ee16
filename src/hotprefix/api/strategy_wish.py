"""How a request wants its cache kept: a header in every dialect, a body field in OpenAI's."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from hotprefix.engine.strategy.choice import StrategyChoice, parse_choice
from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.prompt.spans import SpannedPrompt

STRATEGY_HEADER = "x-hotprefix-strategy"
DROPPED_HEADER = b"x-hotprefix-dropped-tokens"


def _choice(value: Any) -> Any:
    """A text as in the header, or an object: `type` and the header's parts."""
    if value is None:
        return None
    if isinstance(value, dict):
        parts = {key: part for key, part in value.items() if key != "type"}
        flat = all(isinstance(part, str | int | float) for part in parts.values())
        if not isinstance(value.get("type"), str) or not flat:
            raise PydanticCustomError("strategy", "should have a 'type', and numbers and strings beside it")
        value = "; ".join([value["type"], *(f"{key}={part}" for key, part in parts.items())])
    if not isinstance(value, str):
        raise PydanticCustomError("strategy", "should be a string or an object with a 'type'")
    try:
        return parse_choice(value)
    except ValueError as error:
        raise PydanticCustomError("strategy", "{reason}", {"reason": str(error)}) from None


KvStrategy = Annotated[StrategyChoice | None, BeforeValidator(_choice)]
"""The body field `kv_strategy`."""


def is_cut(choice: StrategyChoice | None, settings: StrategySettings) -> bool:
    """Whether a request's prompt may be longer than the context."""
    name = settings.name if choice is None or choice.name is None else choice.name
    return name.cuts


def settled(
    choice: StrategyChoice | None, settings: StrategySettings, prompt: SpannedPrompt
) -> StrategyChoice | None:
    """The choice of a prompt: how long its system message (with the tools) is becomes known here."""
    if choice is None:
        if not settings.name.cuts:
            return None
        choice = StrategyChoice()
    name = settings.name if choice.name is None else choice.name
    system = 0
    for span in prompt.spans:
        if span.block.role != "system":
            break
        system = span.end_token
    return replace(choice, name=name, system=system)


def strategy_headers(choice: StrategyChoice | None, dropped: int) -> list[tuple[bytes, bytes]]:
    """What was done, where tokens may leave the cache. A stream tells what was dropped of the prompt."""
    if choice is None or choice.name is None or not choice.name.cuts:
        return []
    return [
        (STRATEGY_HEADER.encode(), choice.name.value.encode()),
        (DROPPED_HEADER, str(dropped).encode()),
    ]
