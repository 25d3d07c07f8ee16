"""What the operator asked of the tiers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_REDIS = "redis://127.0.0.1:6379/0"


@dataclass(frozen=True, slots=True)
class TierSettings:
    """Sizes in bytes; 0 leaves a tier out.

    `disk_folder` is where the disk tier lives, `disk_key` a file with 32 bytes that encrypt it
    and what goes to Redis.
    `codec` says in which form blocks are kept, `calibrations` is the folder of what `mixed` was taught.
    """

    ram_bytes: int = 0
    disk_bytes: int = 0
    redis_bytes: int = 0
    disk_folder: Path | None = None
    disk_key: Path | None = None
    redis_url: str = DEFAULT_REDIS
    codec: str = "raw"
    calibrations: Path | None = None

    @property
    def is_any(self) -> bool:
        """Whether there is a tier at all."""
        return bool(self.ram_bytes or self.disk_bytes or self.redis_bytes)

    @property
    def is_lasting(self) -> bool:
        """Whether something is still there after a restart."""
        return bool(self.disk_bytes or self.redis_bytes)
