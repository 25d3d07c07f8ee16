"""On what a benchmark ran: without it a figure means nothing."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hotprefix.base.clock import Clock

_PACKAGES = ("hotprefix", "openvino", "openvino-genai", "numpy")


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine, the software and the time."""

    cpu: str
    cores: int
    memory_gib: float
    system: str
    python: str
    packages: dict[str, str]
    date: str

    def line(self) -> str:
        """All of it in one line, for captions."""
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        return (
            f"{self.cpu}, {self.cores} cores, {self.memory_gib:.0f} GiB; {self.system}; "
            f"Python {self.python}; {packages}; {self.date}"
        )


def read_environment(clock: Clock) -> Environment:
    """The environment of this process."""
    return Environment(
        cpu=_cpu_name(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        packages={name: number for name in _PACKAGES if (number := _version(name))},
        date=datetime.fromtimestamp(clock.wall(), UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
