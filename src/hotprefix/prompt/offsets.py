"""Characters of a rendered prompt → tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hotprefix.prompt.segments import encode_for
from hotprefix.prompt.tokenizer import Tokenizer


class TokenOffsets:
    """Counts the tokens that end within a prefix of a text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        sizes = [len(tokenizer.token_bytes(token)) for token in range(tokenizer.vocab_size)]
        self._sizes = np.array(sizes, dtype=np.int64)

    def counts(self, text: str, token_ids: Sequence[int], ends: Sequence[int], tenant: str = "") -> list[int]:
        """For each of `ends` (characters of `text`, rising): how many whole tokens lie before it.

        By the tokens' bytes where they add up to the text's; by tokenising the prefix alone, and
        counting what both have in common, where a normalizer has changed lengths.
        """
        ids = np.asarray(token_ids, dtype=np.int64)
        token_ends = np.cumsum(self._sizes[ids]) if len(ids) else np.zeros(0, dtype=np.int64)
        data = text.encode("utf-8", "surrogatepass")
        if len(ids) and int(token_ends[-1]) == len(data):
            positions = ends if len(data) == len(text) else _byte_positions(text, ends)
            return [int(count) for count in np.searchsorted(token_ends, positions, side="right")]
        return [_common(encode_for(self._tokenizer, tenant, text[:end]), token_ids) for end in ends]


def _byte_positions(text: str, ends: Sequence[int]) -> list[int]:
    positions: list[int] = []
    at = size = 0
    for end in ends:
        size += len(text[at:end].encode("utf-8", "surrogatepass"))
        at = end
        positions.append(size)
    return positions


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
