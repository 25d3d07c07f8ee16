"""All steps by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hotprefix.prompt.preprocess.canonical_tools import CanonicalTools, as_sent, by_name
from hotprefix.prompt.preprocess.invalid_characters import invalid_character_changes
from hotprefix.prompt.preprocess.line_ends import line_end_changes
from hotprefix.prompt.preprocess.pipeline import Pipeline
from hotprefix.prompt.preprocess.pollution import pollution_changes
from hotprefix.prompt.preprocess.step import Step, TextStep
from hotprefix.prompt.preprocess.truncate import CountTokens, Truncate
from hotprefix.prompt.preprocess.unicode_form import unicode_changes
from hotprefix.prompt.preprocess.volatile_headers import (
    HeaderPattern,
    VolatileHeaders,
    load_header_patterns,
)

NO_STEPS = "none"


class StepName(StrEnum):
    """What can be asked for. Steps run in this order, whatever the order they are asked for in."""

    INVALID_CHARACTERS = "invalid-characters"
    LINE_ENDS = "line-ends"
    UNICODE = "unicode"
    VOLATILE_HEADERS = "volatile-headers"
    POLLUTION = "pollution"
    CANONICAL_TOOLS = "canonical-tools"
    TOOLS_BY_NAME = "tools-by-name"
    TRUNCATE = "truncate"


def parse_steps(text: str) -> tuple[StepName, ...]:
    """Names between commas, each once, in the order they run. `none` is none; ValueError lists the names."""
    wanted = {name.strip() for name in text.split(",")} - {"", NO_STEPS}
    unknown = sorted(wanted - set(StepName))
    if unknown:
        raise ValueError(
            f"there is no step '{unknown[0][:60]}'; there are {', '.join(StepName)}, and {NO_STEPS}"
        )
    return tuple(name for name in StepName if name in wanted)


class Steps:
    """Builds pipelines for a model whose prompts have at most `limit` tokens, as `count` counts them.

    `headers` are the volatile ones; by default those that ship with Hotprefix.
    """

    def __init__(
        self, limit: int, count: CountTokens, headers: Sequence[HeaderPattern] | None = None
    ) -> None:
        steps: tuple[Step, ...] = (
            TextStep(StepName.INVALID_CHARACTERS, invalid_character_changes),
            TextStep(StepName.LINE_ENDS, line_end_changes),
            TextStep(StepName.UNICODE, unicode_changes),
            VolatileHeaders(load_header_patterns() if headers is None else headers),
            TextStep(StepName.POLLUTION, pollution_changes),
            CanonicalTools(StepName.CANONICAL_TOOLS, as_sent),
            CanonicalTools(StepName.TOOLS_BY_NAME, by_name),
            Truncate(limit, count),
        )
        self._steps = {step.name: step for step in steps}

    def pipeline(self, names: Sequence[StepName]) -> Pipeline:
        """The steps that are wanted."""
        return Pipeline([self._steps[name] for name in names])
