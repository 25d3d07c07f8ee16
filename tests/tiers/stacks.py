"""Stacks for tests: a toy codec, blocks by number, and a fetch that waits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from threading import Event, current_thread

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.base import Block, BrokenPayload
from hotprefix.tiers.base import BlockStore, Record
from hotprefix.tiers.facts import BlockFacts
from hotprefix.tiers.stack import TierStack
from hotprefix.tiers.storage import BlockStorage, Fetched
from tests.tiers.records import SCOPE, key_of

BLOCK = 2000
TOKENS = 32


class Plain:
    """The bytes as they are, behind a letter."""

    is_lossless = True
    block_bytes = BLOCK + 1

    def __init__(self, name: str = "plain", mark: bytes = b"p") -> None:
        self.name = name
        self._mark = mark

    def encode(self, block: Block, position: int, tokens: int) -> bytes:
        return self._mark + block.tobytes()

    def decode(self, payload: bytes, position: int, tokens: int, out: Block) -> None:
        if payload[:1] != self._mark or len(payload) != BLOCK + 1:
            raise BrokenPayload("not mine")
        out[:] = np.frombuffer(payload, np.uint8, offset=1)


class Gated:
    """Any store, whose `put` and `get` say that they began and wait until they may go on."""

    def __init__(self, inner: BlockStore) -> None:
        self._inner = inner
        self.began = Event()
        self.may_go = Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def put(self, record: Record) -> bool:
        self._wait()
        return self._inner.put(record)

    def get(self, keys: Sequence[object]) -> list[Record | None]:
        self._wait()
        return self._inner.get(keys)  # type: ignore[arg-type]

    def _wait(self) -> None:
        self.began.set()
        assert self.may_go.wait(30)


def block(number: int) -> NDArray[np.uint8]:
    return np.frombuffer(random.Random(number).randbytes(BLOCK), np.uint8).copy()


def storage(**others: Plain) -> BlockStorage:
    return BlockStorage(SCOPE, BLOCK, Plain(), others)


def store(stack: TierStack, numbers: Sequence[int], facts: BlockFacts | None = None) -> list[bool]:
    return [
        stack.store(
            key_of(n), TOKENS * n, TOKENS, partial(block, n), facts or BlockFacts(position=TOKENS * n)
        )
        for n in numbers
    ]


class Answer:
    """What a fetch brings, once, on the reader's thread."""

    def __init__(self) -> None:
        self.calls: list[list[Fetched]] = []
        self.threads: list[str] = []
        self._came = Event()

    def __call__(self, run: list[Fetched]) -> None:
        self.calls.append(run)
        self.threads.append(current_thread().name)
        self._came.set()

    def wait(self) -> list[Fetched]:
        assert self._came.wait(30)
        return self.calls[0]


def fetch(stack: TierStack, numbers: Sequence[int]) -> list[int]:
    """Which leading blocks came; all are checked to be right."""
    answer = Answer()
    stack.fetch([key_of(number) for number in numbers], answer)
    run = answer.wait()
    for number, got in zip(numbers, run, strict=False):
        assert (got.key, got.position, got.tokens) == (key_of(number), TOKENS * number, TOKENS)
        assert (got.data == block(number)).all()
    assert len(answer.calls) == 1
    assert answer.threads == ["tiers-reader"]
    return list(numbers[: len(run)])
