"""Tokenises only what is new in a long conversation: the text between special tokens is cached."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from hotprefix.prompt.byte_decoder import tokenizer_steps
from hotprefix.prompt.tokenizer import Tokenizer, TokenStream

_SHORTEST = 64
"""Characters below which encoding is cheaper than looking up."""

_ENTRY_OVERHEAD = 256
"""Bytes of bookkeeping per cached segment (key, array header, dictionary slot)."""

_SAFE_NORMALIZERS = frozenset(("NFC", "NFD", "NFKC", "NFKD"))
_SAFE_PRE_TOKENIZERS = frozenset(("Split", "ByteLevel", "Digits"))


class SegmentedTokenizer:
    """A `Tokenizer` that gives exactly what `inner` gives, faster for repeated text.

    Tokenizers cut text at added tokens before anything else, so the segments between them can
    be encoded one by one. Where that is not certain (stripping added tokens, position-dependent
    steps) the whole text goes to `inner`. At most `max_bytes` of ids are kept, least recently
    used first out.
    """

    def __init__(self, inner: Tokenizer, max_bytes: int) -> None:
        self._inner = inner
        config = json.loads(inner.to_json())
        added = {str(t["content"]): int(t["id"]) for t in config.get("added_tokens") or () if t["content"]}
        self._added = added
        self._splitter = _splitter(added) if added and _splits_safely(config) else None
        self._cache = _IdCache(max_bytes)

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
        if self._splitter is None:
            return self._inner.encode(text)
        ids: list[int] = []
        for position, piece in enumerate(self._splitter.split(text)):
            if position % 2:
                ids.append(self._added[piece])
            elif piece:
                ids.extend(self._encode_segment(piece))
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        return self._inner.decode(token_ids)

    def token_bytes(self, token_id: int) -> bytes:
        return self._inner.token_bytes(token_id)

    def stream(self) -> TokenStream:
        return self._inner.stream()

    def to_json(self) -> str:
        return self._inner.to_json()

    def _encode_segment(self, text: str) -> Sequence[int]:
        if len(text) < _SHORTEST:
            return self._inner.encode(text)
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        found = self._cache.get(key)
        if found is None:
            found = array("i", self._inner.encode(text))
            self._cache.put(key, found)
        return found


class _IdCache:
    """Least-recently-used map of digests to token ids, bounded in bytes, for many threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, array[int]] = OrderedDict()
        self.size = 0

    def get(self, key: bytes) -> array[int] | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: bytes, ids: array[int]) -> None:
        cost = _cost(ids)
        if cost > self._max:
            return
        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = ids
            self.size += cost
            while self.size > self._max:
                self.size -= _cost(self._entries.popitem(last=False)[1])


def _cost(ids: array[int]) -> int:
    return len(ids) * ids.itemsize + _ENTRY_OVERHEAD


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
