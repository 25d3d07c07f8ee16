"""Block keys: golden vectors, isolation of scopes, incremental histories."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.keys.chain import TokenHistory, child_key, common_tokens
from hotprefix.keys.scope import CacheScope

TOKENS = st.lists(st.integers(0, 2**32 - 1), max_size=70)


def test_golden_vectors() -> None:
    """Keys live on disks and in other processes: a change of these bytes orphans them all."""
    root = CacheScope("model", "bf16").root()
    assert root.hex() == "ff41a1312c284f0857ed8135921b20f5c0fa905a6a2618cd9dde0d3d4d2514b4"
    assert (
        CacheScope("model", "bf16", tenant="t").root(b"secret").hex()
        == "20a46500d42ba4aeaca7a62df9a0afaa82bcc83b9a3f26a76e02b4250aa4984d"
    )
    history = TokenHistory(root, range(5), 4)
    assert history.keys(1)[0].hex() == "03bf498aaea66a538842f3d59c5f4c2518f951750d51ed87bde4e6bccd3ee71a"
    assert history.key_at(5).hex() == "bf6518b542833e81faa7c82299896ad5b07215bf24cc4489dc74807d42c42fec"


def test_every_field_separates_scopes() -> None:
    scopes = [
        CacheScope("ab", "c"),
        CacheScope("a", "bc"),
        CacheScope("ab", "", "c"),
        CacheScope("ab", "", "", "c"),
        CacheScope("ab", "c", "0"),
        CacheScope("ab", "c", "", "0"),
        CacheScope("ab", "c", "None"),
        CacheScope("org_1", "2345"),
        CacheScope("org_12345", ""),
    ]
    roots = [scope.root(secret) for scope in scopes for secret in (b"", b"s")]
    assert len(set(roots)) == len(roots)
    tokens = list(range(64))
    blocks = [set(TokenHistory(root, tokens, 32).keys(2)) for root in roots]
    for left, right in itertools.combinations(blocks, 2):
        assert not left & right


@given(TOKENS, st.integers(1, 9))
def test_a_history_grown_token_by_token_has_the_keys_of_one_built_at_once(
    tokens: list[int], block_size: int
) -> None:
    root = CacheScope("m", "f").root()
    whole = TokenHistory(root, tokens, block_size)
    grown = TokenHistory(root, (), block_size)
    for count, token in enumerate(tokens, start=1):
        grown.append(token)
        assert len(grown.keys(count // block_size)) == count // block_size
    full = len(tokens) // block_size
    assert grown.keys(full) == whole.keys(full)
    assert grown.key_at(len(tokens)) == whole.key_at(len(tokens))


@given(TOKENS, TOKENS)
def test_keys_are_equal_exactly_if_histories_are(left: list[int], right: list[int]) -> None:
    root = CacheScope("m", "f").root()
    keys = [TokenHistory(root, tokens, 8).key_at(len(tokens)) for tokens in (left, right)]
    assert (keys[0] == keys[1]) == (left == right)


def test_a_key_depends_on_everything_before_it() -> None:
    root = CacheScope("m", "f").root()
    first = TokenHistory(root, [1, 2, 3, 4, 5, 6], 2)
    other = TokenHistory(root, [9, 2, 3, 4, 5, 6], 2)
    assert not set(first.keys(3)) & set(other.keys(3))
    assert first.keys(2)[1] == child_key(first.keys(1)[0], first.block_bytes(1))


@given(TOKENS, TOKENS)
def test_common_tokens_counts_leading_equals(left: list[int], right: list[int]) -> None:
    root = CacheScope("m", "f").root()
    encoded = [TokenHistory(root, tokens, 8).encoded(0, len(tokens)) for tokens in (left, right)]
    expected = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))))
    assert common_tokens(*encoded) == expected


def test_a_secret_over_64_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="64"):
        CacheScope("m", "f").root(b"x" * 65)


def test_all_keys_are_those_of_the_blocks_and_of_the_tail() -> None:
    root = CacheScope("model", "format").root()
    history = TokenHistory(root, range(9), 4)
    assert history.all_keys() == [*history.keys(2), history.key_at(9)]
    assert TokenHistory(root, range(8), 4).all_keys() == history.keys(2)
    assert TokenHistory(root, range(3), 4).all_keys() == [history.key_at(3)]
    assert TokenHistory(root, (), 4).all_keys() == []


def test_all_keys_are_a_list_of_their_own() -> None:
    for length in (8, 9):
        history = TokenHistory(CacheScope("model", "format").root(), range(length), 4)
        history.all_keys().clear()
        assert len(history.keys(2)) == 2
