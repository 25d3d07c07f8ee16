"""Grammars: what may be drawn, when the answer may end, and what a bad grammar is told."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hotprefix.base.errors import InvalidRequest
from hotprefix.engine.grammar import GrammarCompiler, Matcher
from hotprefix.engine.request import Grammar, GrammarKind
from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from tests.engine.small_bpe import EOS, small_tokenizer

PADDED = 37

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tokenizer() -> HfTokenizer:
    return small_tokenizer()


@pytest.fixture(scope="module")
def compiler(tokenizer: HfTokenizer) -> GrammarCompiler:
    return GrammarCompiler(tokenizer, [EOS], tokenizer.vocab_size + PADDED)


def draw(matcher: Matcher, rng: np.random.Generator, vocab: int, limit: int = 400) -> list[int]:
    """Let random logits pick tokens until the grammar is finished or ends with EOS."""
    drawn: list[int] = []
    while not matcher.finished and len(drawn) < limit:
        logits = rng.normal(size=vocab).astype(np.float32)
        matcher.mask(logits)
        token = int(np.argmax(logits))
        assert np.isfinite(logits[token])
        assert matcher.complete or token != EOS
        matcher.accept(token)
        if token == EOS:
            break
        drawn.append(token)
    return drawn


def allowed(matcher: Matcher, vocab: int) -> set[int]:
    logits = np.zeros(vocab, dtype=np.float32)
    matcher.mask(logits)
    return set(np.flatnonzero(np.isfinite(logits)).tolist())


@pytest.mark.parametrize("seed", range(50))
def test_random_draws_under_a_schema_are_valid(
    seed: int, tokenizer: HfTokenizer, compiler: GrammarCompiler
) -> None:
    matcher = compiler.matcher(Grammar(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA)))
    text = tokenizer.decode(draw(matcher, np.random.default_rng(seed), tokenizer.vocab_size + PADDED))
    assert matcher.finished
    assert matcher.complete
    value = json.loads(text, strict=True)
    assert set(value) == {"name", "age", "tags"}
    assert isinstance(value["name"], str)
    assert len(value["name"]) <= 8
    assert isinstance(value["age"], int)
    assert 0 <= value["age"] <= 120
    assert len(value["tags"]) <= 3
    assert set(value["tags"]) <= {"red", "green"}


@pytest.mark.parametrize("text", ['{"a": 1, "b": [1, {"c": null}]}', '{"a":1,"b":[]}', "{}"])
def test_json_object_takes_usual_and_compact_json(
    text: str, tokenizer: HfTokenizer, compiler: GrammarCompiler
) -> None:
    matcher = compiler.matcher(Grammar(GrammarKind.JSON_OBJECT))
    for token in tokenizer.encode(text):
        assert token in allowed(matcher, tokenizer.vocab_size)
        assert not matcher.finished
        matcher.accept(token)
    assert matcher.finished
    assert matcher.complete
    assert allowed(matcher, tokenizer.vocab_size + PADDED) == {EOS}


@pytest.mark.parametrize("opening", ["", "{", '{"a"', '{"a":', '{"a": ', '{"a": 1', '{"a": 1, '])
def test_json_object_leaves_no_room_for_endless_white_space(
    opening: str, tokenizer: HfTokenizer, compiler: GrammarCompiler
) -> None:
    matcher = compiler.matcher(Grammar(GrammarKind.JSON_OBJECT))
    for token in tokenizer.encode(opening):
        matcher.accept(token)
    for _ in range(2):
        spaces = [t for t in allowed(matcher, tokenizer.vocab_size) if tokenizer.decode([t]).isspace()]
        if not spaces:
            return
        matcher.accept(spaces[0])
    pytest.fail(f"white space may go on after {opening!r}")


def test_end_is_allowed_only_where_the_grammar_accepts(
    tokenizer: HfTokenizer, compiler: GrammarCompiler
) -> None:
    matcher = compiler.matcher(Grammar(GrammarKind.REGEX, "[0-9]{2,4}"))
    assert EOS not in allowed(matcher, tokenizer.vocab_size)
    for expected in (False, True, True):
        matcher.accept(tokenizer.encode("7")[0])
        assert (EOS in allowed(matcher, tokenizer.vocab_size)) is expected
        assert matcher.complete is expected
    matcher.accept(EOS)
    assert matcher.finished
    assert matcher.complete


def test_lark_grammar(tokenizer: HfTokenizer, compiler: GrammarCompiler) -> None:
    matcher = compiler.matcher(Grammar(GrammarKind.LARK, 'start: "yes" | "no"'))
    text = tokenizer.decode(draw(matcher, np.random.default_rng(0), tokenizer.vocab_size))
    assert text in {"yes", "no"}


def test_padding_of_the_logits_is_never_allowed(tokenizer: HfTokenizer, compiler: GrammarCompiler) -> None:
    size = tokenizer.vocab_size
    matcher = compiler.matcher(Grammar(GrammarKind.REGEX, "(?s:.*)"))
    assert max(allowed(matcher, size + PADDED)) < size
    assert max(allowed(matcher, size + PADDED + 1000)) < size


def test_matchers_of_one_grammar_are_independent(tokenizer: HfTokenizer, compiler: GrammarCompiler) -> None:
    grammar = Grammar(GrammarKind.REGEX, "ab")
    first, second = compiler.matcher(grammar), compiler.matcher(grammar)
    for token in tokenizer.encode("ab"):
        first.accept(token)
    assert first.finished
    assert not second.finished
    assert EOS not in allowed(second, tokenizer.vocab_size)


def test_forbidden_token_gives_the_grammar_up(tokenizer: HfTokenizer, compiler: GrammarCompiler) -> None:
    matcher = compiler.matcher(Grammar(GrammarKind.REGEX, "ab"))
    matcher.accept(tokenizer.encode("z")[0])
    assert matcher.finished
    assert not matcher.complete
    assert matcher.error
    assert allowed(matcher, tokenizer.vocab_size + PADDED) == {EOS}


def test_models_without_an_end_token_finish_all_the_same(tokenizer: HfTokenizer) -> None:
    vocab = tokenizer.vocab_size + PADDED
    compiler = GrammarCompiler(tokenizer, [], vocab)
    for seed in range(10):
        matcher = compiler.matcher(Grammar(GrammarKind.JSON_SCHEMA, '{"enum": ["red", 12, null]}'))
        text = tokenizer.decode(draw(matcher, np.random.default_rng(seed), vocab))
        assert matcher.finished
        assert json.loads(text) in ("red", 12, None)


@pytest.mark.model
def test_default_models_tokenizer(default_model: ModelManifest) -> None:
    tokenizer = HfTokenizer(default_model.tokenizer)
    compiler = GrammarCompiler(tokenizer, default_model.eos_ids, tokenizer.vocab_size)
    for seed in range(10):
        matcher = compiler.matcher(Grammar(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA)))
        drawn = draw(matcher, np.random.default_rng(seed), tokenizer.vocab_size)
        assert matcher.complete
        assert set(json.loads(tokenizer.decode(drawn))) == {"name", "age", "tags"}


def test_without_an_end_token_a_grammar_that_is_given_up_still_leaves_a_token(
    tokenizer: HfTokenizer,
) -> None:
    compiler = GrammarCompiler(tokenizer, [], tokenizer.vocab_size)
    matcher = compiler.matcher(Grammar(GrammarKind.REGEX, "ab"))
    matcher.accept(tokenizer.encode("z")[0])
    assert matcher.finished
    assert allowed(matcher, tokenizer.vocab_size)


@pytest.mark.parametrize(
    ("grammar", "reason"),
    [
        (Grammar(GrammarKind.REGEX, "(ab"), "unclosed group"),
        (Grammar(GrammarKind.LARK, "start: nothing"), "unknown name"),
        (Grammar(GrammarKind.JSON_SCHEMA, '{"type": "strng"}'), "strng"),
        (Grammar(GrammarKind.JSON_SCHEMA, '{"type": '), "EOF"),
        (Grammar(GrammarKind.JSON_SCHEMA, '{"type": "string", "format": "zip"}'), "Unknown format"),
    ],
)
def test_bad_grammar_is_a_clear_refusal(grammar: Grammar, reason: str, compiler: GrammarCompiler) -> None:
    with pytest.raises(InvalidRequest, match=reason) as caught:
        compiler.check(grammar)
    assert caught.value.param == "response_format"


def test_compiled_grammars_are_bounded(tokenizer: HfTokenizer) -> None:
    compiler = GrammarCompiler(tokenizer, [EOS], tokenizer.vocab_size, keep=2)
    for text in ("a", "b", "c", "c"):
        compiler.check(Grammar(GrammarKind.REGEX, text))
    info = compiler._compiled.cache_info()
    assert (info.currsize, info.hits, info.misses) == (2, 1, 3)
