"""Miss reasons: mutually exclusive, first match wins."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why not more of a prompt came from the cache. NONE means that all that could did."""

    NONE = "NONE"
    # 1: the request changed
    MODEL_CHANGED = "MODEL_CHANGED"
    PARAM_CHANGED = "PARAM_CHANGED"
    SYSTEM_CHANGED = "SYSTEM_CHANGED"
    TOOLS_REORDERED = "TOOLS_REORDERED"
    TOOLS_CHANGED = "TOOLS_CHANGED"
    HEAD_TRIMMED = "HEAD_TRIMMED"
    BLOCK_VANISHED = "BLOCK_VANISHED"
    BLOCK_INSERTED = "BLOCK_INSERTED"
    IMAGE_REPLACED = "IMAGE_REPLACED"
    ARG_KEY_ORDER = "ARG_KEY_ORDER"
    WHITESPACE_ONLY = "WHITESPACE_ONLY"
    HISTORY_EDITED = "HISTORY_EDITED"
    ROLE_CHANGED = "ROLE_CHANGED"
    # 2: the rendering changed
    EXPECTED_TEMPLATE = "EXPECTED_TEMPLATE"
    GENERATION_PROMPT = "GENERATION_PROMPT"
    RETOKENISED = "RETOKENISED"
    # 3: marker rules
    NO_MARKER = "NO_MARKER"
    TOO_MANY_MARKERS = "TOO_MANY_MARKERS"
    LOOKBACK_EXCEEDED = "LOOKBACK_EXCEEDED"
    BELOW_MIN = "BELOW_MIN"
    WRITE_ONLY = "WRITE_ONLY"
    FROZEN_MARKERS = "FROZEN_MARKERS"
    MODE_CONFLICT = "MODE_CONFLICT"
    MODEL_NOT_SUPPORTED = "MODEL_NOT_SUPPORTED"
    # 4: the store
    COLD_FIRST_USE = "COLD_FIRST_USE"
    WRITE_PENDING = "WRITE_PENDING"
    TTL_EXPIRED = "TTL_EXPIRED"
    EVICTED = "EVICTED"
    FLUSHED = "FLUSHED"
    STORE_FAILED = "STORE_FAILED"
    RESTART_LOST = "RESTART_LOST"
    # 5: the engine
    BELOW_BLOCK = "BELOW_BLOCK"
    NO_ROLLBACK = "NO_ROLLBACK"
    STATE_MISSING = "STATE_MISSING"
    FEATURE_DISABLED = "FEATURE_DISABLED"
    # 6: placement
    ROUTED_ELSEWHERE = "ROUTED_ELSEWHERE"
    ROUTER_BLIND = "ROUTER_BLIND"
    TENANT_ISOLATED = "TENANT_ISOLATED"
    # 7: the honest rest
    BEST_EFFORT = "BEST_EFFORT"
    UNKNOWN = "UNKNOWN"
    NOT_REPORTED = "NOT_REPORTED"


class Evidence(StrEnum):
    """How a reason is known."""

    BYTES = "proved by bytes"
    STORE_LOG = "proved by the store's log"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first point where this prompt differs from the earlier one that it resembles most.

    `before` and `after` show up to 20 characters on each side of it, of the earlier and of this one.
    """

    path: str
    block: int
    token: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class MissReport:
    """What the cache gave, what it could have given, and why it did not give more.

    `detail` refines the reason (`VOLATILE_TIME`, a tool's name, how many tokens are missing);
    `lost_money` is in the price table's currency. `avoidable` is False for a first use and the like.
    """

    reason: Reason
    detail: str
    matched: int
    ideal: int
    lost_tokens: int
    lost_money: float
    avoidable: bool
    evidence: Evidence
    divergence: Divergence | None
    advice_en: str
    advice_zh: str
