"""The rotary embedding that a graph computes, read from it and checked against it."""

from __future__ import annotations

import numpy as np
import openvino as ov
import openvino.opset13 as op
from numpy.typing import NDArray

from hotprefix.models.graph_walk import ancestors
from hotprefix.models.rope_graph import attention_factor
from hotprefix.pages.rotary import Rotary

_ATTENTION = "PagedAttentionExtension"
_POSITIONS = np.array([0, 1, 2, 5, 17, 100, 1021, 4093, 32_749])
_TOLERANCE = 2.0**-8
"""Angles and keys are float32: at position 32,749 a turn is off by up to 2^-9 of the key."""


def rotary_of(core: ov.Core, model: ov.Model, head_size: int) -> Rotary | None:
    """How a paged model turns its keys; None where that is not one fixed rotation for all layers.

    Frequencies are what feeds the graph's sine. They are believed only if turning the first layer's keys
    of one position with them gives its keys of others, up to position 32,749. So whatever scaling the
    graph contains is in them, and scaling that depends on the length gives None. So does a model some of
    whose layers know no positions.
    """
    copy = model.clone()
    keys = _first_keys(copy)
    if keys is None or not _turns_everywhere(copy):
        return None
    return rotary_behind(core, copy, keys, head_size)


def rotary_behind(core: ov.Core, model: ov.Model, keys: ov.Output, head_size: int) -> Rotary | None:
    """How `keys` [tokens, heads x head size], an output inside the model, depend on `position_ids`."""
    nodes = model.get_ordered_ops()
    sines = [node for node in nodes if node.get_type_name() == "Sin"]
    cosines = [node for node in nodes if node.get_type_name() == "Cos"]
    if not sines or not cosines:
        return None
    computed = _computed(core, model, [*(node.input_value(0) for node in sines), keys])
    if computed is None:
        return None
    *angles, cached = computed
    if any(not np.array_equal(angles[0], other) for other in angles[1:]):
        return None
    frequencies = _frequencies(angles[0])
    if frequencies is None or 2 * len(frequencies) > head_size or cached.shape[1] % head_size:
        return None
    factor = attention_factor(cosines[0])
    for is_half_split in (True, False):
        rotary = Rotary(frequencies, is_half_split, factor)
        if _moves(rotary, cached, head_size):
            return rotary
    return None


def _first_keys(model: ov.Model) -> ov.Output | None:
    """What the first layer writes into its key cache, [tokens, kv heads x head size]."""
    for node in model.get_ordered_ops():
        if node.get_type_name() == _ATTENTION and "key_cache.0" in node.input_value(3).get_names():
            return node.input_value(1)
    return None


def _turns_everywhere(model: ov.Model) -> bool:
    """Whether a sine reaches every layer's keys on a way of its own, through no other layer's attention."""
    turned: set[str] = set()
    for node in model.get_ordered_ops():
        sources = [value.get_node() for value in node.input_values()]
        if node.get_type_name() == _ATTENTION:
            if sources[1].get_name() not in turned:
                return False
        elif node.get_type_name() == "Sin" or any(source.get_name() in turned for source in sources):
            turned.add(node.get_name())
    return True


def _computed(core: ov.Core, model: ov.Model, outputs: list[ov.Output]) -> list[NDArray[np.float32]] | None:
    """Outputs [positions, …] for one token at all of `_POSITIONS`, in float32; None if they need more."""
    names = ancestors(output.get_node() for output in outputs)
    parameters = [node for node in model.get_parameters() if node.get_name() in names]
    feeds = {"input_ids": np.ones_like(_POSITIONS), "position_ids": _POSITIONS}
    inputs = []
    for parameter in parameters:
        known = feeds.keys() & parameter.output(0).get_names()
        if not known:
            return None
        inputs.append(feeds[known.pop()])
    part = ov.Model([op.result(output) for output in outputs], parameters, "rotary")
    compiled = core.compile_model(part, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(inputs)
    return [np.array(results[index]).reshape(len(_POSITIONS), -1) for index in range(len(outputs))]


def _frequencies(angles: NDArray[np.float32]) -> NDArray[np.float64] | None:
    """Radians a position for each pair; None where angles don't grow with the position alone."""
    one: NDArray[np.float64] = angles[1].astype(np.float64)
    if not np.allclose(angles, _POSITIONS[:, None] * one, rtol=1e-5, atol=1e-6):
        return None
    half = len(one) // 2
    for members in ((one[:half], one[half:]), (one[0::2], one[1::2])):
        if half and np.array_equal(*members):
            return members[0]
    return one


def _moves(rotary: Rotary, cached: NDArray[np.float32], head_size: int) -> bool:
    """Whether turning the key of any position gives the keys of all."""
    keys = cached.reshape(len(_POSITIONS), -1, head_size).swapaxes(0, 1)
    largest = np.abs(keys).max(axis=(1, 2), keepdims=True)
    for at, position in enumerate(_POSITIONS):
        moved = rotary.rotated(np.broadcast_to(keys[:, at : at + 1], keys.shape), _POSITIONS - position)
        if (np.abs(moved - keys) > _TOLERANCE * largest).any():
            return False
    return True
