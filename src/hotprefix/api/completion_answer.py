"""Answers in the shape of text completions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hotprefix.api.frame import Piece
from hotprefix.api.logprobs import LegacyLogprobs
from hotprefix.engine.request import Delta
from hotprefix.prompt.tokenizer import Tokenizer


class CompletionAnswer:
    """Choices are numbered prompt by prompt. `echoes` go before the answers' text, one a prompt."""

    def __init__(self, n: int, echoes: Sequence[str], logprobs: dict[int, LegacyLogprobs]) -> None:
        self._n = n
        self._echoes = echoes
        self._logprobs = logprobs
        self._begun: set[int] = set()
        self._whole: dict[int, Piece] = {}

    def pieces(self, prompt: int, delta: Delta) -> Iterable[Piece]:
        """One piece, or none while there is nothing to show."""
        index = prompt * self._n + delta.index
        text = delta.text
        if index not in self._begun:
            self._begun.add(index)
            text = self._echoes[prompt] + text
        logprobs = self._logprobs[index].take(delta.logprobs) if self._logprobs and delta.logprobs else None
        if not text and logprobs is None and delta.finish_reason is None:
            return ()
        return ({"index": index, "text": text, "logprobs": logprobs, "finish_reason": delta.finish_reason},)

    def fold(self, piece: Piece) -> None:
        """Pieces of a choice follow each other."""
        whole = self._whole.get(piece["index"])
        if whole is None:
            self._whole[piece["index"]] = dict(piece)
            return
        whole["text"] += piece["text"]
        whole["finish_reason"] = piece["finish_reason"]
        if piece["logprobs"] is not None:
            whole["logprobs"] = _joined(whole["logprobs"], piece["logprobs"])

    def choices(self) -> list[Piece]:
        """In the order of their indices."""
        return [self._whole[index] for index in sorted(self._whole)]


def legacy_logprobs(choices: int, wanted: int | None, tokenizer: Tokenizer) -> dict[int, LegacyLogprobs]:
    """One per choice, or none at all if no log-probabilities are wanted."""
    return {} if wanted is None else {index: LegacyLogprobs(tokenizer) for index in range(choices)}


def _joined(first: dict[str, Any] | None, second: dict[str, Any]) -> dict[str, Any]:
    if first is None:
        return second
    return {key: first[key] + second[key] for key in first}
