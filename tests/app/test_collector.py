"""The collector of cycles: calm while it is told to be, and blind to what a server started with."""

from __future__ import annotations

import gc

from hotprefix.app.collector import calm_collector, settle_collector


def test_it_is_calm_inside_and_as_before_outside() -> None:
    before = gc.get_threshold()
    with calm_collector():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_what_is_there_is_not_looked_at_again() -> None:
    here: list[object] = []
    try:
        settle_collector()
        assert gc.get_freeze_count() > 1000
        assert not any(found is here for found in gc.get_objects())
        later: list[object] = []
        assert any(found is later for found in gc.get_objects())
    finally:
        gc.unfreeze()
