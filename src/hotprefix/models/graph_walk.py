"""Walks through OpenVINO graphs."""

from __future__ import annotations

from collections.abc import Iterable

import openvino as ov


def ancestors(nodes: Iterable[ov.Node]) -> set[str]:
    """Names (`get_name`) of the nodes and of everything that they are computed from."""
    seen: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.get_name() not in seen:
            seen.add(node.get_name())
            waiting += [value.get_node() for value in node.input_values()]
    return seen


def descendants(model: ov.Model, nodes: Iterable[ov.Node]) -> set[str]:
    """Names of the nodes and of everything that is computed from them."""
    seen = {node.get_name() for node in nodes}
    for node in model.get_ordered_ops():
        if any(value.get_node().get_name() in seen for value in node.input_values()):
            seen.add(node.get_name())
    return seen
