"""A request of any dialect as the rules see it: blocks in the prompt's order, tools, markers, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.edits import Fix
from hotprefix.doctor.lint.suspect import Suspect
from hotprefix.doctor.place import Place
from hotprefix.doctor.recorded import Recorded

SESSION_HEADER = "x-dashscope-session-cache"


class Origin(StrEnum):
    """What a request was read from."""

    DATA = "data"
    CODE = "code"
    TEMPLATE = "template"


class Where(StrEnum):
    """What carries a marker."""

    BLOCK = "block"
    MESSAGE = "message"
    TOOL = "tool"
    TOP = "top"
    OTHER = "other"


class Part(StrEnum):
    """Which part of the prompt a block belongs to."""

    SYSTEM = "system"
    TOOLS = "tools"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Block:
    """One content block: a string content, an array element, a tool, a tool call.

    `message` numbers the messages, −1 for what is before them. `is_open` if a program will put
    more, or other, text there.
    """

    path: str
    role: str
    text: str
    part: Part
    message: int = -1
    suspects: tuple[Suspect, ...] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool and its JSON path."""

    path: str
    definition: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MarkerUse:
    """A `cache_control` as written. `block` is the number of the block that it marks, if any;
    `owner` the path of the object that holds it."""

    path: str
    owner: str
    value: Any
    where: Where
    block: int | None = None


class Source:
    """Where the parts of a request stand in a file. This one only knows where the request begins."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def place(self, path: str, offset: int = 0) -> Place:
        """Of the JSON value at `path`, or of the character `offset` of the text there."""
        return Place(self._place.file, self._place.line, self._place.column, path)

    def fix(self, make: Callable[[Any], Fix | None]) -> Fix | None:
        """What `make` makes of the tree of positions; None where there is none."""
        return None


@dataclass(frozen=True, slots=True)
class LintRequest:
    """`blocks` are in the order in which the model reads them; `newest` is the first of the newest turn.
    `settings` are parameters by name, kept at `settings_root` in this dialect.

    `is_partial`: a program fills in more, so that what is missing can't be judged. `has_open_history`:
    it adds turns of a conversation that are not known here.
    """

    recorded: Recorded
    origin: Origin
    source: Source
    blocks: tuple[Block, ...]
    tools: tuple[ToolDefinition, ...]
    markers: tuple[MarkerUse, ...]
    settings: Mapping[str, Any]
    settings_root: str = ""
    newest: int = 0
    is_partial: bool = False
    has_open_history: bool = False
    open_tools: tuple[Suspect, ...] = field(default=())

    @property
    def dialect(self) -> Dialect:
        """Which API it is for."""
        return self.recorded.dialect

    @property
    def model(self) -> str:
        """The model that it names, empty if it is not known here."""
        found = self.recorded.body.get("model")
        return found if isinstance(found, str) else ""

    @property
    def system_text(self) -> str:
        """All system text together."""
        return "\n".join(block.text for block in self.blocks if block.part is Part.SYSTEM)

    @property
    def is_conversation(self) -> bool:
        """Whether the model has answered in it before."""
        return any(block.role == "assistant" for block in self.blocks)

    @property
    def session_header(self) -> str:
        """The session header's value, empty if it was not sent."""
        return self.recorded.headers.get(SESSION_HEADER, "").strip().lower()
