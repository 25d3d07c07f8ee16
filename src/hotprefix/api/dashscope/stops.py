"""DashScope's `stop`: a text, texts, token ids, or sequences of token ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from hotprefix.base.errors import InvalidRequest
from hotprefix.prompt.tokenizer import Tokenizer

_MOST = 16
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class StopRules:
    """Texts, and sequences of token ids; a lone id is a sequence of one."""

    texts: tuple[str, ...] = ()
    sequences: tuple[tuple[int, ...], ...] = ()

    def resolve(self, tokenizer: Tokenizer) -> tuple[tuple[str, ...], frozenset[int]]:
        """Texts and single tokens at which an answer ends; longer sequences end it by their text.

        Raises `InvalidRequest` for ids outside of the vocabulary.
        """
        texts, tokens = list(self.texts), set()
        for sequence in self.sequences:
            for token in sequence:
                if token >= tokenizer.vocab_size:
                    raise _no_token(token, tokenizer.vocab_size)
            if len(sequence) == 1:
                tokens.add(sequence[0])
            elif text := tokenizer.decode(sequence):
                texts.append(text)
        return tuple(dict.fromkeys(texts)), frozenset(tokens)


def _no_token(token: int, vocab_size: int) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid value for 'parameters.stop': {token} is no token id; "
        f"this model's go from 0 to {vocab_size - 1}.",
        param="parameters.stop",
    )


def _read(value: Any) -> StopRules:
    items = value if isinstance(value, list) else [value]
    if len(items) > _MOST:
        raise PydanticCustomError("too_many", "at most {most} are allowed", {"most": _MOST})
    if all(isinstance(item, str) and 0 < len(item) <= _LONGEST for item in items):
        return StopRules(texts=tuple(items))
    if isinstance(value, list):
        sequences = tuple(tuple(item) if isinstance(item, list) else (item,) for item in items)
        if all(sequence and all(map(_is_id, sequence)) for sequence in sequences):
            return StopRules(sequences=sequences)
    raise PydanticCustomError(
        "stop_type",
        "should be a text of 1 to {longest} characters, or an array either of such texts or of token ids",
        {"longest": _LONGEST},
    )


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


Stops = Annotated[StopRules, BeforeValidator(_read)]
