"""Memory and cores that this process may use: the machine's, its cgroup's, its CPU set's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hotprefix.base.errors import HotprefixError
from hotprefix.tune.machine import Cores, Memory

_KIB = 1024


class SystemFiles:
    """`/proc` and `/sys` below `root`.

    Sources: proc_meminfo(5), cgroups(7), the kernel's `cgroup-v2.rst` and `cgroup-v1/memory.rst`.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def memory(self) -> Memory:
        """The machine's, or that of the tightest cgroup above this process. Raises `HotprefixError`."""
        facts = self._meminfo()
        memory = Memory(facts["MemTotal"], facts["MemAvailable"])
        for limit, used in self._memory_limits():
            if limit < memory.total:
                available = min(memory.available, max(0, limit - used))
                memory = Memory(limit, available, "cgroup")
        return memory

    def cores(self, affinity: int, present: int) -> Cores:
        """`affinity` cores by the CPU set, fewer if a cgroup gives less time than that, at least one."""
        cores = Cores(affinity, present, "machine" if affinity == present else "CPU set")
        for quota in self._quotas():
            # Threads beyond the quota are throttled together: rounding up would cost more than it gives.
            if int(quota) < cores.usable:
                cores = Cores(max(1, int(quota)), present, "cgroup")
        return cores

    def _meminfo(self) -> dict[str, int]:
        facts = {}
        for line in self._text(Path("proc/meminfo")).splitlines():
            name, _, value = line.partition(":")
            if value.split()[1:] == ["kB"]:
                facts[name] = int(value.split()[0]) * _KIB
        if not {"MemTotal", "MemAvailable"} <= facts.keys():
            raise HotprefixError("/proc/meminfo does not say how much memory there is; 'tune' needs Linux")
        return facts

    def _memory_limits(self) -> Iterator[tuple[int, int]]:
        """Limit and bytes in use that can't be dropped, of every cgroup above this process."""
        for folder in self._folders("memory"):
            yield from self._memory_limit(folder, "memory.max", "memory.current", "inactive_file")
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from self._memory_limit(folder, *names)

    def _memory_limit(
        self, folder: Path, limit: str, usage: str, droppable: str
    ) -> Iterator[tuple[int, int]]:
        most = self._text(folder / limit).strip()
        if not most.isdecimal():
            return
        used = self._text(folder / usage).strip()
        stat = dict(
            line.split()[:2] for line in self._text(folder / "memory.stat").splitlines() if " " in line
        )
        yield int(most), max(0, int(used or 0) - int(stat.get(droppable, 0)))

    def _quotas(self) -> Iterator[float]:
        """Cores' worth of time of every cgroup above this process."""
        for folder in self._folders("cpu"):
            parts = self._text(folder / "cpu.max").split()
            parts = parts or [
                self._text(folder / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            ]
            if len(parts) == 2 and all(part.isdecimal() for part in parts) and int(parts[1]):
                yield int(parts[0]) / int(parts[1])

    def _folders(self, controller: str) -> Iterator[Path]:
        """This process's cgroup of a controller and all above it, in both versions."""
        base = Path("sys/fs/cgroup")
        for line in self._text(Path("proc/self/cgroup")).splitlines():
            number, controllers, path = (*line.split(":", 2), "", "")[:3]
            if number == "0" and not controllers:
                roots = [base, base / "unified"]
            elif controller in controllers.split(","):
                roots = [base / controllers, base / controller]
            else:
                continue
            inner = Path(path.strip().lstrip("/"))
            for root in roots:
                yield from (root / part for part in (inner, *inner.parents))

    def _text(self, path: Path) -> str:
        """Empty if there is no such file: which ones there are depends on the kernel and the container."""
        try:
            return (self._root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def read_memory() -> Memory:
    """This process's memory."""
    return SystemFiles().memory()


def read_cores() -> Cores:
    """This process's cores."""
    return SystemFiles().cores(len(os.sched_getaffinity(0)), os.cpu_count() or 1)


def resident_bytes() -> int:
    """Memory of this process that is not shared with files."""
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
