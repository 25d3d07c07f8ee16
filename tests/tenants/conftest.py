from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.tenants.tenancy import Tenancy, open_tenancy


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000.0)


@pytest.fixture
def tenancy(tmp_path: Path, clock: ManualClock) -> Iterator[Tenancy]:
    with open_tenancy(tmp_path / "state", clock) as tenancy:
        yield tenancy
