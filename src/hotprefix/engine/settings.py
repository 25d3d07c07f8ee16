"""How the engine is set up."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.tenants.quota import TenantQuota
from hotprefix.tiers.settings import TierSettings

MIB = 1024 * 1024


class DecodeMode(StrEnum):
    """`fast` computes one query row a step. `exact` computes the last token's row again beside
    the new one, which takes the attention kernel of prefill: what is cached of an answer then
    equals, bit for bit, what a prefill of the same tokens would have written."""

    FAST = "fast"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Limits and choices; sizes in bytes, chunks in tokens.

    `policy` None switches prefix reuse off. `prefill_chunk` is the most that one step computes
    of prompts when nobody decodes, `mixed_chunk` when somebody does: it bounds how long a long
    prompt can delay the next token of others. `logits_bytes` bounds the logits kept for exact
    repeats. Text under `shortest_kept` tokens is kept only if it comes again. `quotas` are tenants' shares
    of the cache. `kv_precision` is `auto` (as the processor computes), an OpenVINO type name, or
    `layered-u8` or `layered-u4`: the first `kv_16bit_layers` layers in 16 bits, the others in the named
    type. `strategy` says how a request uses the arena.
    """

    arena_bytes: int = 1024 * MIB
    kv_precision: str = "auto"
    kv_16bit_layers: int = 3
    policy: str | None = "lru"
    max_context: int | None = None
    threads: int | None = None
    max_running: int = 128
    max_waiting: int = 2048
    prefill_chunk: int = 512
    mixed_chunk: int = 256
    decode: DecodeMode = DecodeMode.FAST
    logits_bytes: int = 64 * MIB
    shortest_kept: int = 0
    secret: bytes = b""
    quotas: tuple[TenantQuota, ...] = ()
    tiers: TierSettings = field(default_factory=TierSettings)
    strategy: StrategySettings = field(default_factory=StrategySettings)
