"""What goes into the engine and what comes out of it. Knows nothing of HTTP or OpenVINO."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hotprefix.base.ids import RequestId
from hotprefix.engine.strategy.choice import StrategyChoice


class FinishReason(StrEnum):
    """Why a choice ended; the values are OpenAI's where it has one."""

    STOP = "stop"
    LENGTH = "length"
    ABORTED = "aborted"
    ERROR = "error"


class GrammarKind(StrEnum):
    """Notation of a grammar's source."""

    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    LARK = "lark"


@dataclass(frozen=True, slots=True)
class Grammar:
    """Constrains the answer: `source` is a JSON schema, a regular expression or a Lark grammar."""

    kind: GrammarKind
    source: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one answer is drawn. The API validates ranges; the engine trusts them.

    `top_k` 0 and `top_p` 1.0 mean no limit; `temperature` 0 is greedy; `max_tokens` None is
    "until the context is full"; `top_logprobs` None means that no log-probabilities are wanted.
    """

    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    ignore_eos: bool = False
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    top_logprobs: int | None = None
    grammar: Grammar | None = None


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One prompt, `n` answers. `tenant` separates caches; it comes from the credential. `strategy` None is
    the server's. `keeps_short`: its prompt is kept at once, however short (see `Regulars`)."""

    request_id: RequestId
    prompt_ids: Sequence[int]
    sampling: Sampling = Sampling()
    n: int = 1
    tenant: str = ""
    strategy: StrategyChoice | None = None
    keeps_short: bool = False


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log-probability of one drawn token and of its likeliest alternatives."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of a request so far; `cached_tokens` of the prompt came from the cache.

    `dropped_tokens` of prompt and answer have left the cache again, as the request's strategy has it.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    dropped_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds: waiting for admission, until the first token, and until the end."""

    queued: float
    first_token: float
    total: float


@dataclass(frozen=True, slots=True)
class Delta:
    """Something that happened to choice `index` of a request.

    `finish_reason` is set exactly once per choice, in its last delta. `last` is set exactly
    once per request: on the delta that ends its last choice; `usage` then covers all choices.
    A request's first delta has `usage` too: what the cache gave is known from then on.
    """

    index: int
    text: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: FinishReason | None = None
    stop_sequence: str | None = None
    error: str | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    last: bool = False


DeltaSink = Callable[[Delta], None]
"""Called on the engine's thread, in order; must return at once and never raise."""
