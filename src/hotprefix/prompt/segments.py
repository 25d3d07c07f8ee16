"""Tokenises only what is new in a long conversation: the text between special tokens is cached."""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hotprefix.prompt.byte_decoder import tokenizer_steps
from hotprefix.prompt.id_cache import IdCache
from hotprefix.prompt.tokenizer import Tokenizer, TokenStream

_SHORTEST = 64
"""Characters below which encoding is cheaper than looking up."""

_SAFE_NORMALIZERS = frozenset(("NFC", "NFD", "NFKC", "NFKD"))
_SAFE_PRE_TOKENIZERS = frozenset(("Split", "ByteLevel", "Digits"))


class SegmentedTokenizer:
    """A `Tokenizer` that gives exactly what `inner` gives, faster for repeated text.

    Tokenizers cut text at added tokens before anything else, so the segments between them can
    be encoded one by one. Where that is not certain (stripping added tokens, position-dependent
    steps) the whole text goes to `inner`. At most `max_bytes` of ids are kept, least recently
    used first out. A segment that was encoded for one zone is tokenised anew for another: the time
    that takes tells nobody what others have sent.
    """

    def __init__(self, inner: Tokenizer, max_bytes: int) -> None:
        self._inner = inner
        config = json.loads(inner.to_json())
        added = {str(t["content"]): int(t["id"]) for t in config.get("added_tokens") or () if t["content"]}
        self._added = added
        self._added_ids = frozenset(added.values())
        self._splitter = _splitter(added) if added and _splits_safely(config) else None
        self._cache = IdCache(max_bytes)

    @property
    def vocab_size(self) -> int:
        return self._inner.vocab_size

    @property
    def longest_token(self) -> int:
        return self._inner.longest_token

    @property
    def cached_bytes(self) -> int:
        """Bytes that the cached segments take now."""
        return self._cache.size

    def encode(self, text: str) -> list[int]:
        return self.encode_recalling(text, "", _recalls_nothing)

    def encode_recalling(
        self, text: str, zone: str, recall: Callable[[str], Sequence[int] | None]
    ) -> list[int]:
        """As `encode`, remembered for `zone`, but segments that `recall` knows have the ids that it gives."""
        if self._splitter is None:
            return self._inner.encode(text)
        ids: list[int] = []
        for position, piece in enumerate(self._splitter.split(text)):
            if position % 2:
                ids.append(self._added[piece])
            elif piece:
                known = recall(piece)
                ids.extend(self._encode_segment(piece, zone) if known is None else known)
        return ids

    def is_added(self, token_id: int) -> bool:
        """Whether text is cut at this token."""
        return token_id in self._added_ids

    def decode(self, token_ids: Sequence[int]) -> str:
        return self._inner.decode(token_ids)

    def token_bytes(self, token_id: int) -> bytes:
        return self._inner.token_bytes(token_id)

    def stream(self) -> TokenStream:
        return self._inner.stream()

    def to_json(self) -> str:
        return self._inner.to_json()

    def _encode_segment(self, text: str, zone: str) -> Sequence[int]:
        if len(text) < _SHORTEST:
            return self._inner.encode(text)
        # NUL can't be in a tenant's name, so the two parts can't be confused.
        data = f"{zone}\0{text}".encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(data, digest_size=32).digest()
        found = self._cache.get(key)
        if found is None:
            found = array("i", self._inner.encode(text))
            self._cache.put(key, found)
        return found


def encode_for(tokenizer: Tokenizer, zone: str, text: str) -> list[int]:
    """Token ids of `text`; what `tokenizer` remembers of it is for `zone` alone."""
    if isinstance(tokenizer, SegmentedTokenizer):
        return tokenizer.encode_recalling(text, zone, _recalls_nothing)
    return tokenizer.encode(text)


def _recalls_nothing(text: str) -> None:
    """No segment has other ids than its text."""


def _splitter(added: Mapping[str, int]) -> re.Pattern[str]:
    # Longest first: the library takes the leftmost and, of those, the longest match.
    ordered = sorted(added, key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, ordered)) + ")")


def _splits_safely(config: Mapping[str, Any]) -> bool:
    flags = ("lstrip", "rstrip", "single_word", "normalized")
    if any(token.get(flag) for token in config.get("added_tokens") or () for flag in flags):
        return False
    if any(s.get("type") not in _SAFE_NORMALIZERS for s in tokenizer_steps(config, "normalizer")):
        return False
    steps = tokenizer_steps(config, "pre_tokenizer")
    return all(s.get("type") in _SAFE_PRE_TOKENIZERS and not s.get("add_prefix_space") for s in steps)
