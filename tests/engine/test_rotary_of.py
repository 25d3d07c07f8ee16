"""The rotary embedding is what the graph computes, or nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from numpy.typing import NDArray

from hotprefix.base.ids import BlockId
from hotprefix.engine.graph import compile_paged_model, kv_format, read_paged_model
from hotprefix.engine.rotary_of import rotary_behind, rotary_of
from hotprefix.engine.runner import PagedRunner, Row
from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.rotary import Rotary

HEADS, SIZE = 2, 16
FREQUENCIES = (10_000.0 ** -(np.arange(8) / 8)).astype(np.float32)


def constant(values: object) -> ov.Output:
    return op.constant(np.asarray(values, np.float32)).output(0)


def doubled(angles: ov.Output) -> ov.Output:
    return op.concat([angles, angles], -1).output(0)


def halves(keys: ov.Output, cos: ov.Output, sin: ov.Output) -> ov.Output:
    """The layout of Llama: (i, i + half)."""
    half = int(cos.get_partial_shape()[-1].get_length())
    first, second = op.variadic_split(keys, -1, [half, half]).outputs()
    return op.concat(
        [
            op.subtract(op.multiply(first, cos), op.multiply(second, sin)),
            op.add(op.multiply(second, cos), op.multiply(first, sin)),
        ],
        -1,
    ).output(0)


def neighbours(keys: ov.Output, cos: ov.Output, sin: ov.Output) -> ov.Output:
    """The layout of GPT-J: (2i, 2i + 1)."""
    half = int(cos.get_partial_shape()[-1].get_length())
    pairs = op.reshape(keys, [0, 0, half, 2], True)
    first, second = (op.squeeze(part, [-1]) for part in op.split(pairs, -1, 2).outputs())
    turned = [
        op.subtract(op.multiply(first, cos), op.multiply(second, sin)),
        op.add(op.multiply(second, cos), op.multiply(first, sin)),
    ]
    stacked = op.concat([op.unsqueeze(part, -1) for part in turned], -1)
    return op.reshape(stacked, [0, 0, 2 * half], True).output(0)


class Graph:
    """Token embeddings turned by position, as a decoder's first layer has its keys."""

    def __init__(self, frequencies: NDArray[np.float32] = FREQUENCIES, factor: float | None = None) -> None:
        self.ids = op.parameter([-1], np.int64, name="input_ids")
        self.positions = op.parameter([-1], np.int64, name="position_ids")
        for parameter in (self.ids, self.positions):
            parameter.output(0).set_names({parameter.get_friendly_name()})
        table = np.random.default_rng(1).normal(0, 1, (4, HEADS * SIZE)).astype(np.float32)
        rows = op.gather(constant(table), self.ids, op.constant(0))
        self.keys = op.reshape(rows, [0, HEADS, SIZE], True).output(0)
        self.frequencies = frequencies
        self.factor = factor

    @property
    def places(self) -> ov.Output:
        """Positions as float32 [tokens, 1, 1]."""
        return op.unsqueeze(op.convert(self.positions, np.float32), [1, 2]).output(0)

    def waves(self, angles: ov.Output) -> tuple[ov.Output, ov.Output]:
        cos, sin = op.cos(angles).output(0), op.sin(angles).output(0)
        if self.factor is None:
            return cos, sin
        scale = constant(self.factor)
        return op.multiply(cos, scale).output(0), op.multiply(sin, scale).output(0)

    def angles(self) -> ov.Output:
        return op.multiply(self.places, constant(self.frequencies)).output(0)

    def read(self, turned: ov.Output, *others: ov.Node) -> Rotary | None:
        keys = op.reshape(turned, [0, -1], True).output(0)
        model = ov.Model([op.result(keys)], [self.ids, self.positions, *others], "graph")
        return rotary_behind(ov.Core(), model, keys, SIZE)


@pytest.mark.parametrize(("turn", "is_half_split"), [(halves, True), (neighbours, False)])
@pytest.mark.parametrize("factor", [None, 1.25])
def test_layouts_and_factors_are_told_apart(
    turn: Callable[..., ov.Output], is_half_split: bool, factor: float | None
) -> None:
    graph = Graph(factor=factor)
    rotary = graph.read(turn(graph.keys, *graph.waves(graph.angles())))
    assert rotary is not None
    assert rotary.is_half_split is is_half_split
    assert np.array_equal(rotary.inverse_frequencies, FREQUENCIES.astype(np.float64))
    assert rotary.attention_factor == (1.0 if factor is None else factor)


def test_angles_may_be_doubled_to_the_head_size() -> None:
    """As `rotate_half` has them."""
    graph = Graph()
    cos, sin = graph.waves(doubled(graph.angles()))
    first, second = op.variadic_split(graph.keys, -1, [8, 8]).outputs()
    swapped = op.concat([op.negative(second), first], -1)
    turned = op.add(op.multiply(graph.keys, cos), op.multiply(swapped, sin)).output(0)
    rotary = graph.read(turned)
    assert rotary is not None
    assert rotary.is_half_split
    assert np.array_equal(rotary.inverse_frequencies, FREQUENCIES.astype(np.float64))


def test_part_of_a_head_may_be_turned() -> None:
    graph = Graph(FREQUENCIES[:3])
    turned_part, rest = op.variadic_split(graph.keys, -1, [6, 10]).outputs()
    turned = op.concat([halves(turned_part, *graph.waves(graph.angles())), rest], -1).output(0)
    rotary = graph.read(turned)
    assert rotary is not None
    assert len(rotary.inverse_frequencies) == 3


def test_no_embedding_gives_none() -> None:
    graph = Graph()
    assert graph.read(op.multiply(graph.keys, graph.places).output(0)) is None


def test_heads_of_another_size_give_none() -> None:
    graph = Graph()
    turned = halves(graph.keys, *graph.waves(graph.angles()))
    keys = op.reshape(turned, [0, -1], True).output(0)
    model = ov.Model([op.result(keys)], [graph.ids, graph.positions], "graph")
    assert rotary_behind(ov.Core(), model, keys, SIZE + 2) is None
    assert rotary_behind(ov.Core(), model, keys, SIZE) is not None


def test_frequencies_that_move_with_the_position_give_none() -> None:
    """As dynamic NTK has them beyond the trained length."""
    graph = Graph()
    stretch = op.maximum(op.divide(graph.places, constant(4096.0)), constant(1.0))
    angles = op.divide(graph.angles(), stretch).output(0)
    assert graph.read(halves(graph.keys, *graph.waves(angles))) is None


def test_two_embeddings_in_one_graph_give_none() -> None:
    graph = Graph()
    other = op.multiply(graph.places, constant(FREQUENCIES / 8)).output(0)
    twice = halves(halves(graph.keys, *graph.waves(graph.angles())), *graph.waves(other))
    assert graph.read(twice) is None


def test_a_rotation_of_another_kind_gives_none() -> None:
    graph = Graph()
    cos, sin = graph.waves(graph.angles())
    assert graph.read(halves(graph.keys, sin, cos)) is None


def test_keys_that_need_more_than_the_token_give_none() -> None:
    graph = Graph()
    length = op.parameter([], np.float32, name="length")
    length.output(0).set_names({"length"})
    angles = op.multiply(graph.angles(), length).output(0)
    assert graph.read(halves(graph.keys, *graph.waves(angles)), length) is None


def test_keys_of_a_tiny_model_turn_back_to_one(tiny_model: ModelManifest) -> None:
    check_first_layer(tiny_model)


def test_a_layer_that_knows_no_positions_gives_none(tiny_model: ModelManifest) -> None:
    """As every fourth of SmolLM3 is: its keys must not be turned when tokens move."""
    core = ov.Core()
    model = read_paged_model(core, tiny_model.graph)
    assert rotary_of(core, model, 64) is not None
    attentions = [one for one in model.get_ordered_ops() if one.get_type_name() == "PagedAttentionExtension"]
    assert len(attentions) == 2
    projected = attentions[1].input_value(1).get_node()
    while projected.get_type_name() != "MatMul":
        projected = projected.input_value(0).get_node()
    width = int(attentions[1].input_value(1).get_partial_shape()[-1].get_length())
    attentions[1].input(1).replace_source_output(op.reshape(projected, [-1, width], False).output(0))
    assert rotary_of(core, model, 64) is None


@pytest.mark.model
def test_keys_of_the_default_model_turn_back_to_one(default_model: ModelManifest) -> None:
    rotary = check_first_layer(default_model)
    assert rotary.is_half_split
    assert np.allclose(rotary.inverse_frequencies, 100_000.0 ** -(np.arange(32) / 32), rtol=1e-6)


def check_first_layer(manifest: ModelManifest) -> Rotary:
    """One token at many positions: the compiled model's cached keys differ by the embedding alone."""
    core = ov.Core()
    model = read_paged_model(core, manifest.graph)
    compiled = compile_paged_model(core, model, "f32", None)
    kv = kv_format(compiled)
    heads, slots, size = kv.inputs[0].block_shape
    rotary = rotary_of(core, model, size)
    assert rotary is not None
    blocks = 4
    arena = BlockArena(kv, blocks + 1)
    table = [BlockId(block) for block in range(blocks)]
    PagedRunner(compiled, arena, BlockId(blocks)).run([Row([7] * blocks * slots, 0, table, False)])
    cached = arena.buffers[0][:blocks].view(np.float32).reshape(blocks, heads, slots, size)
    keys = cached.swapaxes(0, 1).reshape(heads, blocks * slots, size)
    before = rotary.rotated(keys, -np.arange(blocks * slots))
    scale = np.abs(keys).max()
    assert np.abs(keys - keys[:, :1]).max() > scale / 4
    assert np.abs(before - before[:, :1]).max() < scale * 2.0**-12
    return rotary
