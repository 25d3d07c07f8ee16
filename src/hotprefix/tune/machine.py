"""What a machine has, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: `total` that this process can ever have, `available` now; `bounded_by` says by what."""

    total: int
    available: int
    bounded_by: str = "machine"


@dataclass(frozen=True, slots=True)
class Cores:
    """`usable` by this process, of `present` in the machine; `bounded_by` says by what."""

    usable: int
    present: int
    bounded_by: str = "machine"


@dataclass(frozen=True, slots=True)
class Processor:
    """As OpenVINO reports it: its name, the type it computes in (`bf16`, `f16`, `f32`), what it can."""

    name: str
    computes_in: str
    capabilities: tuple[str, ...] = ()

    @property
    def sixteen_bit(self) -> str:
        """`--kv-precision` of 16 bits: what the processor computes in, if that has 16."""
        return "auto" if self.computes_in in ("bf16", "f16") else "f16"


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes free where the state folder is, and bytes/s; None where nothing was measured.

    `cached` is True if reading may have come from the kernel's cache, so that `read` is an upper bound.
    """

    folder: str
    free: int
    write: float | None = None
    read: float | None = None
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Redis:
    """A Redis or Valkey: bytes it may hold (None: it does not say), and bytes/s."""

    url: str
    room: int | None
    write: float | None = None
    read: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything; `bandwidth` in bytes/s is that of copying memory, read and written bytes counted.

    `load` is how many threads wanted to run in the last minute.
    """

    memory: Memory
    cores: Cores
    processor: Processor
    disk: Disk
    bandwidth: float | None = None
    redis: Redis | None = None
    load: float = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether others want more cores than there are."""
        return self.load > self.cores.usable
