"""What `hotprefix serve` was asked for, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from hotprefix.api.anthropic.rules import anthropic_rules
from hotprefix.app.state import CALIBRATION_FOLDER
from hotprefix.base.errors import HotprefixError
from hotprefix.engine.settings import DecodeMode
from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.rope_wish import RopeWish
from hotprefix.modes.named_cache import NamedLimits
from hotprefix.profiles.loader import DEFAULT_PROFILE, ProfileBook
from hotprefix.prompt.preprocess.catalogue import StepName
from hotprefix.tiers.settings import DEFAULT_REDIS, TierSettings

SHORTEST_KEPT = 128
"""Tokens; shorter text gains little from a cache."""
TIER_FOLDER = "kv"
"""The disk tier in a state folder."""


class KvPrecision(StrEnum):
    """Element type of the KV arena; AUTO is what the CPU computes in best, and the layered ones keep
    the first layers in 16 bits."""

    AUTO = "auto"
    BF16 = "bf16"
    F16 = "f16"
    F32 = "f32"
    U8 = "u8"
    U4 = "u4"
    LAYERED_U8 = "layered-u8"
    LAYERED_U4 = "layered-u4"


class CachePolicy(StrEnum):
    """Which cached blocks go first when room is needed."""

    LRU = "lru"
    SLRU = "slru"
    ADAPTIVE = "adaptive"


class LogFormat(StrEnum):
    """AUTO is CONSOLE on a terminal and JSON elsewhere."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class LogLevel(StrEnum):
    """The least that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Sizes in bytes, times in seconds, lengths in tokens; None means "the engine chooses".

    Without `state_dir` nothing outlives the server.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    model: str = DEFAULT_MODEL
    served_name: str | None = None
    kv_arena: int = 2 * 1024**3
    kv_precision: KvPrecision = KvPrecision.AUTO
    kv_16bit_layers: int = 3
    rope_scaling: RopeWish | None = None
    strategy: StrategySettings = field(default_factory=StrategySettings)
    kv_ram: int = 0
    kv_disk: int = 0
    kv_redis: int = 0
    redis_url: str = DEFAULT_REDIS
    kv_codec: str = "raw"
    kv_disk_key: Path | None = None
    cache: bool = True
    policy: CachePolicy = CachePolicy.ADAPTIVE
    shortest_kept: int | None = None
    max_context: int | None = None
    threads: int | None = None
    max_running: int | None = None
    max_waiting: int | None = None
    prefill_chunk: int | None = None
    decode: DecodeMode = DecodeMode.FAST
    drain_timeout: float = 30.0
    body_limit: int = 16 * 1024**2
    log_format: LogFormat = LogFormat.AUTO
    log_level: LogLevel = LogLevel.INFO
    state_dir: Path | None = None
    ledger_url: str | None = None
    require_keys: bool = False
    isolate_scenes: bool = False
    redact: bool = False
    trace: Path | None = None
    dashboard: bool = True
    profile: str = DEFAULT_PROFILE
    profiles_dir: Path | None = None
    preprocess: tuple[StepName, ...] = ()
    named: NamedLimits = field(default_factory=NamedLimits)
    warm: tuple[Path, ...] = ()
    warm_key: str | None = None

    def under(self, profiles: ProfileBook) -> ServeSettings:
        """With what its profiles lead to: text that one of them counts is never too short to keep.

        Raises `UnknownProfile`, and `HotprefixError` if text that counts was asked to be too short.
        """
        served = profiles.get(self.profile)
        followed = (served, anthropic_rules(served, profiles))
        counted = [(one.least, one.name) for one in followed if one.least is not None]
        least, name = min(counted, default=(None, ""))
        if self.shortest_kept is None:
            kept = SHORTEST_KEPT if least is None else min(SHORTEST_KEPT, least)
            return replace(self, shortest_kept=kept)
        if least is not None and self.shortest_kept > least:
            raise HotprefixError(
                f"--shortest-kept {self.shortest_kept}: the profile {name} counts text from {least:,} tokens "
                f"on, so that has to be kept. Choose at most {least}."
            )
        return self

    @property
    def tiers(self) -> TierSettings:
        """What is kept outside the arena."""
        return TierSettings(
            ram_bytes=self.kv_ram,
            disk_bytes=self.kv_disk,
            redis_bytes=self.kv_redis,
            disk_folder=None if self.state_dir is None else self.state_dir / TIER_FOLDER,
            disk_key=self.kv_disk_key,
            redis_url=self.redis_url,
            codec=self.kv_codec,
            calibrations=None if self.state_dir is None else self.state_dir / CALIBRATION_FOLDER,
        )
