"""Clocks: the machine's moves on, the manual one only when told."""

from __future__ import annotations

import time

import pytest

from hotprefix.base.clock import ManualClock, SystemClock


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(5.0)
    assert (clock.now(), clock.wall()) == (5.0, 5.0)
    clock.advance(2.5)
    clock.advance(0)
    assert (clock.now(), clock.wall()) == (7.5, 7.5)


def test_time_does_not_go_back() -> None:
    clock = ManualClock()
    with pytest.raises(ValueError, match="go back"):
        clock.advance(-0.1)
    assert clock.now() == 0.0


def test_the_system_clock_never_goes_back_and_knows_the_date() -> None:
    clock = SystemClock()
    first = clock.now()
    assert clock.now() >= first
    assert abs(clock.wall() - time.time()) < 60
