"""Pins live as long as the engine does, busy or not."""

from __future__ import annotations

from hotprefix.cache.prefix import PrefixCache
from tests.engine.fake_model import letters
from tests.engine.test_engine import PROMPT, collect, request, run, running
from tests.engine.worlds import World


def test_a_pin_outlives_an_idle_engine() -> None:
    world = World()
    with running(world) as engine:

        async def main() -> None:
            await collect(engine.stream(request(PROMPT, name="first")))
            assert await engine.pin("kept", "", letters(PROMPT)) == len(PROMPT)
            # Two more rounds, so that the engine falls idle with the pin in place.
            for name in ("second", "third"):
                await collect(engine.stream(request(name, name=name)))
            cache = world.cache
            assert isinstance(cache, PrefixCache)
            assert len(cache.leases) == 1
            engine.unpin("kept")
            await collect(engine.stream(request("fourth", name="fourth")))
            assert len(cache.leases) == 0

        run(main)


def test_a_stopped_engine_holds_no_pin() -> None:
    world = World()
    with running(world) as engine:  # which checks at its end that nothing is held

        async def main() -> None:
            await collect(engine.stream(request(PROMPT)))
            assert await engine.pin("kept", "", letters(PROMPT)) == len(PROMPT)

        run(main)
