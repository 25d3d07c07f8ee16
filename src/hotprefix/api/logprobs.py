"""Log-probabilities in the shapes of both dialects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotprefix.engine.request import TokenLogprob
from hotprefix.prompt.tokenizer import Tokenizer

_LOWEST = -9999.0
"""Stands for minus infinity, which JSON can't say."""


def chat_logprobs(entries: Sequence[TokenLogprob], tokenizer: Tokenizer) -> dict[str, Any]:
    """`choices[].logprobs` of a chat completion."""
    content = []
    for entry in entries:
        shown = _token(entry.token_id, entry.logprob, tokenizer)
        shown["top_logprobs"] = [_token(token, logprob, tokenizer) for token, logprob in entry.top]
        content.append(shown)
    return {"content": content, "refusal": None}


def _token(token_id: int, logprob: float, tokenizer: Tokenizer) -> dict[str, Any]:
    raw = tokenizer.token_bytes(token_id)
    return {"token": raw.decode("utf-8", "replace"), "logprob": max(logprob, _LOWEST), "bytes": list(raw)}


class LegacyLogprobs:
    """`choices[].logprobs` of a text completion; remembers where in the text it is."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._offset = 0

    def take(self, entries: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Entries of one chunk. `text_offset` counts the characters of the tokens before."""
        shown: dict[str, Any] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        for entry in entries:
            text = self._text(entry.token_id)
            shown["tokens"].append(text)
            shown["token_logprobs"].append(max(entry.logprob, _LOWEST))
            shown["top_logprobs"].append(self._top(entry))
            shown["text_offset"].append(self._offset)
            self._offset += len(text)
        return shown

    def _top(self, entry: TokenLogprob) -> dict[str, float] | None:
        if not entry.top:
            return None
        top: dict[str, float] = {}
        for token, logprob in entry.top:
            top.setdefault(self._text(token), max(logprob, _LOWEST))
        return top

    def _text(self, token_id: int) -> str:
        return self._tokenizer.token_bytes(token_id).decode("utf-8", "replace")
