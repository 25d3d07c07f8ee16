"""Plans for machines that don't exist: each rule, and what goes before it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.engine.strategy.base import Bounds
from hotprefix.engine.strategy.catalogue import Strategies
from hotprefix.engine.strategy.choice import StrategyName
from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.quality.card import Group
from hotprefix.tune.decision import GIB, MIB
from hotprefix.tune.errors import DoesNotFit
from hotprefix.tune.kv_bytes import KvShape
from hotprefix.tune.machine import Cores, Disk, Memory, Processor, Redis
from hotprefix.tune.model_facts import ModelFacts
from hotprefix.tune.quality_notes import Note, QualityNotes
from hotprefix.tune.wish import Goal
from tests.tune.worlds import MODEL, basis, machine, options, planned, speeds, why

ALIKE = {"auto": (500.0, 20.0), "layered-u8": (490.0, 20.0), "u8": (500.0, 20.0), "u4": (500.0, 20.0)}


@pytest.mark.parametrize(
    ("memory", "precision", "chunk"),
    [(4, "u8", 256), (39, "u8", 256), (40, "u8", 256), (41, "auto", 512), (512, "auto", 512)],
)
def test_the_preset_holds_where_nothing_is_measured(memory: float, precision: str, chunk: int) -> None:
    found = planned(machine(memory))
    assert (options(found)["kv-precision"], options(found)["prefill-chunk"]) == (precision, chunk)
    assert basis(found, "kv-precision") == basis(found, "prefill-chunk") == "preset"
    assert "40.0 GiB" in why(found, "kv-precision")


def test_sixteen_bits_are_f16_where_the_processor_computes_in_f32() -> None:
    found = planned(machine(64, processor=Processor("old", "f32")))
    assert options(found)["kv-precision"] == "f16"


@pytest.mark.parametrize(
    ("goal", "by_precision", "chosen", "on"),
    [
        # Small machine: the preset is u8; 16 bits cost nothing, so nothing is lost for nothing.
        (Goal.BALANCED, ALIKE, "auto", "measured"),
        # 16 bits are clearly slower: the preset stays.
        (Goal.BALANCED, ALIKE | {"auto": (300.0, 10.0)}, "u8", "preset"),
        # Something else that fits is clearly faster than the preset.
        (
            Goal.BALANCED,
            ALIKE | {"auto": (300.0, 10.0), "layered-u8": (900.0, 40.0)},
            "layered-u8",
            "measured",
        ),
        # 7 % faster counts for latency, not for balance.
        (
            Goal.LATENCY,
            ALIKE | {"auto": (300.0, 10.0), "layered-u8": (535.0, 21.4)},
            "layered-u8",
            "measured",
        ),
        (Goal.BALANCED, ALIKE | {"auto": (300.0, 10.0), "layered-u8": (535.0, 21.4)}, "u8", "preset"),
        # 4 bits are faster, but not trusted without a card.
        (Goal.LATENCY, ALIKE | {"u4": (5000.0, 200.0)}, "auto", "measured"),
        # For memory's sake speed does not count.
        (Goal.MEMORY, ALIKE | {"u8": (100.0, 5.0)}, "u8", "asked for"),
    ],
)
def test_what_was_measured_goes_before_the_preset(
    goal: Goal, by_precision: dict[str, tuple[float, float]], chosen: str, on: str
) -> None:
    found = planned(machine(24), goal=goal, measured=speeds(by_precision))
    assert (found.chosen.precision, basis(found, "kv-precision")) == (chosen, on)
    assert options(found)["kv-precision"] == chosen
    if on == "measured":
        assert "preset up to 40.0 GiB of memory (here 24.0 GiB): u8" in why(found, "kv-precision")


def test_small_differences_do_not_count_on_a_busy_machine() -> None:
    measured = speeds(
        ALIKE | {"auto": (300.0, 10.0), "layered-u8": (580.0, 23.2)},
        {128: 90.0, 256: 100.0, 512: 110.0},
        {8: (100.0, 10.0), 1: (200.0, 20.0)},
    )
    calm = planned(machine(24), measured=measured)
    busy = planned(machine(24, load=9.0), measured=measured)
    assert (options(calm)["kv-precision"], options(busy)["kv-precision"]) == ("layered-u8", "u8")
    assert (options(calm)["prefill-chunk"], options(busy)["prefill-chunk"]) == (512, 256)
    assert (options(calm)["threads"], options(busy)["threads"]) == (1, 8)
    assert any("busy" in warning for warning in busy.warnings)
    assert not any("busy" in warning for warning in calm.warnings)


def test_a_large_machine_whose_requests_need_more_takes_what_fits() -> None:
    # 55 GiB for KV hold 2.6 million tokens of 16 bits, 4.1 million layered; 2.9 million are needed.
    found = planned(machine(64), context=8192, concurrency=350)
    assert options(found)["kv-precision"] == "layered-u8"
    assert "auto has room for" in why(found, "kv-precision")
    assert found.chosen.fits(found.need)


def test_what_fits_nowhere_waits_and_is_told() -> None:
    found = planned(machine(4), context=8192, concurrency=300)
    assert options(found)["kv-precision"] == "u8"
    at_once = int(_size(options(found)["kv-arena"]) / 13_680) // 8192
    assert any(f"only {at_once} of 300 requests" in warning for warning in found.warnings)


def test_memory_takes_four_bits_only_if_it_must_or_may() -> None:
    tight = planned(machine(4), goal=Goal.MEMORY, context=8192, concurrency=14)
    assert options(tight)["kv-precision"] == "layered-u4"
    good = QualityNotes({(Group.PRECISION, "u4"): Note(0.004, 0.97, 1.004)})
    bad = QualityNotes({(Group.PRECISION, "u4"): Note(0.2, 0.8, 1.2)})
    assert options(planned(machine(24), goal=Goal.MEMORY, notes=good))["kv-precision"] == "u4"
    assert options(planned(machine(24), goal=Goal.MEMORY, notes=bad))["kv-precision"] == "u8"


def test_precisions_that_the_model_refuses_are_not_planned_with() -> None:
    measured = speeds({"auto": (300.0, 10.0)}, refused={"u8": "no", "layered-u8": "no", "u4": "no"})
    found = planned(machine(24), goal=Goal.MEMORY, measured=measured)
    assert [one.precision for one in found.candidates] == ["auto", "layered-u4"]
    shallow = ModelFacts("shallow", KvShape(2, 1, 64), 2048, GIB)
    assert [one.precision for one in planned(machine(24), model=shallow).candidates] == ["auto", "u8", "u4"]


@pytest.mark.parametrize(
    ("goal", "by_chunk", "chunk", "on"),
    [
        (Goal.BALANCED, {128: 90, 256: 97, 512: 100}, 256, "preset"),
        (Goal.BALANCED, {128: 60, 256: 80, 512: 98, 1024: 100}, 512, "measured"),
        (Goal.BALANCED, {128: 100, 256: 90, 512: 80}, 128, "measured"),
        (Goal.LATENCY, {128: 96, 256: 97, 512: 100}, 128, "measured"),
        (Goal.LATENCY, {128: 80, 256: 97, 512: 100}, 256, "preset"),
        (Goal.MEMORY, {128: 91, 256: 97, 512: 100}, 128, "measured"),
    ],
)
def test_chunks(goal: Goal, by_chunk: dict[int, float], chunk: int, on: str) -> None:
    found = planned(machine(24), goal=goal, measured=speeds(ALIKE, by_chunk))
    assert (options(found)["prefill-chunk"], basis(found, "prefill-chunk")) == (chunk, on)


@pytest.mark.parametrize(
    ("by_threads", "threads"),
    [
        ({8: (400, 20), 4: (395, 20), 1: (80, 12)}, 4),
        ({8: (400, 20), 4: (300, 20), 1: (80, 12)}, 8),
        ({8: (400, 20), 1: (500, 25)}, 1),
    ],
)
def test_the_fewest_threads_that_are_as_fast(
    by_threads: dict[int, tuple[float, float]], threads: int
) -> None:
    found = planned(machine(24), measured=speeds(ALIKE, by_threads=by_threads))
    assert (options(found)["threads"], basis(found, "threads")) == (threads, "measured")


def test_threads_follow_the_cgroup() -> None:
    found = planned(machine(24, cores=Cores(3, 64, "cgroup")))
    assert (options(found)["threads"], "cgroup" in why(found, "threads")) == (3, True)


def test_where_the_memory_goes() -> None:
    found = planned(machine(24, available=20.0))
    assert found.budget.model == 2 * GIB
    assert found.budget.reserve == int(2.4 * GIB)
    assert found.budget.kv == 20 * GIB - 2 * GIB - 412 * MIB - int(2.4 * GIB)
    measured = planned(machine(24, available=20.0), measured=speeds(ALIKE, resident=5 * GIB))
    assert found.budget.kv - measured.budget.kv == 3 * GIB


@pytest.mark.parametrize(
    ("goal", "keys", "codec"),
    [
        (Goal.LATENCY, {"kv-arena", "kv-disk", "kv-codec"}, "raw"),
        (Goal.BALANCED, {"kv-arena", "kv-ram", "kv-disk", "kv-codec"}, "int8"),
    ],
)
def test_memory_is_filled_by_the_wish(goal: Goal, keys: set[str], codec: str) -> None:
    found = planned(machine(64), goal=goal)
    assert {key for key in options(found) if key in _TIERS} == keys
    assert options(found)["kv-codec"] == codec
    arena, ram = _size(options(found)["kv-arena"]), _size(options(found).get("kv-ram", "0"))
    share = {Goal.LATENCY: 1.0, Goal.BALANCED: 0.6}[goal]
    assert arena + ram == pytest.approx(share * found.budget.kv, abs=2 * MIB)


def test_for_memory_the_arena_is_what_the_requests_need() -> None:
    found = planned(machine(64), goal=Goal.MEMORY, context=1024, concurrency=64)
    assert _size(options(found)["kv-arena"]) == pytest.approx(1.25 * 64 * 1024 * 13_680, abs=MIB)
    assert "kv-ram" not in options(found)
    assert options(found)["max-context"] == 1024


def test_a_quantised_arena_keeps_raw_blocks() -> None:
    found = planned(machine(24))
    assert (options(found)["kv-precision"], options(found)["kv-codec"]) == ("u8", "raw")


def test_a_codec_that_the_card_warns_of_is_left_out() -> None:
    found = planned(machine(64), notes=QualityNotes({(Group.CODEC, "int8"): Note(0.5)}))
    assert options(found)["kv-codec"] == "raw"


def test_a_card_of_another_model_is_told() -> None:
    own, other = (planned(machine(24), notes=QualityNotes(model=name)) for name in ("small", "large"))
    assert not any("quality card" in warning for warning in own.warnings)
    assert any("large" in warning for warning in other.warnings)


def test_a_card_of_another_model_vouches_for_nothing() -> None:
    good = {(Group.PRECISION, "u4"): Note(1e-4)}
    own, other = (
        planned(machine(24), goal=Goal.MEMORY, notes=QualityNotes(good, name)) for name in ("small", "large")
    )
    assert (own.chosen.precision, other.chosen.precision) == ("u4", "u8")


@pytest.mark.parametrize(
    ("disk", "size"),
    [
        (Disk("/s", 100 * GIB), "25G"),
        (Disk("/s", 3 * GIB), None),
        # 6,840,000 bytes/s are computed; reading has to be twice as fast.
        (Disk("/s", 100 * GIB, 1e9, 13e6), None),
        (Disk("/s", 100 * GIB, 1e9, 14e6), "25G"),
    ],
)
def test_a_disk_tier_is_worth_it_or_not_there(disk: Disk, size: str | None) -> None:
    measured = speeds(ALIKE | {"auto": (300.0, 10.0)})
    found = planned(machine(24, disk=disk), measured=measured)
    assert options(found)["kv-precision"] == "u8"
    assert options(found).get("kv-disk") == size


def test_redis_gets_half_of_what_it_may_hold() -> None:
    with_room = planned(machine(24, redis=Redis("redis://r", 8 * GIB, 1e9, 1e9)), measured=speeds(ALIKE))
    assert options(with_room)["kv-redis"] == "4G"
    slow = planned(machine(24, redis=Redis("redis://r", 8 * GIB, 1e6, 1e6)), measured=speeds(ALIKE))
    assert "kv-redis" not in options(slow)
    assert options(planned(machine(24, redis=Redis("redis://r", None))))["kv-redis"] == "512M"


def test_longer_than_the_model_takes_a_window_in_sixteen_bits() -> None:
    found = planned(machine(24), context=32_000, measured=speeds(ALIKE))
    assert options(found)["kv-strategy"] == "window"
    assert (options(found)["kv-window"], options(found)["kv-longest"]) == (2048, 32_000)
    assert options(found)["kv-precision"] == "auto"
    assert "max-context" not in options(found)
    assert _size(options(found)["kv-arena"]) >= 2 * 4 * 2048 * 23_040


@pytest.mark.parametrize("goal", Goal)
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("available", [2.97, 3.0, 4.0, 20.0])
def test_a_server_takes_the_window_that_was_planned(goal: Goal, concurrency: int, available: float) -> None:
    found = planned(machine(4, available=available), goal=goal, context=32_000, concurrency=concurrency)
    window, arena = int(options(found)["kv-window"]), _size(options(found)["kv-arena"])
    # As the engine counts: whole blocks, the last of which is not for requests.
    tokens = (arena // (32 * 23_040) - 1) * 32
    settings = StrategySettings(StrategyName.WINDOW, window=window)
    strategy = Strategies(settings, Bounds(found.facts.model.context, tokens, 32)).choose(None)
    assert strategy.cutter is not None
    assert strategy.cutter.budget == window <= 2048
    if available >= 4:
        assert tokens >= 2 * 2048 * concurrency


def test_a_window_that_has_no_room_is_refused_with_the_numbers() -> None:
    large = replace(MODEL, shape=KvShape(80, 64, 128), weights=GIB)
    with pytest.raises(DoesNotFit, match=r"small has a context of 8,192 tokens, and 100 MiB .*: 0 tokens"):
        planned(machine(4, available=3.0), model=large, context=32_000)
    with pytest.raises(DoesNotFit, match="a context of 192 tokens"):
        planned(machine(24), model=replace(MODEL, context=192), context=32_000)


def test_latency_with_room_for_all_is_static() -> None:
    assert options(planned(machine(64), goal=Goal.LATENCY))["kv-strategy"] == "static"
    crowded = planned(machine(64), goal=Goal.LATENCY, concurrency=200)
    assert options(crowded)["kv-strategy"] == "dynamic"
    assert options(planned(machine(64)))["kv-strategy"] == "dynamic"


def test_a_model_without_room_is_refused_with_the_numbers() -> None:
    large = replace(MODEL, weights=20 * GIB)
    with pytest.raises(DoesNotFit, match=r"of 24\.0 GiB available, the model takes 40\.0 GiB") as told:
        planned(machine(24), model=large)
    assert "412 MiB" in str(told.value)


_TIERS = ("kv-arena", "kv-ram", "kv-disk", "kv-redis", "kv-codec")


def _size(text: str | int) -> int:
    text = str(text)
    return int(text[:-1]) * {"G": GIB, "M": MIB}[text[-1]] if text[-1] in "GM" else int(text)


@given(
    total=st.floats(1.5, 2048),
    share=st.floats(0.1, 1),
    goal=st.sampled_from(Goal),
    context=st.one_of(st.none(), st.integers(64, 100_000)),
    concurrency=st.integers(1, 1000),
    fast=st.floats(0.1, 1e6),
    read=st.one_of(st.none(), st.floats(1e3, 1e11)),
)
def test_every_plan_stays_within_the_machine(
    total: float,
    share: float,
    goal: Goal,
    context: int | None,
    concurrency: int,
    fast: float,
    read: float | None,
) -> None:
    found_machine = machine(
        total,
        memory=Memory(int(total * GIB), int(share * total * GIB)),
        disk=Disk("/s", 50 * GIB, read, read),
    )
    try:
        found = planned(
            found_machine,
            goal=goal,
            context=context,
            concurrency=concurrency,
            measured=speeds({"auto": (fast, fast / 10), "u8": (50.0, 5.0)}, resident=GIB // 2),
        )
    except DoesNotFit:
        return
    chosen = options(found)
    used = sum(_size(chosen.get(key, "0")) for key in ("kv-arena", "kv-ram"))
    assert 64 * MIB <= used <= found.budget.kv
    assert found.budget.kv + found.budget.reserve + GIB // 2 < found_machine.memory.available
    assert _size(chosen.get("kv-disk", "0")) <= 50 * GIB / 4
    if not found.chosen.exact:
        assert chosen.get("kv-codec", "raw") == "raw"
        assert chosen["kv-strategy"] != "window"
    assert len(chosen) == len(found.decisions)
