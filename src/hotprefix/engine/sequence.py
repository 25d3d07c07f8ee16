"""One answer in the making."""

from __future__ import annotations

from hotprefix.base.ids import BlockKey
from hotprefix.cache.base import Room
from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import Logits
from hotprefix.engine.request import DeltaSink, GenerationRequest, TokenLogprob
from hotprefix.engine.row_state import RowState
from hotprefix.engine.stops import StopScanner
from hotprefix.engine.strategy.base import Strategy
from hotprefix.engine.strategy.tally import Tally
from hotprefix.keys.chain import TokenHistory
from hotprefix.prompt.tokenizer import TokenStream


class RequestState:
    """What the choices of one request share: its sink, its times (seconds) and its counts."""

    __slots__ = (
        "admitted_at",
        "cached_tokens",
        "completion_tokens",
        "dropped_tokens",
        "first_token_at",
        "is_heard",
        "open_choices",
        "request",
        "sequences",
        "sink",
        "submitted_at",
    )

    def __init__(self, request: GenerationRequest, sink: DeltaSink, now: float) -> None:
        self.request = request
        self.sink = sink
        self.submitted_at = now
        self.admitted_at: float | None = None
        self.first_token_at: float | None = None
        self.cached_tokens = 0
        self.dropped_tokens = 0
        self.is_heard = False
        self.completion_tokens = 0
        self.open_choices = request.n
        self.sequences: list[Sequence] = []


class Sequence:
    """One choice of a request: its tokens, its blocks and how its text is read.

    `history` is prompt and answer; tokens [holding.computed, len(history)) have no KV yet.
    One such token means decoding, several mean prefill.
    """

    __slots__ = (
        "history",
        "holding",
        "index",
        "limit",
        "logprobs",
        "parent",
        "prompt_tokens",
        "ready_logits",
        "row",
        "stops",
        "strategy",
        "tally",
        "text",
        "token_at",
        "unsent",
        "waits_for",
    )

    def __init__(
        self,
        parent: RequestState,
        index: int,
        history: TokenHistory,
        row: RowState,
        text: TokenStream,
        strategy: Strategy,
    ) -> None:
        self.parent = parent
        self.strategy = strategy
        self.tally: Tally | None = None
        self.index = index
        self.history = history
        self.row = row
        self.text = text
        self.stops = StopScanner(parent.request.sampling.stop)
        self.prompt_tokens = len(history)
        self.limit = 0
        self.holding: Holding | None = None
        self.ready_logits: Logits | None = None
        self.waits_for: BlockKey | None = None
        self.token_at: float | None = None
        self.unsent: list[int] = []
        self.logprobs: list[TokenLogprob] = []

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return len(self.history) - self.prompt_tokens

    @property
    def room(self) -> Room:
        """What its strategy takes of the arena at the start."""
        return self.strategy.room(len(self.history), max(0, self.limit - self.generated))

    @property
    def is_kept_at_once(self) -> bool:
        """Whether its prompt is kept however short: it was asked for, or other choices wait for it."""
        request = self.parent.request
        return request.keeps_short or request.n > 1

    @property
    def is_decoding(self) -> bool:
        """Whether the next pass is for one token that was drawn."""
        return self.pending == 1 and self.generated > 0

    @property
    def pending(self) -> int:
        """Tokens without KV."""
        return len(self.history) - (self.holding.computed if self.holding is not None else 0)
