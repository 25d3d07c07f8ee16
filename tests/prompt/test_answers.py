"""Answers keep the ids they were drawn as."""

from __future__ import annotations

import pytest

from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.answers import AnswerMemory
from hotprefix.prompt.builder import PromptBuilder
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.segments import SegmentedTokenizer
from hotprefix.prompt.template import JinjaTemplate

QUESTION = {"role": "user", "content": "Say hello"}


class Chat:
    """A builder with a memory over the tiny model's tokenizer."""

    def __init__(self, manifest: ModelManifest, size: int = 1 << 16) -> None:
        self.tokenizer = SegmentedTokenizer(HfTokenizer(manifest.tokenizer), 1 << 16)
        self.answers = AnswerMemory(self.tokenizer, size)
        template = JinjaTemplate(manifest.chat_template)
        self.builder = PromptBuilder(self.tokenizer, template, answers=self.answers)
        self.prompt = self.builder.chat([QUESTION])

    def next_turn(self, answer: str, tenant: str = "") -> list[int]:
        messages = [
            QUESTION,
            {"role": "assistant", "content": answer},
            {"role": "user", "content": "And now?"},
        ]
        return self.builder.chat(messages, tenant=tenant)

    def letter_by_letter(self, text: str) -> list[int]:
        return [token for letter in text for token in self.tokenizer.encode(letter)]


@pytest.fixture
def chat(tiny_model: ModelManifest) -> Chat:
    return Chat(tiny_model)


def test_the_next_turn_has_the_ids_that_were_drawn(chat: Chat) -> None:
    """A model that drew `h e l l o` letter by letter finds its five blocks again, not `hello`'s one."""
    drawn = chat.letter_by_letter("hello")
    assert drawn != chat.tokenizer.encode("hello")
    before = chat.next_turn("hello")
    chat.answers.remember("", chat.prompt, drawn)
    after = chat.next_turn("hello")
    assert after[: len(chat.prompt) + len(drawn)] == chat.prompt + drawn
    assert before != after
    assert chat.tokenizer.decode(before) == chat.tokenizer.decode(after)


def test_other_text_and_other_tenants_have_their_own_ids(chat: Chat) -> None:
    before = chat.next_turn("hello"), chat.next_turn("hello!")
    chat.answers.remember("a", chat.prompt, chat.letter_by_letter("hello"))
    assert (chat.next_turn("hello"), chat.next_turn("hello!")) == before
    assert chat.next_turn("hello", tenant="a") != before[0]


def test_an_answer_cut_inside_a_character_is_not_remembered(chat: Chat) -> None:
    chat.answers.remember("", chat.prompt, chat.tokenizer.encode("€")[:1])
    assert chat.answers.size == 0


def test_a_raw_prompt_has_no_turns(chat: Chat) -> None:
    chat.answers.remember("", chat.tokenizer.encode("once upon a time there was a tokenizer"), [5])
    chat.answers.remember("", chat.prompt, [])
    assert chat.answers.size == 0


def test_the_memory_is_bounded(tiny_model: ModelManifest) -> None:
    chat = Chat(tiny_model, size=4096)
    for number in range(200):
        chat.answers.remember("", chat.prompt, chat.letter_by_letter(f"answer {number}"))
    assert 0 < chat.answers.size <= 4096
    drawn = chat.letter_by_letter("answer 199")
    assert chat.next_turn("answer 199")[: len(chat.prompt) + len(drawn)] == chat.prompt + drawn
