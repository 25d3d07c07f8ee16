"""A model over an arena of its own, to be prefilled, looked into and scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import openvino as ov
import openvino.opset13 as op
from numpy.typing import NDArray

from hotprefix.base.ids import BlockId
from hotprefix.engine.graph import Told, computing_type, kv_format, read_paged_model
from hotprefix.engine.rotary_of import rotary_of
from hotprefix.engine.runner import PagedRunner, Row
from hotprefix.engine.settings import EngineSettings
from hotprefix.engine.stages import compile_network
from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.format import CacheInput, KvFormat
from hotprefix.pages.rotary import Rotary
from hotprefix.quality.metrics import Logits

CHUNK = 512
SCORED = 128
"""Rows of logits at once: those of a large vocabulary take half a megabyte each."""

_ATTENTION = "PagedAttentionExtension"
_QUERIES = "queries."


class Arithmetic(Enum):
    """How numbers are computed.

    `EXACT`: 32-bit floats, weights and activations as they are, so that what differs is the KV's doing.
    `SERVED`: as a server computes. There every last bit is amplified: activations are rounded to 16 bits,
    and to 8 in products with packed weights, and one that falls to the other side moves all that follow."""

    EXACT = "exact"
    SERVED = "served"


_PROPERTIES = {
    Arithmetic.EXACT: {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"},
    Arithmetic.SERVED: {},
}


class Setup(NamedTuple):
    """How a model is computed: `kv_precision` is that of `hotprefix serve`, `threads` None all."""

    arithmetic: Arithmetic = Arithmetic.EXACT
    kv_precision: str = "auto"
    threads: int | None = None


class Facts(NamedTuple):
    """What codecs need to know: how keys are turned, and the type of a 16-bit arena on this machine."""

    rotary: Rotary | None
    word_type: str


class MeasuredModel:
    """Computes one sequence at a time. Raises `ModelError` if the model can't be compiled."""

    def __init__(
        self,
        manifest: ModelManifest,
        setup: Setup,
        tokens: int,
        *,
        queries: bool = False,
        told: Told = Told.LOGITS,
    ) -> None:
        core = ov.Core()
        word_type = computing_type(core)
        for name, value in _PROPERTIES[setup.arithmetic].items():
            core.set_property("CPU", {name: value})
        graph = read_paged_model(core, manifest.graph, manifest.ropes, told)
        if queries:
            _tell_queries(graph)
        settings = EngineSettings(kv_precision=setup.kv_precision, threads=setup.threads)
        network = compile_network(core, graph, settings)
        self.format: KvFormat = kv_format(*network)
        size = self.format.block_size
        # One block for the tail of each sequence that is answered beside the others, one as scratch.
        self.arena = BlockArena(self.format, -(-tokens // size) + 2)
        self.runner = PagedRunner(network[0], self.arena, BlockId(self.arena.blocks - 1), *network[1:])
        # Of the keys: rows of values are longer in an arena of integers.
        head_size = next(
            cache.block_shape[-1] for cache in self.format.inputs if cache.name.startswith("key_cache")
        )
        self.facts = Facts(rotary_of(core, graph, head_size), "bf16" if word_type == "bf16" else "f16")
        self._table = [BlockId(block) for block in range(self.arena.blocks - 1)]

    def prefill(self, tokens: Sequence[int], *, chunk: int = CHUNK, past: int = 0) -> None:
        """Compute tokens behind `past` others."""
        for start in range(0, len(tokens), chunk):
            self.runner.run([Row(tokens[start : start + chunk], past + start, self._table, True)])

    def score(self, tokens: Sequence[int], past: int) -> Iterator[Logits]:
        """Logits behind two or more tokens, some rows at a time; each part is valid until the next."""
        # Parts of like size: none of a single token, which would take another kernel.
        parts = -(-len(tokens) // SCORED)
        bounds = [len(tokens) * part // parts for part in range(parts + 1)]
        for start, end in pairwise(bounds):
            yield self.runner.score(Row(tokens[start:end], past + start, self._table, True))

    def ask(self, question: Sequence[int], past: int) -> Logits:
        """Logits behind a question that follows `past` tokens, a multiple of the block size: [vocabulary]."""
        logits: Logits = self.runner.run([Row(question, past, self._table, True)])[0]
        return logits.copy()

    def blocks(self, count: int) -> list[NDArray[np.uint8]]:
        """Copies of the first blocks of every cache tensor."""
        return [buffer[:count].copy() for buffer in self.arena.buffers]

    def restore(self, blocks: Sequence[NDArray[np.uint8]]) -> None:
        """Undo what was done to the first blocks."""
        for buffer, kept in zip(self.arena.buffers, blocks, strict=True):
            buffer[: len(kept)] = kept

    def cached(self, side: str, layer: int, tokens: int) -> NDArray[np.float32]:
        """A copy of what a 32-bit arena holds of the first tokens, [kv heads, tokens, head size]; `side` is
        `key` or `value`."""
        cache, buffer = self._tensor(side, layer)
        heads, slots, size = cache.block_shape
        blocks = -(-tokens // slots)
        values = buffer[:blocks].view(np.float32).reshape(blocks, heads, slots, size)
        return values.transpose(1, 0, 2, 3).reshape(heads, blocks * slots, size)[:, :tokens].copy()

    def put(self, side: str, layer: int, values: NDArray[np.float32]) -> None:
        """Undo `cached`."""
        cache, buffer = self._tensor(side, layer)
        heads, slots, size = cache.block_shape
        blocks = -(-values.shape[1] // slots)
        padded = np.zeros((heads, blocks * slots, size), np.float32)
        padded[:, : values.shape[1]] = values
        words = padded.reshape(heads, blocks, slots, size).transpose(1, 0, 2, 3)
        buffer[:blocks] = np.ascontiguousarray(words).reshape(blocks, -1).view(np.uint8)

    def _tensor(self, side: str, layer: int) -> tuple[CacheInput, NDArray[np.uint8]]:
        name = f"{side}_cache.{layer}"
        pairs = zip(self.format.inputs, self.arena.buffers, strict=True)
        return next((cache, buffer) for cache, buffer in pairs if cache.name == name)

    def queries(self, layer: int) -> NDArray[np.float32]:
        """What a layer asked with in the last step, [tokens, heads x head size], for models that tell it."""
        told: NDArray[np.float32] = self.runner.output(f"{_QUERIES}{layer}")
        return told.reshape(len(told), -1).copy()


def words_of(kv_format: KvFormat, word_type: str) -> KvFormat:
    """A format as it would be with 16-bit words."""
    inputs = tuple(CacheInput(cache.name, word_type, 16, cache.block_shape) for cache in kv_format.inputs)
    return KvFormat(kv_format.block_size, inputs)


def _tell_queries(model: ov.Model) -> None:
    """Add what each layer's attention is asked with, after the rotary embedding, to the outputs."""
    for node in model.get_ordered_ops():
        if node.get_type_name() == _ATTENTION:
            told = op.result(node.input_value(0))
            told.output(0).set_names({f"{_QUERIES}{_layer(node)}"})
            model.add_results([told])


def _layer(attention: ov.Node) -> int:
    [name] = (name for name in attention.input_value(3).get_names() if name.startswith("key_cache."))
    return int(name.removeprefix("key_cache."))
