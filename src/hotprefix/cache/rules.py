"""Which lengths may be reused so that a cached answer equals an uncached one bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_COMPUTED = 2
"""Tokens a prefill pass must hold: with one, the attention operator takes its decode kernel,
whose sums run in another order. With two or more, every split of a prompt gives equal bits."""


@dataclass(frozen=True, slots=True)
class ReuseRules:
    """Lengths at which a prompt may be split.

    `granularity` is 1 if a block's content does not depend on when its tokens were written,
    and the block size if it does (u8 and u4 keys are quantised over their block).
    `keep_decoded` says whether blocks written by decode steps are offered for reuse.
    """

    block_size: int
    granularity: int = 1
    keep_decoded: bool = True

    def reusable_length(self, matched: int, total: int) -> int:
        """Tokens to reuse of `matched` known ones, for a prompt of `total`."""
        return self._split(min(matched, total - LEAST_COMPUTED))

    def reusable_within(self, matched: int, limit: int, total: int) -> int:
        """As `reusable_length`, where only the first `limit` tokens are computed in one piece: what
        follows is computed on its own, so all of them may be reused at once, and none beyond."""
        if limit >= total:
            return self.reusable_length(matched, total)
        return limit if matched >= limit else self.reusable_length(matched, limit)

    def chunk_end(self, start: int, wanted: int, total: int) -> int:
        """Where a prefill chunk that starts at `start` ends, near `start + wanted` tokens.

        The last chunk ends at `total`; others end at a permitted split that leaves enough.
        """
        if start + wanted >= total:
            return total
        end = self._split(min(start + wanted, total - LEAST_COMPUTED))
        if end - start >= LEAST_COMPUTED:
            return end
        # The smallest permitted step forward, however small the budget was.
        step = max(self.granularity, LEAST_COMPUTED)
        end = self._split(start + step)
        return end if total - end >= LEAST_COMPUTED else total

    def redo_from(self, computed: int) -> int:
        """Where a decode pass begins that takes prefill's kernel by computing the last token again.

        The full block that this token may end can be shared by then. Writing the same token into it
        changes nothing, except in a quantised format: there the new block is begun with one token.
        """
        begins_block = computed % self.block_size == 0
        return computed if begins_block and self.granularity > 1 else computed - 1

    def _split(self, length: int) -> int:
        return max(0, length - length % self.granularity)
