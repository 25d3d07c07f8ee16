"""Asking a running engine for its most useful prefixes."""

from __future__ import annotations

from hotprefix.cache.uncached import UncachedCache
from hotprefix.engine.settings import EngineSettings
from hotprefix.keys.chain import TOKEN_BYTES
from hotprefix.kv.top import NO_PATHS, TopLimits
from tests.engine.fake_model import letters
from tests.engine.test_engine import PROMPT, collect, request, run, running
from tests.engine.worlds import World


def test_the_prefix_that_was_reused_is_found_with_its_tokens() -> None:
    world = World()
    with running(world) as engine:

        async def main() -> None:
            for name in ("first", "second", "third"):
                await collect(engine.stream(request(PROMPT, name=name)))
            found = await engine.top(TopLimits(head=100))
            best = found.paths[0]
            assert best.hits == 2
            assert best.owner == engine.root_for("")
            ids = memoryview(best.head + best.tail).cast("I").tolist()
            assert len(ids) == best.tokens == len(best.head + best.tail) // TOKEN_BYTES
            assert ids[: len(PROMPT)] == letters(PROMPT)[: len(ids)]
            assert (await engine.top(TopLimits(), {engine.root_for("somebody else")})).paths == ()

        run(main)


def test_without_a_cache_there_are_none() -> None:
    world = World(settings=EngineSettings(policy=None))
    assert isinstance(world.cache, UncachedCache)
    with running(world) as engine:

        async def main() -> None:
            await collect(engine.stream(request(PROMPT)))
            assert await engine.top(TopLimits()) == NO_PATHS

        run(main)
