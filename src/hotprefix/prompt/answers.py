"""Answers by the ids they were generated as.

The next turn of a conversation contains the last answer as text. Tokenised anew, a text can give
other ids than the model had drawn (` Han` + `zi` against ` Hanzi`), and everything behind it would
miss the cache. So the text between two special tokens that an answer filled is kept with its ids.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b

from hotprefix.prompt.id_cache import IdCache
from hotprefix.prompt.segments import SegmentedTokenizer

_LONGEST_OPENING = 16
"""Tokens between the last special token and the answer: `assistant\\n` and the like. A prompt
with more than that is raw text, which has no turns."""


class AnswerMemory:
    """Remembers answers for each tenant apart, least recently used first out."""

    def __init__(self, tokenizer: SegmentedTokenizer, max_bytes: int) -> None:
        self._tokenizer = tokenizer
        self._ids = IdCache(max_bytes)

    @property
    def size(self) -> int:
        """Bytes kept now."""
        return self._ids.size

    def remember(self, tenant: str, prompt_ids: Sequence[int], answer_ids: Sequence[int]) -> None:
        """Keep an answer, end-of-answer token left out, with the end of its prompt."""
        opening = self._opening(prompt_ids)
        if opening is None or not answer_ids:
            return
        ids = array("i", [*opening, *answer_ids])
        text = self._tokenizer.decode(ids)
        # An answer that was cut inside a character is no text that could come back.
        if "\N{REPLACEMENT CHARACTER}" not in text:
            self._ids.put(_key(tenant, text), ids)

    def encode(self, tenant: str, text: str) -> list[int]:
        """Token ids of `text`, where answers that `tenant` was given have the ids they were drawn as."""
        return self._tokenizer.encode_recalling(
            text, tenant, lambda piece: self._ids.get(_key(tenant, piece))
        )

    def _opening(self, prompt_ids: Sequence[int]) -> Sequence[int] | None:
        for length in range(min(_LONGEST_OPENING, len(prompt_ids) - 1) + 1):
            if self._tokenizer.is_added(prompt_ids[len(prompt_ids) - 1 - length]):
                return prompt_ids[len(prompt_ids) - length :]
        return None


def _key(tenant: str, text: str) -> bytes:
    # NUL can't be in a tenant's name, so the two parts can't be confused.
    data = f"{tenant}\0{text}".encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=32, person=b"hotprefix/answer").digest()
