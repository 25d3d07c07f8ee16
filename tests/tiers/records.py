"""Records and stores for the tests of this room."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b

from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import BlockStore, Record

SCOPE = blake2b(b"scope", digest_size=32).digest()
OTHER_SCOPE = blake2b(b"another", digest_size=32).digest()
SECRET = bytes(range(32))


def key_of(number: int) -> BlockKey:
    return BlockKey(blake2b(number.to_bytes(8, "little"), digest_size=32).digest())


def record(number: int, size: int = 1000, *, scope: bytes = SCOPE, version: int = 0) -> Record:
    """Its payload follows from number, size and version."""
    payload = random.Random(f"{number}/{size}/{version}").randbytes(size)
    return Record(key_of(number), scope, "raw", 32 * number, 32, payload)


def present(store: BlockStore, numbers: Sequence[int]) -> list[int]:
    """Which of them the store says it has."""
    return [
        number
        for number, is_here in zip(numbers, store.contains([key_of(n) for n in numbers]), strict=True)
        if is_here
    ]


def fetch(store: BlockStore, number: int) -> Record | None:
    return store.get([key_of(number)])[0]
