"""Facts in a haystack."""

from __future__ import annotations

import numpy as np

from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.quality.needles import haystack


def test_every_fact_is_there_once_at_its_own_depth(tiny_model: ModelManifest) -> None:
    tokenizer = HfTokenizer(tiny_model.tokenizer)
    hay = tokenizer.encode("Hay and hay and more hay. " * 400)
    stack = haystack(hay, tokenizer, 2048, seed=3)
    assert len(stack.tokens) == 2048
    text = tokenizer.decode(stack.tokens)
    for needle in stack.needles:
        question = tokenizer.decode(needle.question)
        owner = question.split(" of the ")[1].split(" ")[0]
        assert text.count(f"The secret word of the {owner} is ") == 1
    assert len(set(stack.candidates)) == len(stack.needles) > 1
    assert haystack(hay, tokenizer, 2048, seed=3) == stack
    assert haystack(hay, tokenizer, 2048, seed=4) != stack


def test_the_likeliest_candidate_decides(tiny_model: ModelManifest) -> None:
    tokenizer = HfTokenizer(tiny_model.tokenizer)
    stack = haystack(tokenizer.encode("Hay. " * 900), tokenizer, 2048, seed=1)
    logits = np.zeros(tokenizer.vocab_size, np.float32)
    # A token that is no candidate does not matter, however likely.
    logits[next(token for token in range(300) if token not in stack.candidates)] = 9
    logits[stack.needles[1].answer] = 1
    assert stack.is_found(stack.needles[1], logits)
    assert not stack.is_found(stack.needles[0], logits)


def test_a_text_that_holds_no_two_facts_has_no_questions(tiny_model: ModelManifest) -> None:
    tokenizer = HfTokenizer(tiny_model.tokenizer)
    stack = haystack(tokenizer.encode("Hay. " * 900), tokenizer, 96, seed=1)
    assert len(stack.tokens) == 96
    assert stack.needles == ()
