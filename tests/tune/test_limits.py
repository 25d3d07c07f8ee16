"""Memory and cores, read from made-up `/proc` and `/sys`, and from the real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotprefix.base.errors import HotprefixError
from hotprefix.tune.limits import SystemFiles, read_cores, read_memory, resident_bytes
from hotprefix.tune.machine import Cores, Memory

MIB = 1024 * 1024
MEMINFO = f"MemTotal: {1000 * 1024} kB\nMemFree: 1 kB\nMemAvailable: {800 * 1024} kB\nHugePages_Total: 0\n"


def files(root: Path, more: dict[str, str]) -> SystemFiles:
    for name, text in ({"proc/meminfo": MEMINFO} | more).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SystemFiles(root)


V2 = {
    "proc/self/cgroup": "0::/pod/box\n",
    "sys/fs/cgroup/pod/memory.max": f"{500 * MIB}\n",
    "sys/fs/cgroup/pod/memory.current": f"{300 * MIB}\n",
    "sys/fs/cgroup/pod/memory.stat": f"anon 1\ninactive_file {100 * MIB}\n",
    "sys/fs/cgroup/pod/box/memory.max": "max\n",
    "sys/fs/cgroup/pod/box/cpu.max": "250000 100000\n",
    "sys/fs/cgroup/pod/cpu.max": "max 100000\n",
}
V1 = {
    "proc/self/cgroup": "5:cpu,cpuacct:/box\n4:memory:/box\n0::/\n",
    "sys/fs/cgroup/memory/box/memory.limit_in_bytes": f"{500 * MIB}\n",
    "sys/fs/cgroup/memory/box/memory.usage_in_bytes": f"{300 * MIB}\n",
    "sys/fs/cgroup/memory/box/memory.stat": f"total_inactive_file {100 * MIB}\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "250000\n",
    "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
}


@pytest.mark.parametrize("version", [V1, V2])
def test_the_tightest_cgroup_counts(tmp_path: Path, version: dict[str, str]) -> None:
    found = files(tmp_path, version)
    # 500 may be used, 300 are, and of these 100 could be dropped.
    assert found.memory() == Memory(500 * MIB, 300 * MIB, "cgroup")
    assert found.cores(8, 16) == Cores(2, 16, "cgroup")


def test_a_container_that_sees_its_own_cgroup_as_the_root(tmp_path: Path) -> None:
    more = {
        "proc/self/cgroup": "0::/../other\n",
        "sys/fs/cgroup/memory.max": f"{200 * MIB}",
        "sys/fs/cgroup/cpu.max": "50000 100000",
    }
    found = files(tmp_path, more)
    assert found.memory() == Memory(200 * MIB, 200 * MIB, "cgroup")
    assert found.cores(4, 4) == Cores(1, 4, "cgroup")


def test_without_cgroups_it_is_the_machine(tmp_path: Path) -> None:
    found = files(tmp_path, {})
    assert found.memory() == Memory(1000 * MIB, 800 * MIB)
    assert found.cores(4, 4) == Cores(4, 4)
    assert found.cores(2, 4) == Cores(2, 4, "CPU set")


def test_limits_above_the_machine_do_not_count(tmp_path: Path) -> None:
    more = {
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/memory.max": f"{5000 * MIB}",
        "sys/fs/cgroup/cpu.max": "900000 100000",
    }
    found = files(tmp_path, more)
    assert (found.memory().bounded_by, found.cores(4, 4).bounded_by) == ("machine", "machine")


def test_a_system_without_meminfo_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HotprefixError, match="needs Linux"):
        SystemFiles(tmp_path).memory()


def test_this_machine() -> None:
    memory, cores = read_memory(), read_cores()
    assert 0 < memory.available <= memory.total
    assert 1 <= cores.usable <= len(os.sched_getaffinity(0)) <= cores.present
    held = bytearray(32 * MIB)
    before = resident_bytes()
    held += bytearray(b"\1") * (32 * MIB)
    assert resident_bytes() - before > 16 * MIB
