"""What the tree holds of a history, seen with the reuse rules' eyes."""

from __future__ import annotations

from hotprefix.cache.rules import ReuseRules
from hotprefix.keys.chain import TokenHistory
from hotprefix.kv.node import Node
from hotprefix.kv.tree import BlockTree, Match


class Lookup:
    """Walks a tree. Changes nothing."""

    def __init__(self, tree: BlockTree, rules: ReuseRules) -> None:
        self._tree = tree
        self._rules = rules

    def match(self, history: TokenHistory) -> Match:
        """The longest known prefix: full blocks, then what the rules allow of one more."""
        full, rest = divmod(len(history), self._rules.block_size)
        if self._rules.granularity > 1:
            return self._match_whole(history, full, rest)
        nodes = self.walk(history, full)
        depth = len(nodes)
        if depth == full and not rest:
            return Match(nodes)
        above = self._tree.above(nodes[-1] if nodes else None, history.root_of(depth))
        partial, shared = self._tree.partial(above, history.block_bytes(depth))
        return Match(nodes, partial, shared)

    def walk(self, history: TokenHistory, full: int) -> tuple[Node, ...]:
        """The full blocks that are known, from the start: the public ones first, if there are any."""
        keys, public = history.keys(full), min(full, history.shared_blocks)
        nodes = self._tree.match(history.root_of(0), keys[:public]).nodes if public else ()
        if len(nodes) < public or public == full:
            return nodes
        return nodes + self._tree.match(history.root_of(public), keys[public:] if public else keys).nodes

    def _match_whole(self, history: TokenHistory, full: int, rest: int) -> Match:
        """Whole blocks, and a partial one only if it holds just these tokens: more would spoil it."""
        nodes = self.walk(history, full)
        if not rest or len(nodes) < full:
            return Match(nodes)
        last = nodes[-1] if nodes else None
        tail = self._tree.child(last, history.root_of(full), history.key_at(len(history)))
        return Match(nodes, tail, rest if tail is not None else 0)
