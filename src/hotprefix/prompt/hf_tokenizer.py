"""A tokenizer from Hugging Face's `tokenizer.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Library

from hotprefix.base.errors import BrokenModelFile, InvalidRequest
from hotprefix.prompt.byte_decoder import ByteStream, TokenBytes, tokenizer_steps
from hotprefix.prompt.tokenizer import TokenStream

_UNBOUNDED = 1 << 40
_COMPOSING = 3
"""NFC makes at most one byte out of three."""


class HfTokenizer:
    """Encodes with the `tokenizers` library, decodes by the tokens' bytes.

    Decoding equals the library's except that a broken byte never spoils valid characters
    beside it. Raises `BrokenModelFile` if the file can't be read.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._library = Library.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for bad files
            raise BrokenModelFile(f"{path} can't be read as a tokenizer: {error}.") from error
        self._library.no_truncation()
        self._library.no_padding()
        self._json = self._library.to_str()
        config = json.loads(self._json)
        self._bytes = TokenBytes(config, self._library.get_vocab(with_added_tokens=True))
        self._longest = _text_bytes_per_token(config, self._bytes.longest())

    @property
    def vocab_size(self) -> int:
        return len(self._bytes)

    @property
    def longest_token(self) -> int:
        return self._longest

    def encode(self, text: str) -> list[int]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"The text has a lone surrogate (half of a character) at position {error.start}; "
                "send valid Unicode."
            ) from error
        ids: list[int] = self._library.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        stream = self.stream()
        return "".join([*map(stream.push, token_ids), stream.finish()])

    def token_bytes(self, token_id: int) -> bytes:
        return self._bytes.of(token_id)

    def stream(self) -> TokenStream:
        return ByteStream(self._bytes)

    def to_json(self) -> str:
        return self._json


def _text_bytes_per_token(config: Mapping[str, Any], longest: int) -> int:
    """How many bytes of text one token can stand for at most: a normalizer or stripping changes that."""
    steps = {str(step.get("type")) for step in tokenizer_steps(config, "normalizer")}
    model = config.get("model") or {}
    by_bytes = model.get("byte_fallback") or any(
        step.get("type") == "ByteLevel" for step in tokenizer_steps(config, "pre_tokenizer")
    )
    strips = any(t.get("lstrip") or t.get("rstrip") for t in config.get("added_tokens") or ())
    if strips or not by_bytes or steps - {"NFC", "Prepend", "Replace"}:
        return _UNBOUNDED
    return longest * _COMPOSING if steps else longest
