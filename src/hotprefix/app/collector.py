"""Python's collector of cycles, where hundreds of thousands of objects hold no cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def calm_collector() -> Iterator[None]:
    """Objects go when nothing refers to them; looking for cycles among so many takes long: do it rarely."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def settle_collector() -> None:
    """Collect now, and never look again at what is there: modules, the model, the tokenizer.

    A server would else stop all its answers for the time of a look at them, whenever enough has changed.
    """
    gc.collect()
    gc.freeze()
