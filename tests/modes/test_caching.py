"""What is read, written and billed, by the vendors' rules. T-numbers are those of the case list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.errors import InvalidRequest
from hotprefix.modes.classes import Mode
from tests.modes.worlds import BLOCK, TAIL, World, prompt

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_create_then_hit_is_exact_to_the_token() -> None:
    world = World()
    first = await world.ask(prompt(("s", 1605), ("q", 10)), 0)
    assert (first.mode, first.read, first.written, first.computed) == (
        Mode.EXPLICIT, 0, {"5m": 1605}, 10 + TAIL,
    )  # fmt: skip
    second = await world.ask(prompt(("s", 1605), ("other", 30)), 0)
    assert (second.read, second.written, second.computed) == (1605, {}, 30 + TAIL)


async def test_only_the_increment_is_written() -> None:
    world = World()
    await world.ask(prompt(("a", 1200)), 0)
    grown = await world.ask(prompt(("a", 1200), ("b", 300)), 1)
    assert (grown.read, grown.written) == (1200, {"5m": 300})


@pytest.mark.parametrize(("size", "written"), [(1023, {}), (1024, {"5m": 1024}), (1025, {"5m": 1025})])
async def test_t16_minimum_size(size: int, written: dict[str, int]) -> None:
    world = World()
    turn = world.caching.begin(world.request(prompt(("s", size)), 0))
    classes = await world.end(turn)
    assert classes.written == written
    assert turn.short_by == max(0, 1024 - size)


async def test_t17_five_markers_keep_the_last_four_and_say_so() -> None:
    world = World()
    blocks = prompt(*((f"b{number}", 1100) for number in range(5)))
    turn = world.caching.begin(world.request(blocks, 0, 1, 2, 3, 4))
    assert [marker.block for marker in turn.markers] == [1, 2, 3, 4]
    assert "messages[0].cache_control" in turn.warnings[0]
    assert (await world.end(turn)).written == {"5m": 5500}
    hit = await world.ask(prompt(("b0", 1100), ("x", 5)), 0)
    assert hit.read == 0, "the first marker did not count"


async def test_t17_five_markers_are_refused_by_anthropic() -> None:
    world = World("anthropic-2026-09")
    blocks = prompt(*((f"b{number}", 1100) for number in range(5)))
    with pytest.raises(InvalidRequest, match=r"maximum of 4.*Found 5.*messages\[4\]"):
        world.caching.begin(world.request(blocks, 0, 1, 2, 3, 4))


@pytest.mark.parametrize(("profile", "edge"), [("dashscope-2026-03", 20), ("anthropic-2026-09", 19)])
async def test_t18_look_back(profile: str, edge: int) -> None:
    """An entry `edge` blocks behind the marker is found, one more is not."""
    for behind, found in ((edge, True), (edge + 1, False)):
        world = World(profile)
        head = prompt(("s", 1100))
        await world.ask(head, 0)
        more = prompt(("s", 1100), *((f"m{number}", 3) for number in range(behind)))
        assert bool((await world.ask(more, behind)).read) is found


async def test_t26_a_hit_renews_the_lifetime_of_its_own_entry_only() -> None:
    world = World()
    await world.ask(prompt(("s", 1100)), 0)
    await world.ask(prompt(("other", 1100)), 0)
    world.clock.advance(299)
    assert (await world.ask(prompt(("s", 1100)), 0)).read == 1100
    world.clock.advance(299)
    assert (await world.ask(prompt(("s", 1100)), 0)).read == 1100
    assert (await world.ask(prompt(("other", 1100)), 0)).read == 0
    world.clock.advance(301)
    assert (await world.ask(prompt(("s", 1100)), 0)).read == 0


async def test_expired_entries_are_let_go_at_the_next_sweep() -> None:
    world = World()
    await world.ask(prompt(("s", 1100)), 0)
    assert list(world.pins.held.values()) == [1100]
    world.clock.advance(301)
    world.caching.sweep()
    assert not world.pins.held
    assert len(world.book) == 0


async def test_t27_parallel_identical_requests_write_once() -> None:
    world = World()
    turns = [world.caching.begin(world.request(prompt(("s", 1100)), 0)) for _ in range(8)]
    classes = [await world.end(turn) for turn in turns]
    assert sorted(one.write_total for one in classes) == [0] * 7 + [1100]
    assert sorted(one.read for one in classes) == [0] + [1100] * 7
    assert len(world.pins.held) == 1


async def test_an_entry_is_readable_only_after_the_response() -> None:
    world = World()
    first = world.caching.begin(world.request(prompt(("s", 1100)), 0))
    await world.caching.first_output(first)
    assert world.caching.begin(world.request(prompt(("s", 1100)), 0)).hit == 0
    await world.end(first)
    assert world.caching.begin(world.request(prompt(("s", 1100)), 0)).hit == 1100


async def test_entries_of_a_running_answer_hold_whole_blocks_until_it_ends() -> None:
    world = World("anthropic-2026-09")
    world.pins.only_whole_blocks = True  # the prompt's last block is still being filled
    turn = world.caching.begin(world.request(prompt(("a", 1100)), 0))
    await world.caching.first_output(turn)
    assert list(world.pins.held.values()) == [1100 - 1100 % 32]
    other = world.caching.begin(world.request(prompt(("a", 1100), ("b", 5)), 0))
    assert other.hit == 1100
    world.pins.only_whole_blocks = False
    assert (await world.end(turn)).written == {"5m": 1100}
    assert list(world.pins.held.values()) == [1100]


async def test_without_its_last_block_nothing_is_written_after_the_response() -> None:
    world = World("dashscope-2026-03")
    world.pins.only_whole_blocks = True
    assert (await world.ask(prompt(("a", 1100)), 0)).written == {}
    assert world.pins.held == {}


async def test_anthropic_entries_are_readable_at_the_first_output() -> None:
    world = World("anthropic-2026-09")
    first = world.caching.begin(world.request(prompt(("s", 1100)), 0))
    await world.caching.first_output(first)
    assert world.caching.begin(world.request(prompt(("s", 1100)), 0)).hit == 1100
    assert (await world.end(first)).written == {"5m": 1100}


async def test_mixed_lifetimes_are_billed_by_the_marker_that_wrote_them() -> None:
    world = World("anthropic-2026-09")
    blocks = prompt(("a", 1100), ("b", 200), ("c", 50))
    assert (await world.ask(blocks, (0, "1h"), (1, "5m"))).written == {"1h": 1100, "5m": 200}
    world.clock.advance(301)
    again = await world.ask(blocks, (0, "1h"), (1, "5m"))
    assert (again.read, again.written) == (1100, {"5m": 200})


async def test_a_longer_lifetime_behind_a_shorter_one_is_refused() -> None:
    world = World("anthropic-2026-09")
    with pytest.raises(InvalidRequest, match="ttl='1h' cache_control block must not come after a ttl='5m'"):
        world.caching.begin(world.request(prompt(("a", 1100), ("b", 1100)), (0, "5m"), (1, "1h")))


@pytest.mark.parametrize(("reused", "read"), [(255, 0), (256, 256), (700, 700)])
async def test_implicit_hits_are_reported_from_the_minimum_on(reused: int, read: int) -> None:
    classes = await World().ask(prompt(("s", 800)), reused=reused)
    assert (classes.mode, classes.read, classes.computed) == (Mode.IMPLICIT, read, 800 + TAIL - read)


async def test_implicit_hits_come_in_quanta_where_the_vendor_says_so() -> None:
    classes = await World("openai-2026-09").ask(prompt(("s", 3000)), reused=1999)
    assert classes.read == 1920


async def test_explicit_and_implicit_exclude_each_other() -> None:
    """What the tree reuses under a marked request is not billed as an implicit hit."""
    classes = await World().ask(prompt(("s", 1100), ("q", 500)), 0, reused=1600)
    assert (classes.mode, classes.read, classes.written) == (Mode.EXPLICIT, 0, {"5m": 1100})


async def test_another_tenant_finds_nothing() -> None:
    world = World()
    await world.ask(prompt(("s", 1100)), 0, tenant="a")
    assert (await world.ask(prompt(("s", 1100)), 0, tenant="b")).read == 0


async def test_a_session_reads_what_its_last_turn_wrote() -> None:
    world = World()
    first = await world.ask(prompt(("s", 1000), ("q1", 305)), session=True)
    assert (first.mode, first.written) == (Mode.SESSION, {"5m": 1305})
    blocks = prompt(("s", 1000), ("q1", 305), ("answer", 100), ("q2", 113))
    second = await world.ask(blocks, session=True)
    assert (second.read, second.written, second.computed) == (1305, {"5m": 213}, TAIL)


async def test_a_session_is_written_once_its_context_is_long_enough() -> None:
    world = World()
    assert (await world.ask(prompt(("s", 900)), session=True)).written == {}
    grown = await world.ask(prompt(("s", 900), ("a", 50), ("q", 100)), session=True)
    assert grown.written == {"5m": 1050}


async def test_a_full_arena_is_billed_as_computed() -> None:
    world = World()
    world.pins.full = True
    turn = world.caching.begin(world.request(prompt(("s", 1100)), 0))
    classes = await world.end(turn)
    assert (classes.written, classes.computed, turn.pin_failed) == ({}, 1100 + TAIL, True)


async def test_a_cancelled_request_writes_nothing() -> None:
    world = World()
    turn = world.caching.begin(world.request(prompt(("s", 1100)), 0))
    classes = world.caching.cancelled(turn, 0, 3)
    assert (classes.write_total, classes.output) == (0, 3)
    assert len(world.book) == 0


async def test_the_book_is_bounded_and_unpins_what_it_drops() -> None:
    world = World(limit=5)
    for number in range(20):
        world.clock.advance(1)
        await world.ask(prompt((f"s{number}", 1100)), 0)
    assert len(world.book) == len(world.pins.held) == 5
    assert (await world.ask(prompt(("s19", 1100)), 0)).read == 1100


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=25))
async def test_every_token_is_in_exactly_one_class(steps: list[tuple[int, int]]) -> None:
    """Growing conversations, marked anywhere: `World.end` checks the sum after each request."""
    world = World()
    for length, marker in steps:
        blocks = prompt(*((f"b{number}", 700) for number in range(length + 1)))
        turn = world.caching.begin(world.request(blocks, min(marker, length)))
        expected = world.caching.expected(turn, 0)
        classes = await world.end(turn)
        assert (classes.read, classes.written) == (expected.read, expected.written)
        world.clock.advance(40)


async def test_a_hit_whose_blocks_have_gone_is_billed_as_written_again() -> None:
    world = World()
    blocks = prompt(("s", 1100), ("q", 40))
    assert (await world.ask(blocks, 0)).written == {"5m": 1100}
    turn = world.caching.begin(world.request(blocks, 0))
    assert turn.hit == 1100
    world.caching.admitted(turn, 0)
    classes = await world.end(turn)
    assert (classes.read, classes.written) == (0, {"5m": 1100})
    assert len(world.pins.held) == 1


async def test_of_two_entries_the_one_that_is_there_still_hits() -> None:
    world = World()
    blocks = prompt(("a", 1100), ("b", 1100), ("q", 40))
    await world.ask(blocks, 0, 1)
    turn = world.caching.begin(world.request(blocks, 0, 1))
    world.caching.admitted(turn, 1100)
    assert turn.hit == 1100
    classes = await world.end(turn)
    assert (classes.read, classes.written) == (1100, {"5m": 1100})


async def test_a_hit_is_real_within_a_block() -> None:
    world = World()
    blocks = prompt(("s", 1100), ("q", 40))
    await world.ask(blocks, 0)
    turn = world.caching.begin(world.request(blocks, 0))
    world.caching.admitted(turn, 1100 - BLOCK)
    assert turn.hit == 1100


async def test_a_short_marker_before_a_long_one_lacks_nothing() -> None:
    world = World()
    turn = world.caching.begin(world.request(prompt(("a", 100), ("b", 1200)), 0, 1))
    assert (await world.end(turn)).written == {"5m": 1300}
    assert turn.short_by == 0
    short = world.caching.begin(world.request(prompt(("c", 100), ("d", 200)), 0, 1))
    await world.end(short)
    assert short.short_by == 1024 - 300
