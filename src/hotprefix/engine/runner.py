"""One forward pass over the tokens of many sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId
from hotprefix.engine.graph import ATTENTION_OUTPUT, HIDDEN_INPUT, LOOK_BACK_INPUT, SAMPLE_INPUT, kv_format
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.format import KvFormat

LOOK_BACK = 32
"""Last tokens of a row whose attention is told: what they looked at is what the next ones will."""


class Row(NamedTuple):
    """Tokens of one sequence to compute in a step: positions [past, past + len(tokens)).

    `table` covers at least those positions. A `sampled` row yields the logits behind its last token.
    """

    tokens: Sequence[int]
    past: int
    table: Sequence[BlockId]
    sampled: bool


class ModelRunner(Protocol):
    """Computes steps."""

    def run(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        """Logits of the sampled rows in order, [sampled rows, vocabulary], valid until the next run."""
        ...


class PagedRunner:
    """Runs a compiled paged-attention model over an arena.

    Inputs of the model, with T the tokens of all rows, S the rows, B the blocks of all tables:
    `input_ids`, `position_ids` i64 [T]; `past_lens` i32 [S]; `subsequence_begins` i32 [S + 1];
    `block_indices` i32 [B]; `block_indices_begins` i32 [S + 1]; `max_context_len` i32 scalar;
    `sample_idx` i64 [sampled rows].

    A network cut in two goes on with `deeper`, which begins with the tensor that `compiled` ended with.

    Matrices of one row take other kernels, with another order of sums, than matrices of several.
    So that no row's result depends on its company, a lone decoding row is joined by an idle one on
    the `scratch` block, and a lone sampled row is sampled twice.
    """

    def __init__(
        self,
        compiled: ov.CompiledModel,
        arena: BlockArena,
        scratch: BlockId,
        deeper: ov.CompiledModel | None = None,
    ) -> None:
        parts = (compiled,) if deeper is None else (compiled, deeper)
        self.format: KvFormat = kv_format(*parts)
        self._requests = [part.create_infer_request() for part in parts]
        self._takers: dict[str, list[ov.InferRequest]] = {}
        for part, request in zip(parts, self._requests, strict=True):
            for port in part.inputs:
                self._takers.setdefault(port.get_any_name(), []).append(request)
        self._arena = arena
        self._block_size = self.format.block_size
        self.vocab_size = int(parts[-1].output(0).get_partial_shape()[-1].get_length())
        self._idle = Row((0,), 0, (scratch,), False)
        names = [name for port in parts[-1].outputs for name in port.get_names()]
        self._attention = sorted(
            (name for name in names if name.startswith(ATTENTION_OUTPUT)),
            key=lambda name: int(name.removeprefix(ATTENTION_OUTPUT)),
        )
        self._lengths: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        # The tensors only borrow the arena's memory: both must live as long as the requests.
        self._tensors = self._lend(parts, arena)

    def run(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        if len(rows) == 1 and len(rows[0].tokens) == 1:
            rows = (*rows, self._idle)
        counts = np.fromiter((len(row.tokens) for row in rows), dtype=np.int64, count=len(rows))
        sampled = np.fromiter((row.sampled for row in rows), dtype=bool, count=len(rows))
        return self._compute(rows, counts, (np.cumsum(counts) - 1)[sampled])

    def score(self, row: Row) -> NDArray[np.float32]:
        """Logits behind every token of a row of two or more, [tokens, vocabulary], valid until the next
        step."""
        count = len(row.tokens)
        return self._compute((row,), np.array([count]), np.arange(count))

    def _compute(
        self, rows: Sequence[Row], counts: NDArray[np.int64], wanted: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """The logits behind the tokens at the places `wanted` among those of all rows."""
        past = np.fromiter((row.past for row in rows), dtype=np.int64, count=len(rows))
        begins = np.concatenate(([0], np.cumsum(counts)))
        total = int(begins[-1])
        lengths = past + counts
        blocks = -(-lengths // self._block_size)
        positions = np.arange(total, dtype=np.int64) + np.repeat(past - begins[:-1], counts)
        self._set("input_ids", _joined([row.tokens for row in rows], total, np.int64))
        self._set("position_ids", positions)
        self._set("past_lens", past.astype(np.int32))
        self._set("subsequence_begins", begins.astype(np.int32))
        tables = [row.table[:count] for row, count in zip(rows, blocks.tolist(), strict=True)]
        self._set("block_indices", _joined(tables, int(blocks.sum()), np.int32))
        self._set("block_indices_begins", np.concatenate(([0], np.cumsum(blocks))).astype(np.int32))
        self._set("max_context_len", np.array(lengths.max(), dtype=np.int32))
        if self._attention:
            self._set(LOOK_BACK_INPUT, np.minimum(counts, LOOK_BACK).astype(np.int32))
            self._lengths = lengths
        # The operator wants a row even where none is asked for; nobody looks at it.
        self._set(SAMPLE_INPUT, wanted if len(wanted) > 1 else np.full(2, wanted[0] if len(wanted) else 0))
        first, *others = self._requests
        first.infer()
        out = first.get_output_tensor(0)
        for request in others:
            # The very memory that the part before has written.
            request.set_tensor(HIDDEN_INPUT, out)
            request.infer()
            out = request.get_output_tensor(0)
        logits: NDArray[np.float32] = out.data
        return logits.reshape(-1, self.vocab_size)[: len(wanted)]

    def output(self, name: str) -> NDArray[np.float32]:
        """An output of the last step beside the logits, valid until the next one."""
        told: NDArray[np.float32] = self._requests[-1].get_tensor(name).data
        return told

    def attention(self) -> list[NDArray[np.float32]]:
        """For each row of the last run the attention [layers, tokens] that each token in its cache got from
        the row's last `LOOK_BACK` tokens, summed over these and over heads; for models that tell it."""
        request = self._requests[-1]
        shares = np.stack([request.get_tensor(name).data for name in self._attention])
        return np.split(shares, np.cumsum(self._lengths)[:-1], axis=1)

    @staticmethod
    def looked_back(tokens: int) -> int:
        """How many tokens of a row count in `attention`."""
        return min(tokens, LOOK_BACK)

    def _set(self, name: str, values: NDArray[np.int64] | NDArray[np.int32]) -> None:
        tensor = ov.Tensor(values)
        for request in self._takers[name]:
            request.set_tensor(name, tensor)

    def _lend(self, parts: Sequence[ov.CompiledModel], arena: BlockArena) -> list[ov.Tensor]:
        ports = {port.get_any_name(): port for part in parts for port in part.inputs}
        tensors = []
        for cache, buffer in zip(self.format.inputs, arena.buffers, strict=True):
            kind = ports[cache.name].get_element_type()
            view = buffer.reshape(-1) if cache.bits <= 8 else buffer.reshape(-1).view(f"u{cache.bits // 8}")
            if cache.bits == 16:
                view = view.view(np.float16)
            elif cache.bits == 32:
                view = view.view(np.float32)
            tensor = ov.Tensor(view, ov.Shape([arena.blocks, *cache.block_shape]), kind)
            for request in self._takers[cache.name]:
                request.set_tensor(cache.name, tensor)
            tensors.append(tensor)
        return tensors


def _joined(parts: Sequence[Sequence[int]], total: int, kind: type) -> NDArray[np.int64]:
    out: NDArray[np.int64] = np.empty(total, dtype=kind)
    at = 0
    for part in parts:
        out[at : at + len(part)] = part
        at += len(part)
    if at != total:
        raise LogicError("a block table is shorter than its sequence")
    return out
