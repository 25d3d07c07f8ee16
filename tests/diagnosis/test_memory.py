"""The memory finds the right sibling, within its bounds, and never across tenants."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.diagnosis.memory import MemoryLimits, SnapshotMemory
from tests.diagnosis.world import Chat, assistant, rules_text, system, turns, user

RULES = rules_text(600)


def test_nothing_is_found_at_first_or_for_another_tenant() -> None:
    memory = SnapshotMemory()
    snapshot = Chat([system(RULES), user("Go")]).snapshot()
    assert memory.nearest("a", snapshot) is None
    memory.remember("a", snapshot)
    assert memory.nearest("a", snapshot) == snapshot
    assert memory.nearest("b", snapshot) is None


def test_the_longest_common_prefix_wins() -> None:
    memory, talk = SnapshotMemory(), turns(6)
    own = Chat([system(RULES), *talk[:6]]).snapshot(1.0)
    memory.remember("t", own)
    for number in range(10):
        memory.remember("t", Chat([system(RULES), user(f"Something else {number}?")]).snapshot(2.0))
    assert memory.nearest("t", Chat([system(RULES), *talk[:8]]).snapshot()) == own


def test_a_changed_first_block_still_finds_its_sibling() -> None:
    memory = SnapshotMemory()
    for number, subject in enumerate(("Shelf", "Dock", "Crane")):
        text = f"At 10:0{number}\n" + rules_text(600, subject)
        memory.remember("t", Chat([system(text), user("Go")]).snapshot(float(number)))
    found = memory.nearest("t", Chat([system("At 11:30\n" + rules_text(600, "Dock")), user("Go")]).snapshot())
    assert found is not None
    assert found.at == 1.0


def test_a_changed_first_block_finds_the_same_history() -> None:
    memory, talk = SnapshotMemory(), turns(8)
    memory.remember("t", Chat([system("You are A. " * 40), *talk]).snapshot(1.0))
    memory.remember("t", Chat([system("You are A. " * 40), *turns(8, subject="parcel")]).snapshot(2.0))
    found = memory.nearest("t", Chat([system("Be brief."), *talk, user("Go")]).snapshot())
    assert found is not None
    assert found.at == 1.0


def test_the_same_scene_goes_first() -> None:
    memory = SnapshotMemory()
    memory.remember("t", Chat([system(RULES), user("Go")], scene="one").snapshot(1.0))
    memory.remember("t", Chat([system(RULES), user("Go on then")], scene="two").snapshot(2.0))
    found = memory.nearest("t", Chat([system(RULES), user("Go on then")], scene="one").snapshot())
    assert found is not None
    assert found.scene == "one"


def test_a_scene_without_likeness_does_not_win() -> None:
    memory = SnapshotMemory()
    poem = "".join(f"{number} gulls above the sea, and {number * 3} waves.\n" for number in range(60))
    memory.remember("t", Chat([system(poem), user("Sing")], scene="one").snapshot(1.0))
    memory.remember("t", Chat([system(RULES), user("Go")], scene="two").snapshot(2.0))
    found = memory.nearest("t", Chat([system(RULES), user("Go")], scene="one").snapshot())
    assert found is not None
    assert found.scene == "two"


def test_unlike_prompts_are_no_siblings() -> None:
    memory = SnapshotMemory()
    memory.remember("t", Chat([system("You sell shoes."), user("Hello")]).snapshot())
    assert memory.nearest("t", Chat([system("You repair bikes."), user("Hello")]).snapshot()) is None


def test_a_growing_conversation_is_remembered_once() -> None:
    memory, talk = SnapshotMemory(), turns(20)
    for end in range(1, 40, 2):
        memory.remember("t", Chat([system(RULES), *talk[:end]]).snapshot())
    alone = SnapshotMemory()
    alone.remember("t", Chat([system(RULES), *talk[:39]]).snapshot())
    assert memory.count("t") == 1
    assert memory.size == alone.size


def test_equal_blocks_are_kept_once() -> None:
    memory = SnapshotMemory()
    memory.remember("t", Chat([system(rules_text(4000)), user("First question")]).snapshot())
    one = memory.size
    for number in range(9):
        memory.remember("t", Chat([system(rules_text(4000)), user(f"Question {number}")]).snapshot())
    assert memory.count("t") == 10
    assert memory.size - one < 9 * 8_000


def test_counts_and_bytes_and_tenants_are_bounded() -> None:
    memory = SnapshotMemory(MemoryLimits(snapshots=5, bytes=100_000, tenants=2))
    for number in range(20):
        text = rules_text(300, f"Aisle {number} shelf")
        memory.remember("a", Chat([system(text), user("Go")]).snapshot(float(number)))
        assert memory.count("a") <= 5
        assert memory.size <= 100_000
    memory.remember("b", Chat([system(rules_text(9000))]).snapshot())
    assert memory.count("b") == 0 or memory.size <= 200_000
    memory.remember("c", Chat([system(RULES)]).snapshot())
    assert memory.count("a") == 0
    assert memory.count("c") == 1


def test_all_tenants_together_are_bounded() -> None:
    """Before the first API key every credential is a tenant of its own: there may be any number of them."""
    memory = SnapshotMemory(MemoryLimits(all_bytes=100_000))
    for number in range(40):
        text = rules_text(300, f"Aisle {number} shelf")
        memory.remember(f"t{number}", Chat([system(text), user("Go")]).snapshot())
        assert memory.count(f"t{number}") == 1
        assert memory.size == sum(one.size for one in memory._tenants.values()) <= 100_000
    assert memory.count("t0") == 0
    assert memory.count("t38") == 1
    for number in range(40):
        memory.forget(f"t{number}")
    assert memory.size == 0


def test_a_prompt_larger_than_the_bound_is_not_kept() -> None:
    memory = SnapshotMemory(MemoryLimits(bytes=20_000))
    chat = Chat([system(rules_text(9000)), user("Go")])
    memory.remember("t", chat.snapshot())
    assert (memory.count("t"), memory.size) == (0, 0)


def test_long_blocks_are_kept_by_digest() -> None:
    text = rules_text(9000)
    snapshot = Chat([system(text), user("Go")]).snapshot()
    body = snapshot.blocks[0].body
    assert body.length == len(text) > len(body.text) == 16_384
    assert not body.is_complete


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), st.sampled_from("ab")), max_size=40))
def test_bytes_return_to_nothing(steps: list[tuple[int, int, str]]) -> None:
    limits = MemoryLimits(snapshots=4, bytes=60_000, tenants=2)
    memory, talk = SnapshotMemory(limits), turns(4)
    for subject, size, tenant in steps:
        chat = Chat(
            [system(f"You answer about {subject}. " * 20), *talk[:size], user(f"Go {size}"), assistant("x")]
        )
        memory.nearest(tenant, chat.snapshot())
        memory.remember(tenant, chat.snapshot())
        assert memory.count(tenant) <= 4
        assert 0 <= memory.size <= 120_000
    inner = list(memory._tenants.values())
    for tenant in inner:
        for number in list(tenant._snapshots):
            tenant._drop(number)
        assert tenant.size == 0
        assert not (tenant._by_chain or tenant._by_end or tenant._by_sketch or tenant._by_scene)
