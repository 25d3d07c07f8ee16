"""The rotary embedding inside a graph: found, compared with what the config says, put right.

Works on the stateful graph that converters write, before it is rewritten for paged attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import openvino as ov
import openvino.opset13 as op
from numpy.typing import NDArray

from hotprefix.base.errors import UnsupportedModel
from hotprefix.models.graph_walk import ancestors
from hotprefix.models.rope import Frequencies, Rope

_EXACT = 1e-5
"""Relative. Models are trained with powers in float32, whose exponents are off by about 1e-6."""
_ROUNDED = 2.0**-8
_ROUNDED_NEAR_ZERO = 2.0**-24
"""What 16-bit types leave of a frequency: bf16's step, and the smallest step of f16."""
_SHAPING = frozenset({"Convert", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Broadcast"})


@dataclass(frozen=True, slots=True)
class RotaryNodes:
    """One sine of the graph and the cosine of the same angles; what they compute."""

    sine: ov.Node
    cosine: ov.Node
    frequencies: Frequencies
    attention_factor: float


def settle_rope(core: ov.Core, model: ov.Model, ropes: Sequence[Rope], name: str) -> bool:
    """See that `model` turns positions as one of `ropes` says; True if it had to be changed for that.

    A graph whose converter ignored the scaling, or rounded the frequencies to 16 bits, gets the right
    ones. Raises `UnsupportedModel`, which `name` begins, where they are neither right nor known to be
    wrong in one of these ways. Without `ropes` nothing is known and nothing is looked at.
    """
    scaled = any(rope.scaling is not None for rope in ropes)
    if not ropes:
        return False
    found = rotary_nodes(core, model)
    if found is None or not found:
        if scaled:
            raise UnsupportedModel(
                f"{name} scales its positions, and where its graph does so can't be found to check it"
            )
        return False
    wrong = [nodes for nodes in found if not any(_computes(nodes, rope, _EXACT, 0.0) for rope in ropes)]
    if not wrong:
        return False
    if len(ropes) > 1 or not all(_is_known_wrong(nodes, ropes[0]) for nodes in wrong):
        raise _differs(name, wrong[0], ropes)
    _set_frequencies(wrong, ropes[0])
    _set_attention_factor(wrong, ropes[0].attention_factor)
    model.validate_nodes_and_infer_types()
    for nodes in rotary_nodes(core, model) or ():
        if not _computes(nodes, ropes[0], _EXACT, 0.0):
            raise _differs(name, nodes, ropes)
    return True


def rotary_nodes(core: ov.Core, model: ov.Model) -> list[RotaryNodes] | None:
    """Every rotary embedding of a stateful graph; None if one depends on more than the position."""
    nodes = model.get_ordered_ops()
    cosines = {_source(node): node for node in nodes if node.get_type_name() == "Cos"}
    found = []
    for sine in nodes:
        if sine.get_type_name() != "Sin" or _source(sine) not in cosines:
            continue
        frequencies = _frequencies(core, model, sine.input_value(0))
        if frequencies is None:
            return None
        cosine = cosines[_source(sine)]
        factors = {attention_factor(sine), attention_factor(cosine)}
        if len(factors) != 1:
            return None
        found.append(RotaryNodes(sine, cosine, frequencies, factors.pop()))
    return found


def attention_factor(node: ov.Node) -> float:
    """The constant that the graph multiplies a sine or cosine with, as YaRN does; 1 if there is none."""
    factor = 1.0
    while True:
        uses = [use.get_node() for use in node.output(0).get_target_inputs()]
        if len(uses) != 1:
            return factor
        (node,) = uses
        if node.get_type_name() == "Multiply":
            constants = [value.get_node() for value in node.input_values()]
            scalars = [c for c in constants if c.get_type_name() == "Constant" and c.get_data().size == 1]
            if not scalars:
                return factor
            factor *= float(scalars[0].get_data().reshape(-1)[0])
        elif node.get_type_name() not in _SHAPING:
            return factor


def _frequencies(core: ov.Core, model: ov.Model, angles: ov.Output) -> Frequencies | None:
    """Radians a position, computed: so whatever the graph does to positions or constants is in it."""
    needed = ancestors([angles.get_node()])
    parameters = [p for p in model.get_parameters() if p.get_name() in needed]
    names = [parameter.output(0).get_names() for parameter in parameters]
    if not all(known & {"input_ids", "position_ids"} for known in names):
        return None
    steps = np.array([[0, 1, 7, 1000]])
    part = ov.Model([op.result(angles)], parameters, "angles")
    compiled = core.compile_model(part, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    out = np.asarray(compiled([steps] * len(parameters))[0], dtype=np.float64)
    rows = out.reshape(steps.size, -1)
    one: Frequencies = rows[1]
    if not np.allclose(rows, steps.T * one, rtol=1e-5, atol=1e-7):
        return None
    half = len(one) // 2
    for first, second in ((one[:half], one[half:]), (one[0::2], one[1::2])):
        if half and np.array_equal(first, second):
            return first
    return one


def _computes(nodes: RotaryNodes, rope: Rope, relative: float, absolute: float) -> bool:
    wanted, factor = rope.frequencies(), rope.attention_factor
    return (
        len(wanted) == len(nodes.frequencies)
        and np.allclose(nodes.frequencies, wanted, rtol=relative, atol=absolute)
        and abs(nodes.attention_factor - factor) <= max(relative, _EXACT) * factor
    )


def _is_known_wrong(nodes: RotaryNodes, rope: Rope) -> bool:
    """Whether the graph has the unscaled embedding, or the right one rounded to 16 bits."""
    return any(_computes(nodes, one, _ROUNDED, _ROUNDED_NEAR_ZERO) for one in (rope.plain, rope))


def _set_frequencies(found: Sequence[RotaryNodes], rope: Rope) -> None:
    wanted = rope.frequencies()
    for nodes in found:
        constant = _table(nodes.sine, len(wanted))
        if constant is None:
            continue  # the check that follows says so
        old = constant.get_data()
        flat = old.reshape(-1)
        is_repeated = flat.size > len(wanted) and np.array_equal(flat[0::2], flat[1::2])
        values = np.repeat(wanted, 2) if is_repeated else np.resize(wanted, flat.size)
        new = op.constant(values.astype(np.float32).reshape(old.shape))
        # A 16-bit table is widened before use: the new one takes the place of the widened.
        uses = list(constant.output(0).get_target_inputs())
        if uses and all(use.get_node().get_type_name() == "Convert" for use in uses):
            uses = [use for widened in uses for use in widened.get_node().output(0).get_target_inputs()]
        for use in uses:
            use.replace_source_output(new.output(0))


def _set_attention_factor(found: Sequence[RotaryNodes], factor: float) -> None:
    for nodes in found:
        if abs(nodes.attention_factor - factor) <= _EXACT * factor:
            continue
        for node in (nodes.sine, nodes.cosine):
            uses = list(node.output(0).get_target_inputs())
            # What it is multiplied with already may be this factor, rounded.
            scaled = op.multiply(node, op.constant(np.float32(factor / nodes.attention_factor)))
            for use in uses:
                use.replace_source_output(scaled.output(0))


def _table(sine: ov.Node, count: int) -> ov.Node | None:
    """The only constant of `count` or twice as many real numbers above a sine."""
    names = {}
    waiting = [sine]
    while waiting:
        for value in waiting.pop().input_values():
            node = value.get_node()
            if node.get_type_name() != "Constant":
                waiting.append(node)
            elif node.get_element_type().is_real() and int(np.prod(node.shape)) in (count, 2 * count):
                names[node.get_name()] = node
    return names.popitem()[1] if len(names) == 1 else None


def _source(node: ov.Node) -> tuple[str, int]:
    value = node.input_value(0)
    return value.get_node().get_name(), value.get_index()


def _differs(name: str, nodes: RotaryNodes, ropes: Sequence[Rope]) -> UnsupportedModel:
    def shown(values: NDArray[np.float64], factor: float) -> str:
        return f"{len(values)} frequencies from {values[0]:.6g} to {values[-1]:.6g}, factor {factor:.6g}"

    wanted = " or ".join(shown(rope.frequencies(), rope.attention_factor) for rope in ropes)
    return UnsupportedModel(
        f"{name}: the graph's rotary embedding is not what the model's config says. The graph has "
        f"{shown(nodes.frequencies, nodes.attention_factor)}; the config says {wanted}. Export the model "
        "anew from files that belong together"
    )
