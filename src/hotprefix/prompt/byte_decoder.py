"""Token ids → bytes → text, from a `tokenizer.json`: what every decoder of the library amounts to."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import Any

from hotprefix.base.errors import UnsupportedModel

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "▁"


class TokenBytes:
    """The bytes of each token. `config` is the parsed `tokenizer.json`, `vocabulary` text → id.

    `strips_first_space` tells that a decoded text loses the one space it starts with.
    Raises `UnsupportedModel` for decoders that don't work on bytes (WordPiece, CTC).
    """

    def __init__(self, config: Mapping[str, Any], vocabulary: Mapping[str, int]) -> None:
        steps = _flatten(config.get("decoder"), "decoders")
        kinds = {str(step.get("type")) for step in steps}
        if unknown := kinds - {"ByteLevel", "ByteFallback", "Metaspace", "Replace", "Fuse", "Strip"}:
            raise UnsupportedModel(f"The tokenizer's decoder {', '.join(sorted(unknown))} is not served.")
        self._byte_level = "ByteLevel" in kinds
        self.strips_first_space = any(
            (step.get("type") == "Strip" and step.get("start")) or
            (step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never")
            for step in steps
        )  # fmt: skip
        self._alphabet = byte_alphabet() if self._byte_level else {}
        added = config.get("added_tokens") or []
        self.special_ids = frozenset(int(t["id"]) for t in added if t.get("special"))
        self._added_ids = frozenset(int(t["id"]) for t in added)
        self._bytes = [b""] * (max(vocabulary.values(), default=-1) + 1)
        for text, index in vocabulary.items():
            self._bytes[index] = self._to_bytes(text, index)

    def __len__(self) -> int:
        return len(self._bytes)

    def of(self, token_id: int) -> bytes:
        """Bytes of one token, special ones as written; empty for an id outside the vocabulary."""
        return self._bytes[token_id] if 0 <= token_id < len(self._bytes) else b""

    def longest(self) -> int:
        """Length of the longest token in bytes, at least 1."""
        return max(1, max(map(len, self._bytes), default=1))

    def _to_bytes(self, text: str, index: int) -> bytes:
        if self._byte_level:
            # A token with any character outside the alphabet is meant literally, as in the library.
            codes = [self._alphabet.get(character, -1) for character in text]
            return text.encode() if -1 in codes else bytes(codes)
        if index in self._added_ids:
            return text.encode()
        if match := _BYTE_TOKEN.fullmatch(text):
            return bytes([int(match[1], 16)])
        return text.replace(_SPACE, " ").encode()


class ByteStream:
    """Incremental decoder over `TokenBytes`; leaves special tokens out."""

    def __init__(self, tokens: TokenBytes) -> None:
        self._tokens = tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._strip = tokens.strips_first_space

    def push(self, token_id: int) -> str:
        if token_id in self._tokens.special_ids:
            return ""
        return self._clean(self._decoder.decode(self._tokens.of(token_id)))

    def finish(self) -> str:
        return self._clean(self._decoder.decode(b"", True))

    def _clean(self, text: str) -> str:
        if self._strip and text:
            self._strip = False
            return text.removeprefix(" ")
        return text


def byte_alphabet() -> dict[str, int]:
    """Printable character → byte, as byte-level vocabularies spell bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(rest)}


def _flatten(step: Any, inner: str) -> list[Mapping[str, Any]]:
    if not isinstance(step, dict):
        return []
    if step.get("type") == "Sequence":
        return [leaf for part in step.get(inner, ()) for leaf in _flatten(part, inner)]
    return [step]


def tokenizer_steps(config: Mapping[str, Any], part: str) -> list[Mapping[str, Any]]:
    """The normalizer or pre-tokenizer of a `tokenizer.json` as a flat list of its steps."""
    return _flatten(config.get(part), part + "s" if part != "pre_tokenizer" else "pretokenizers")
