"""What the adaptive policy keeps in `Node.mark`, and the class of a block that follows from it.

A bit says that a longer prompt went on behind the block, a bit that it is in the sample that is watched;
the rest counts the uses before the last eviction.
"""

from __future__ import annotations

from hotprefix.kv.node import Node

GONE_ON, WATCHED = 1, 2
_USES = 2
MOST_USES = 3
"""More uses than these say nothing new."""
CLASSES = 2 * (MOST_USES + 1)


def at_eviction(node: Node) -> int:
    """Uses of a node, those before its last eviction included."""
    return node.hits + (node.mark >> _USES)


def after_return(uses: int) -> int:
    """The mark of a block that comes back; it was used so often before."""
    return (uses + 1) << _USES


def class_of(node: Node, hits: int) -> int:
    """The class of a node with so many hits since it was inserted."""
    mark = node.mark
    uses = hits + (mark >> _USES)
    return 2 * (uses if uses < MOST_USES else MOST_USES) + (mark & GONE_ON)
