"""A model whose KV can be checked: each slot holds a digest chained over the whole history.

A pass reads the history back through the block table and compares it link by link. The logits
follow from the last digest, so an answer depends on every token before it, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, pre_tokenizers, trainers

from hotprefix.base.ids import BlockId
from hotprefix.cache.recut import Places, Recut
from hotprefix.engine.runner import Row
from hotprefix.engine.strategy.base import CachedTokens, Cutter
from hotprefix.engine.strategy.scorer import Floats
from hotprefix.kv.pool import BlockPool, BlockState
from hotprefix.prompt.hf_tokenizer import HfTokenizer

EOS = 1
START = 0
_LIKELY = np.float32(100)


@cache
def byte_tokenizer() -> HfTokenizer:
    """One token for each byte, and two special ones: 0 and `EOS`."""
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=258,
        special_tokens=["<|start|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator([], trainer)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        library.save(str(path))
        return HfTokenizer(path)


VOCAB = 258


def letters(text: str) -> list[int]:
    """Token ids of a text."""
    return byte_tokenizer().encode(text)


@lru_cache(maxsize=100_000)
def link(before: int, token: int) -> int:
    """The digest of a history that goes on with `token`."""
    data = before.to_bytes(8, "little") + token.to_bytes(4, "little")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def after_gap(digest: int, found: int, token: int) -> int:
    """The digest of a history whose next token in the cache was computed with another one before it."""
    return link(digest ^ found, token)


def worth(digests: NDArray[np.uint64]) -> Floats:
    """What tokens are worth: a number that follows from their history."""
    return (digests / 2.0**64).astype(np.float32)


class FakeModel:
    """Runs steps over its own arena of `blocks` blocks. `alphabet` are the tokens it likes to say.

    `pool` lets it check that nothing that is sealed ever changes. With `least` 2 it insists that
    no pass over a history has a single token, as the exact attention kernel wants it, unless it
    begins a quantised block of `granularity` tokens. Caches can be cut: then what a token sees is what is
    in its cache, each token as it was computed and at the position where it is now.
    """

    def __init__(self, blocks: int, block_size: int, alphabet: Iterable[int], pool: BlockPool) -> None:
        self.block_size = block_size
        self.vocab_size = VOCAB
        self.digests = np.zeros((blocks, block_size), dtype=np.uint64)
        self.tokens = np.full((blocks, block_size), -1, dtype=np.int64)
        self.positions = np.full((blocks, block_size), -1, dtype=np.int64)
        self.cuts = 0
        self.computed = 0
        self.least = 1
        self.granularity = 1
        self.failures: list[Exception] = []
        self.sealed_writes = 0
        self._alphabet = np.array(sorted(alphabet))
        self._pool = pool

    def copy(self, source: BlockId, target: BlockId) -> None:
        """The arena's verb: make `target` equal to `source`."""
        self.digests[target] = self.digests[source]
        self.tokens[target] = self.tokens[source]
        self.positions[target] = self.positions[source]

    def move(self, cut: Recut) -> None:
        """The mover's verb: kept tokens go to their new slots, at their new positions."""
        self.cuts += 1
        size = self.block_size
        held = [
            (array[cut.before[place // size], place % size], place)
            for array in (self.tokens, self.digests)
            for place in cut.kept.tolist()
        ]
        tokens, digests = held[: len(cut.kept)], held[len(cut.kept) :]
        for place, ((token, old), (digest, _)) in enumerate(zip(tokens, digests, strict=True)):
            block, slot = cut.after[place // size], place % size
            if place < cut.front * size:
                assert (block, place) == (cut.before[place // size], old), "something moves in the front"
                continue
            assert self._pool.state(block) is BlockState.PRIVATE, "a shared block would be written to"
            self.tokens[block, slot] = token
            self.digests[block, slot] = digest
            self.positions[block, slot] = place

    def read(self, table: list[BlockId], places: Places) -> tuple[Floats, Floats]:
        """The mover's other verb: one layer, one head, one channel."""
        blocks = np.array(table)[places // self.block_size]
        keys = worth(self.digests[blocks, places % self.block_size])
        return keys[None, None, :, None], keys[None, None, :, None]

    def score(self, keys: Floats, values: Floats, positions: Places) -> Floats:
        """The scorer's verb."""
        return keys[:, 0, :, 0]

    @property
    def block_bytes(self) -> int:
        """Bytes of a block's snapshot."""
        return self.block_size * 24

    def snapshot(self, block: BlockId) -> NDArray[np.uint8]:
        """The arena's verb: a block's bytes, slot by slot."""
        slots = np.stack(
            [self.digests[block].view(np.int64), self.tokens[block], self.positions[block]], axis=1
        )
        return slots.view(np.uint8).reshape(-1).copy()

    def write(self, block: BlockId, data: NDArray[np.uint8]) -> None:
        """The arena's verb: set a block's bytes."""
        assert self._pool.state(block) is BlockState.PRIVATE
        slots = np.asarray(data).view(np.int64).reshape(self.block_size, 3)
        self.digests[block] = slots[:, 0].view(np.uint64)
        self.tokens[block] = slots[:, 1]
        self.positions[block] = slots[:, 2]

    def run(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        """Compute a step; fails first as often as `failures` says."""
        if self.failures:
            raise self.failures.pop(0)
        assert rows, "a step without rows"
        out = []
        for row in rows:
            starts_block = row.past == 0 or (self.granularity > 1 and row.past % self.granularity == 0)
            assert starts_block or len(row.tokens) >= self.least, "a pass of too few tokens"
            last = self._compute(row)
            if row.sampled:
                out.append(self.logits(last))
        self.computed += sum(len(row.tokens) for row in rows)
        return np.stack(out) if out else np.empty((0, self.vocab_size), dtype=np.float32)

    def _compute(self, row: Row) -> int:
        digest = 0
        for position in range(row.past):
            block, slot = self._place(row, position)
            token = int(self.tokens[block, slot])
            assert token >= 0, f"position {position} was never written"
            assert int(self.positions[block, slot]) == position, f"position {position} was not moved there"
            found = int(self.digests[block, slot])
            follows = link(digest, token) == found
            assert follows or self.cuts, f"position {position} holds another history"
            digest = found if follows else after_gap(digest, found, token)
        for position, token in enumerate(row.tokens, start=row.past):
            digest = link(digest, int(token))
            self._write(*self._place(row, position), int(token), digest)
            block, slot = self._place(row, position)
            self.positions[block, slot] = position
        return digest

    def _place(self, row: Row, position: int) -> tuple[BlockId, int]:
        return row.table[position // self.block_size], position % self.block_size

    def _write(self, block: BlockId, slot: int, token: int, digest: int) -> None:
        if self._pool.state(block) is BlockState.SEALED:
            self.sealed_writes += 1
            assert int(self.digests[block, slot]) == digest, "a sealed block was changed"
        self.tokens[block, slot] = token
        self.digests[block, slot] = digest

    def logits(self, digest: int) -> NDArray[np.float32]:
        """Logits behind a history, by its digest."""
        values = np.random.Generator(np.random.PCG64(digest)).standard_normal(self.vocab_size, np.float32)
        values[self._alphabet] += _LIKELY
        return values

    def greedy(self, prompt: Sequence[int], count: int, cutter: Cutter | None = None) -> list[int]:
        """The twin: what must be answered, `EOS` included, computed without any blocks."""
        cache = TwinCache(cutter, is_exact=self.least > 1)
        for token in prompt:
            digest = cache.add(token)
        answer: list[int] = []
        while len(answer) < count and (not answer or answer[-1] != EOS):
            answer.append(int(self.logits(digest).argmax()))
            digest = cache.add(answer[-1])
        return answer


class TwinCache:
    """A sequence's cache as a list: token, digest and place in the sequence of each.

    In exact mode a pass behind a cut begins with the last token that stayed, computed again.
    """

    def __init__(self, cutter: Cutter | None, *, is_exact: bool = False) -> None:
        self._cutter = cutter
        self._is_exact = is_exact
        self._held: list[tuple[int, int, int]] = []
        self._length = 0

    def add(self, token: int) -> int:
        """Compute one token; its digest."""
        if self._cutter is not None and len(self._held) == self._cutter.budget:
            self._cut(self._cutter)
            if self._is_exact:
                again, _, place = self._held.pop()
                self._held.append((again, link(self._seen(), again), place))
        digest = link(self._seen(), token)
        self._held.append((token, digest, self._length))
        self._length += 1
        return digest

    def _seen(self) -> int:
        """What the next token sees."""
        digest = 0
        if self._cutter is None and self._held:
            return self._held[-1][1]
        for old, found, _ in self._held:
            digest = found if link(digest, old) == found else after_gap(digest, found, old)
        return digest

    def _cut(self, cutter: Cutter) -> None:
        digests = np.array([digest for _, digest, _ in self._held], dtype=np.uint64)
        origins = np.array([origin for _, _, origin in self._held], dtype=np.int64)
        kept = cutter.keep(CachedTokens(origins, lambda places: worth(digests[places])[None]))
        self._held = [self._held[place] for place in kept]
