"""Chained block keys: key(block) = BLAKE2b-256(key(parent) ‖ tokens of the block).

A match is not checked against the tokens again, and inputs come from outside: the digest has
to be cryptographic and 256 bits wide. Tokens are encoded as little-endian 32-bit numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from hashlib import blake2b

from hotprefix.base.ids import BlockKey
from hotprefix.keys.scope import KEY_BYTES

TOKEN_BYTES = 4
_PERSON = b"hotprefix/block1"


def child_key(parent: BlockKey, tokens: bytes) -> BlockKey:
    """Key of the block that holds `tokens` (encoded) and follows `parent`."""
    return BlockKey(blake2b(parent + tokens, digest_size=KEY_BYTES, person=_PERSON).digest())


class TokenHistory:
    """The tokens of a sequence, and the keys of its full blocks, computed once as they fill."""

    __slots__ = ("_block_bytes", "_keys", "_tokens", "block_size", "root")

    def __init__(self, root: BlockKey, token_ids: Iterable[int], block_size: int) -> None:
        self.root = root
        self.block_size = block_size
        self._block_bytes = block_size * TOKEN_BYTES
        self._tokens = array("I", token_ids)
        self._keys: list[BlockKey] = []

    def __len__(self) -> int:
        return len(self._tokens)

    def append(self, token_id: int) -> None:
        """Add one token at the end."""
        self._tokens.append(token_id)

    def extend(self, token_ids: Iterable[int]) -> None:
        """Add tokens at the end."""
        self._tokens.extend(token_ids)

    def tokens(self, start: int, stop: int) -> array[int]:
        """Token ids in [start, stop)."""
        return self._tokens[start:stop]

    def encoded(self, start: int, stop: int) -> bytes:
        """Tokens in [start, stop) as keys and the tree see them."""
        return self._tokens[start:stop].tobytes()

    def block_bytes(self, index: int) -> bytes:
        """The encoded tokens of block `index`, fewer than a block's worth at the tail."""
        start = index * self.block_size
        return self._tokens[start : start + self.block_size].tobytes()

    def keys(self, blocks: int) -> list[BlockKey]:
        """Keys of the first `blocks` full blocks. The list is shared: do not change it."""
        known = len(self._keys)
        if blocks > known:
            data = self._tokens[known * self.block_size : blocks * self.block_size].tobytes()
            key = self.parent_key(known)
            step = self._block_bytes
            for offset in range(0, len(data), step):
                key = child_key(key, data[offset : offset + step])
                self._keys.append(key)
        return self._keys if len(self._keys) == blocks else self._keys[:blocks]

    def all_keys(self) -> list[BlockKey]:
        """Keys of the full blocks, then of the partial last one if there is one."""
        full, rest = divmod(len(self), self.block_size)
        keys = self.keys(full)
        return [*keys, self.key_at(len(self))] if rest else list(keys)

    def parent_key(self, block: int) -> BlockKey:
        """The key that `block` follows: that of the block before it, or a root's."""
        return self.keys(block)[block - 1] if block else self.root

    def root_of(self, block: int) -> BlockKey:
        """The root whose tree holds block `block`."""
        return self.root

    def owner_of(self, block: int) -> BlockKey:
        """The root of the tenant that block `block` is counted for."""
        return self.root

    @property
    def shared_blocks(self) -> int:
        """Leading blocks that lie in a public zone."""
        return 0

    def key_at(self, length: int) -> BlockKey:
        """Key of the first `length` tokens, whether or not they end at a block's border."""
        full, rest = divmod(length, self.block_size)
        if rest:
            return child_key(self.parent_key(full), self.encoded(full * self.block_size, length))
        return self.keys(full)[full - 1] if full else self.parent_key(0)


def common_tokens(left: bytes, right: bytes) -> int:
    """How many leading tokens two encoded runs share."""
    size = min(len(left), len(right))
    difference = int.from_bytes(left[:size], "little") ^ int.from_bytes(right[:size], "little")
    if difference == 0:
        return size // TOKEN_BYTES
    return ((difference & -difference).bit_length() - 1) // (8 * TOKEN_BYTES)
