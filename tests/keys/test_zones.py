"""Public prefixes: golden vectors, and who can name what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.keys.chain import TokenHistory, child_key
from hotprefix.keys.scope import CacheScope
from hotprefix.keys.zones import PUBLIC_TENANT, PublicZone, ZonedHistory, joint_key

PUBLIC = CacheScope("model", "bf16", tenant=PUBLIC_TENANT).root(b"secret")
ALICE = CacheScope("model", "bf16", tenant="a").root(b"secret")
BOB = CacheScope("model", "bf16", tenant="b").root(b"secret")
TOKENS = st.lists(st.integers(0, 1), max_size=24)


def test_golden_vectors() -> None:
    """Keys live on disks and in other processes: a change of these bytes orphans them all."""
    zone = PublicZone(PUBLIC, 4, [range(9)])
    history = zone.history(ALICE, range(14))
    assert history.shared_blocks == 2
    assert [key.hex() for key in history.keys(3)] == [
        "0aaa26d25b06a4eda40e8b011aaea20456cdcf683937f73dfa745e1f247a5fc3",
        "aee072003f30743ef60264ebf330a645beaf2a7eec4b900b6f6110c3cb5bed6a",
        "6d096a4c570c8448750dd59fe845a5578370a956762d58702ef76e6297d9402f",
    ]
    assert history.parent_key(2).hex() == "69d0683f2a0d098ed19ebe4962fb2cd03affbb9a38889a73cb6b162b5ec99de1"
    assert history.key_at(14).hex() == "eaa574fe55630c6172de0749a531e10733a5960b83544903d1fbf885a0466e8d"


def test_public_blocks_are_everybodys_and_the_rest_is_nobodys_elses() -> None:
    zone = PublicZone(PUBLIC, 4, [range(8)])
    alice, bob = zone.history(ALICE, range(16)), zone.history(BOB, range(16))
    assert alice.keys(2) == bob.keys(2) == TokenHistory(PUBLIC, range(8), 4).keys(2)
    assert not set(alice.keys(4)[2:]) & set(bob.keys(4)[2:])
    # Nor are the private blocks those of the same tokens in one scope alone, public or not.
    for root in (PUBLIC, ALICE, BOB):
        assert not set(alice.keys(4)[2:]) & set(TokenHistory(root, range(16), 4).keys(4))


def test_roots_and_owners_change_where_the_zone_ends() -> None:
    history = PublicZone(PUBLIC, 4, [range(8)]).history(ALICE, range(16))
    joint = joint_key(history.keys(2)[1], ALICE)
    assert [history.root_of(block) for block in range(4)] == [PUBLIC, PUBLIC, joint, joint]
    assert [history.owner_of(block) for block in range(4)] == [PUBLIC, PUBLIC, ALICE, ALICE]
    assert history.root == ALICE
    assert history.keys(3)[2] == child_key(joint, history.block_bytes(2))
    # A prompt that ends at the border has the public key, a longer one hangs from the joint.
    assert history.key_at(8) == history.keys(2)[1] != joint
    assert history.key_at(9) == child_key(joint, history.encoded(8, 9))
    plain = TokenHistory(ALICE, range(16), 4)
    assert (plain.root_of(3), plain.owner_of(3), plain.shared_blocks) == (ALICE, ALICE, 0)


def test_the_joint_depends_on_the_public_text_and_on_the_tenant() -> None:
    keys = [TokenHistory(PUBLIC, tokens, 4).keys(1)[0] for tokens in ([1, 2, 3, 4], [1, 2, 3, 5])]
    joints = {joint_key(key, root) for key in keys for root in (ALICE, BOB)}
    assert len(joints) == 4


@pytest.mark.parametrize(
    ("tokens", "shared"),
    [
        (range(8), 2),
        (range(7), 0),  # the registered prefix is not complete
        (range(100), 2),
        ([*range(7), 99, 100], 0),
        ([0, 1, 2, 9, 9, 9, 9, 9, 9], 1),  # the shorter one
        ([5, *range(8)], 0),
        ([], 0),
    ],
)
def test_only_full_blocks_of_a_whole_registered_prefix_are_public(tokens: list[int], shared: int) -> None:
    zone = PublicZone(PUBLIC, 4, [range(10), [0, 1, 2, 9, 9, 9], [7, 7, 7]])
    assert len(zone) == 2
    assert zone.shared_blocks(tokens) == shared
    assert zone.history(ALICE, tokens).shared_blocks == shared


def test_of_two_registered_prefixes_the_longer_one_counts() -> None:
    zone = PublicZone(PUBLIC, 4, [range(4), range(16)])
    assert [zone.shared_blocks(range(length)) for length in (3, 4, 15, 16, 17)] == [0, 1, 1, 4, 4]


def test_an_empty_zone_changes_nothing() -> None:
    history = PublicZone(PUBLIC, 4).history(ALICE, range(9))
    assert history.keys(2) == TokenHistory(ALICE, range(9), 4).keys(2)


@given(TOKENS, st.lists(TOKENS, max_size=4), st.integers(1, 5))
def test_a_zoned_history_grown_token_by_token_has_the_keys_of_one_built_at_once(
    tokens: list[int], prefixes: list[list[int]], block_size: int
) -> None:
    zone = PublicZone(PUBLIC, block_size, prefixes)
    whole = zone.history(ALICE, tokens)
    shared = whole.shared_blocks
    begins = [
        len(prefix) // block_size
        for prefix in prefixes
        if tokens[: len(prefix) // block_size * block_size]
        == prefix[: len(prefix) // block_size * block_size]
    ]
    assert shared == max(begins, default=0)
    grown = zone.history(ALICE, tokens[: shared * block_size])
    for length in range(shared * block_size, len(tokens)):
        grown.append(tokens[length])
        assert grown.key_at(length + 1) == whole.key_at(length + 1)
    full = len(tokens) // block_size
    assert grown.keys(full) == whole.keys(full)


def test_a_zone_does_not_reach_beyond_the_tokens() -> None:
    for shared in (0, 3):
        with pytest.raises(ValueError, match="do not fit"):
            ZonedHistory(ALICE, range(11), 4, PUBLIC, shared)
