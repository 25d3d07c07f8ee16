"""What is remembered of a request, to compare later ones with."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from hotprefix.diagnosis.sketch import sketch_of
from hotprefix.diagnosis.toolset import NO_TOOLS, ToolSet, record_tools
from hotprefix.prompt.spans import BlockSpan, SpannedPrompt

ANSWER = "answer"
"""Path of the last block: the template's opening of the answer and, once known, the answer."""

TEXT_LIMIT = 16_384
_LONGEST_VALUE = 64
_ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class BlockBody:
    """A block's content, shared by all snapshots that have it.

    `digest` is over text, template text and tokens, `text_digest` over the text alone. `text` and
    `lead`, the template's text before it, are kept up to a bound; `length` is the whole text's;
    `is_complete` if nothing was cut. If the template changed the text, `is_altered`, and `lead` is
    all that was rendered. `ids` are the tokens from the end of the block before, 32 bits each.
    """

    digest: bytes
    text_digest: bytes
    text: str
    length: int
    lead: str
    lead_digest: bytes
    is_altered: bool
    is_complete: bool
    ids: bytes

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.ids) // _ID_BYTES

    @property
    def rendered(self) -> str:
        """What the model reads, as far as it is kept."""
        return self.lead if self.is_altered else self.lead + self.text


@dataclass(frozen=True, slots=True)
class SnapshotBlock:
    """A content block at its place; `end_token` counts the prompt's tokens up to its end."""

    path: str
    role: str
    end_token: int
    body: BlockBody


@dataclass(frozen=True, slots=True)
class PromptSnapshot:
    """A request as it is remembered.

    `blocks` end with the one called `ANSWER`; `markers` are indices of the marked blocks that
    count, rising; `expires` says for marked blocks until when their entries live, on the clock
    that `at` was read from. `parameters` hold long values as digests. `sketch` are hashes of
    token runs by which similar prompts are found.
    """

    model: str
    parameters: Mapping[str, str]
    blocks: tuple[SnapshotBlock, ...]
    tools: ToolSet
    markers: tuple[int, ...]
    at: float
    scene: str
    tokens: int
    sketch: tuple[int, ...] = ()
    expires: Mapping[int, float] = field(default_factory=dict)

    def answered(self, text: str, token_ids: Sequence[int]) -> PromptSnapshot:
        """With the answer that was drawn, so that its reuse can be judged."""
        last = self.blocks[-1]
        opening = last.body.ids[: (self.tokens - self._end_of_content()) * _ID_BYTES]
        body = _body(text, last.body.lead, False, opening + _packed(token_ids), TEXT_LIMIT)
        return replace(self, blocks=(*self.blocks[:-1], replace(last, body=body)))

    def written(self, expires: Mapping[int, float]) -> PromptSnapshot:
        """With the lifetimes of the entries that the request wrote or renewed."""
        return replace(self, expires=dict(expires))

    def _end_of_content(self) -> int:
        return self.blocks[-2].end_token if len(self.blocks) > 1 else 0


@dataclass(frozen=True, slots=True)
class SnapshotExtras:
    """What belongs to a request beside its prompt. See `PromptSnapshot`."""

    model: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    tools: Sequence[Mapping[str, Any]] = ()
    markers: Sequence[int] = ()
    scene: str = ""


def take_snapshot(
    prompt: SpannedPrompt, extras: SnapshotExtras, now: float, text_limit: int = TEXT_LIMIT
) -> PromptSnapshot:
    """Remember a request; `text_limit` characters a block and bytes a tool are kept as text."""
    ids = _packed(prompt.token_ids)
    return PromptSnapshot(
        model=extras.model,
        parameters={name: _short(value) for name, value in extras.parameters.items()},
        blocks=tuple(_blocks(prompt, ids, text_limit)),
        tools=record_tools(extras.tools, text_limit) if extras.tools else NO_TOOLS,
        markers=tuple(sorted(set(extras.markers))),
        at=now,
        scene=extras.scene,
        tokens=len(prompt.token_ids),
        sketch=sketch_of(ids),
    )


def _blocks(prompt: SpannedPrompt, ids: bytes, text_limit: int) -> Iterable[SnapshotBlock]:
    start_char = start_token = 0
    for span in prompt.spans:
        segment = prompt.text[start_char : span.end_char]
        body = _span_body(
            span, segment, ids[start_token * _ID_BYTES : span.end_token * _ID_BYTES], text_limit
        )
        yield SnapshotBlock(span.block.path, span.block.role, span.end_token, body)
        start_char, start_token = span.end_char, span.end_token
    opening = _body("", prompt.text[start_char:], False, ids[start_token * _ID_BYTES :], text_limit)
    yield SnapshotBlock(ANSWER, "assistant", len(prompt.token_ids), opening)


def _span_body(span: BlockSpan, segment: str, ids: bytes, text_limit: int) -> BlockBody:
    text = span.block.text
    if segment.endswith(text):
        return _body(text, segment[: len(segment) - len(text)], False, ids, text_limit)
    return _body(text, segment, True, ids, text_limit)


def _body(text: str, lead: str, is_altered: bool, ids: bytes, limit: int) -> BlockBody:
    text_digest = _digest(text.encode("utf-8", "surrogatepass"))
    tokens = _digest(ids)
    template = _digest(lead.encode("utf-8", "surrogatepass"))
    return BlockBody(
        digest=_digest(text_digest + template + tokens),
        text_digest=text_digest,
        text=text[:limit],
        length=len(text),
        lead=lead[:limit],
        lead_digest=template,
        is_altered=is_altered,
        is_complete=max(len(text), len(lead)) <= limit,
        ids=ids,
    )


def _packed(token_ids: Sequence[int]) -> bytes:
    return array("i", token_ids).tobytes()


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _short(value: str) -> str:
    if len(value) <= _LONGEST_VALUE:
        return value
    return "digest:" + _digest(value.encode("utf-8", "surrogatepass")).hex()
