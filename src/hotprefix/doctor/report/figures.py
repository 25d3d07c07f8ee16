"""The figures of a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Money:
    """An amount; money of two currencies has no sum."""

    currency: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Spread:
    """How `count` values lie, in seconds: their mean and percentiles, interpolated between neighbours."""

    count: int
    mean: float
    percentiles: dict[int, float]


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over calls with the same `key`; empty if the log does not tell it.

    None is "no call reported it". `measured` calls reported what they read: `hits` of them read anything,
    and `measured_prompt` tokens are theirs. `judged` calls have a reason, `judged_prompt` and `judged_read`
    are their tokens; of those, `lost` could have been read, `avoidable` of them by doing better. `priced`
    calls have a price.
    """

    key: str
    requests: int
    measured: int
    hits: int
    measured_prompt: int
    judged: int
    judged_prompt: int
    judged_read: int
    priced: int
    prompt: int | None
    computed: int | None
    read: int | None
    written: int | None
    free: int | None
    output: int | None
    lost: int | None
    avoidable: int | None
    first_token: Spread | None
    money: tuple[Money, ...] = ()
    lost_money: tuple[Money, ...] = ()
    avoidable_money: tuple[Money, ...] = ()

    @property
    def hit_rate(self) -> float | None:
        """Tokens read, of the prompt tokens of calls that reported it."""
        return None if self.read is None or not self.measured_prompt else self.read / self.measured_prompt

    @property
    def request_hit_rate(self) -> float | None:
        """Calls that read anything, of those that reported it."""
        return self.hits / self.measured if self.measured else None


class Dimension(StrEnum):
    """What sums are grouped by."""

    SCENE = "scene"
    PROMPT = "prompt"
    TENANT = "tenant"
    MODEL = "model"
    REASON = "reason"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Latency:
    """Times to the first token. `hit` and `miss` by whether anything was read; `shares` by how much of the
    prompt was: name of the share and its times. `curves` are seconds at each percentile of `at`."""

    hit: Spread | None
    miss: Spread | None
    shares: tuple[tuple[str, Spread], ...]
    at: tuple[int, ...] = ()
    curves: dict[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Sums of spans of `width` seconds; keys are Unix seconds of their beginning. Spans without calls are
    left out."""

    width: int
    spans: tuple[Sums, ...]


class Cause(StrEnum):
    """Whose doing it is that tokens were not read."""

    PROMPT = "prompt"
    TEMPLATE = "template"
    MARKERS = "markers"
    TTL = "ttl"
    EVICTION = "eviction"
    ROUTING = "routing"
    GRANULARITY = "granularity"
    PENDING = "pending"
    SERVER = "server"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Loss:
    """What one cause kept from being read. `inferred` tokens of those have no proof, only an inference."""

    cause: Cause
    requests: int
    tokens: int
    inferred: int
    avoidable: int
    money: tuple[Money, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """Ideal against actual, over the calls that have a reason: `prompt` tokens, `read` of them, and `losses`
    of what more could have been read. `coverage` is their share of all prompt tokens."""

    prompt: int
    read: int
    lost: int
    coverage: float
    losses: tuple[Loss, ...]

    @property
    def ceiling(self) -> float:
        """The hit rate that was possible."""
        return (self.read + self.lost) / self.prompt if self.prompt else 0.0

    @property
    def actual(self) -> float:
        """The hit rate that was."""
        return self.read / self.prompt if self.prompt else 0.0


@dataclass(frozen=True, slots=True)
class Offender:
    """A prompt that wastes most. `tokens` is what the ranking goes by: those lost, or with `reason` None
    those computed. `path` and the advice are of the call that lost most."""

    label: str
    reason: str | None
    detail: str | None
    requests: int
    tokens: int
    money: tuple[Money, ...]
    path: str | None
    advice_en: str | None
    advice_zh: str | None


class Pattern(StrEnum):
    """What goes wrong over the turns of a conversation."""

    FROZEN_READ = "frozen_read"
    WRITE_ONLY = "write_only"
    TOOLS_FLIP = "tools_flip"
    SYSTEM_FLIP = "system_flip"
    MODEL_FLIP = "model_flip"


@dataclass(frozen=True, slots=True)
class SessionFinding:
    """A pattern in one session: in how many `turns`, `at` which number of tokens reads stay, how many
    `changes` there were, every how many seconds by median, and about how many tokens that cost."""

    pattern: Pattern
    session: str
    tenant: str
    model: str
    turns: int
    lost: int
    at: int | None = None
    changes: int | None = None
    every: float | None = None


@dataclass(frozen=True, slots=True)
class Sessions:
    """`count` sessions of more than one turn; the findings that cost most, and how many of each there are."""

    count: int
    findings: tuple[SessionFinding, ...]
    totals: dict[Pattern, int]


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know about the figures: its kind, how many calls, of what, and where first."""

    kind: str
    subject: str
    count: int
    place: str


@dataclass(frozen=True, slots=True)
class Compared:
    """How many prompts were compared with earlier ones, of how many that the logs hold."""

    done: int
    held: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything."""

    files: tuple[str, ...]
    since: float | None
    until: float | None
    total: Sums
    groups: dict[Dimension, tuple[Sums, ...]]
    hidden: dict[Dimension, int]
    latency: Latency
    timeline: Timeline | None
    gap: Gap | None
    offenders: tuple[Offender, ...]
    sessions: Sessions | None
    compared: Compared
    notes: tuple[Note, ...]
