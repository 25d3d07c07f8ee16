"""What the rest of Hotprefix needs from a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TokenStream(Protocol):
    """Turns token ids into text one by one, holding back bytes of unfinished characters."""

    def push(self, token_id: int) -> str:
        """Text that is certain after this token; empty while a character is unfinished."""
        ...

    def finish(self) -> str:
        """Whatever is still held back (replacement characters for broken bytes)."""
        ...


class Tokenizer(Protocol):
    """Text ↔ token ids. Implementations are safe to call from several threads."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids, added tokens included."""
        ...

    @property
    def longest_token(self) -> int:
        """Length in bytes of the longest token: a lower bound for token counts follows from it."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`; special tokens written in it are recognised, none is added."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids`, special tokens left out."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The raw bytes a token stands for (log-probabilities show them)."""
        ...

    def stream(self) -> TokenStream:
        """A fresh incremental decoder that leaves special tokens out."""
        ...

    def to_json(self) -> str:
        """The tokenizer in the `tokenizer.json` format (the grammar library reads it)."""
        ...
