"""Answers held to a grammar: JSON, a JSON schema, a regular expression or a Lark grammar.

The parsing is llguidance's. This file names the options, bounds what is kept, and turns its
messages into errors for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask
from numpy.typing import NDArray

from hotprefix.base.errors import InvalidRequest
from hotprefix.engine.request import Grammar, GrammarKind
from hotprefix.prompt.tokenizer import Tokenizer

_MINUS_INFINITY = np.float32(-np.inf)

# One optional space after a separator and no other white space: small models that may write any
# amount of it tend never to stop. Both separators are regular expressions.
_JSON_OPTIONS = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}


class Matcher:
    """Follows one answer through its grammar."""

    __slots__ = ("_bits", "_eos_ids", "_matcher", "_stuck")

    def __init__(self, matcher: LLMatcher, vocab_size: int, eos_ids: Sequence[int]) -> None:
        self._matcher = matcher
        self._bits = allocate_token_bitmask(1, vocab_size)
        self._eos_ids = tuple(eos_ids)
        self._stuck = False

    @property
    def finished(self) -> bool:
        """True once nothing but the end of the answer may follow."""
        return self._stuck or bool(self._matcher.is_stopped())

    @property
    def complete(self) -> bool:
        """Whether the answer satisfies the grammar as it stands."""
        return not self._stuck and bool(self._matcher.is_accepting())

    @property
    def error(self) -> str | None:
        """Why the grammar was given up (a limit on its complexity), if it was."""
        return (self._matcher.get_error() or "the grammar allows no token") if self._stuck else None

    def mask(self, logits: NDArray[np.float32]) -> None:
        """Set the logits `[vocab]` of tokens that may not come next to -inf, in place.

        End-of-answer tokens stay only where the answer satisfies the grammar. If the grammar has to
        be given up, they alone stay (all tokens, if the model has none), so that the answer ends;
        `error` then says why.
        """
        if not self._stuck:
            fill_next_token_bitmask(self._matcher, self._bits)
            self._stuck = bool(self._matcher.is_error()) or not self._bits.any()
        if self._stuck and not self._eos_ids:
            return
        if self._stuck:
            self._bits[:] = 0
            for eos in self._eos_ids:
                self._bits.view(np.uint32)[0, eos >> 5] |= np.uint32(1 << (eos & 31))
        size = min(logits.size, self._bits.size * 32)
        allowed = np.unpackbits(self._bits.view(np.uint8)[0], count=size, bitorder="little")
        np.putmask(logits[:size], allowed == 0, _MINUS_INFINITY)
        logits[size:] = _MINUS_INFINITY

    def accept(self, token_id: int) -> None:
        """Go on by one token. A token that `mask` had forbidden gives the grammar up."""
        if not self._stuck and not (self.finished and token_id in self._eos_ids):
            self._stuck = not self._matcher.consume_token(token_id)


class GrammarCompiler:
    """Turns grammars into matchers, keeping the `keep` last used compiled ones.

    `vocab_size` is the width of the model's logits, which may exceed the tokenizer's vocabulary.
    `eos_ids` may be empty: an answer then ends when its matcher is `finished`.
    Safe to call from several threads. Compiling a big schema takes up to a second, without the GIL.
    """

    def __init__(
        self, tokenizer: Tokenizer, eos_ids: Sequence[int], vocab_size: int, *, keep: int = 64
    ) -> None:
        self._eos_ids = tuple(eos_ids)
        self._vocab_size = vocab_size
        width = max(vocab_size, tokenizer.vocab_size)
        if eos_ids:
            self._tokens = LLTokenizer(tokenizer.to_json(), n_vocab=width, eos_token=list(self._eos_ids))
        else:
            self._tokens = LLTokenizer(TokenizerWrapper(_WithEnd(tokenizer, width)))
        self._width = int(self._tokens.vocab_size)
        self._limits = LLParserLimits(verbose_errors=False)
        self._compiled = lru_cache(maxsize=keep)(self._compile)

    def check(self, grammar: Grammar) -> None:
        """Compile and keep. Raises `InvalidRequest` if the grammar can't be used."""
        self._compiled(grammar)

    def matcher(self, grammar: Grammar) -> Matcher:
        """A matcher at the start of an answer. Raises `InvalidRequest` as `check` does."""
        return Matcher(self._compiled(grammar).deep_copy(), self._width, self._eos_ids)

    def _compile(self, grammar: Grammar) -> LLMatcher:
        try:
            source = _llguidance_source(grammar)
        except ValueError as error:
            raise _refusal(grammar, str(error)) from error
        matcher = LLMatcher(self._tokens, source, log_level=0, limits=self._limits)
        if matcher.is_error():
            raise _refusal(grammar, matcher.get_error())
        return matcher


class _WithEnd:
    """A tokenizer as the library takes one, with an end token added behind all ids that logits have.

    The library can't do without an end token, and some models have none.
    """

    def __init__(self, tokenizer: Tokenizer, width: int) -> None:
        known = range(tokenizer.vocab_size)
        self._tokenizer = tokenizer
        self.eos_token_id = width
        self.bos_token_id = None
        self.tokens = [tokenizer.token_bytes(token) for token in known]
        self.tokens += [b""] * (width - len(known)) + [b"<end>"]
        self.special_token_ids = [token for token in known if not tokenizer.decode([token])] + [width]

    def __call__(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)


def _llguidance_source(grammar: Grammar) -> str:
    match grammar.kind:
        case GrammarKind.JSON_OBJECT:
            return str(LLMatcher.grammar_from_json_schema('{"type": "object"}', overrides=_JSON_OPTIONS))
        case GrammarKind.JSON_SCHEMA:
            return str(LLMatcher.grammar_from_json_schema(grammar.source, overrides=_JSON_OPTIONS))
        case GrammarKind.REGEX:
            return str(LLMatcher.grammar_from_regex(grammar.source))
        case GrammarKind.LARK:
            return str(LLMatcher.grammar_from_lark(grammar.source))


def _refusal(grammar: Grammar, reason: str) -> InvalidRequest:
    name = grammar.kind.value.replace("_", " ")
    return InvalidRequest(
        f"The {name} in response_format can't be used: {reason.strip()}", param="response_format"
    )
