"""How long prompts are, and how much of their beginning two of them share, in tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hotprefix.doctor.prompts.prompt import Prompt
from hotprefix.doctor.rules_for import newest_of
from hotprefix.doctor.text_model import TextModel
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.profile import Profile


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts with a model's tokenizer if there is one, else by estimate."""

    model: TextModel = field(default_factory=TextModel)

    def tokens(self, text: str) -> int:
        """Tokens of a text alone, without any template around it."""
        return len(self._ids(text))

    def shared(self, one: str, other: str) -> int:
        """Tokens at the beginning of both."""
        first, second = self._ids(one), self._ids(other)
        most = min(len(first), len(second))
        return next((place for place in range(most) if first[place] != second[place]), most)

    def told(self, tokens: int) -> str:
        """For people, with a word of caution where it is an estimate."""
        return f"{'about ' if self.model.is_estimate else ''}{tokens:,} tokens"

    def _ids(self, text: str) -> Sequence[int]:
        return self.model.token_ids(text)


def profile_of(prompt: Prompt, book: ProfileBook) -> Profile:
    """The rules that a prompt is sent under. Raises `UnknownProfile`."""
    if prompt.profile:
        return book.get(prompt.profile)
    model = prompt.model.lower()
    if model.startswith(("claude", "anthropic")):
        return newest_of("anthropic", book)
    if model.startswith(("gpt-", "chatgpt-", "o1", "o3", "o4", "openai/")):
        return newest_of("openai", book)
    return book.default


def minimum_of(prompt: Prompt, book: ProfileBook) -> int:
    """Least tokens of a prefix that is cached, in the mode that the prompt is sent in."""
    profile = profile_of(prompt, book)
    if prompt.mode == "session" and profile.session is not None:
        return profile.session.minimum
    explicit = prompt.mode == "explicit" or profile.implicit is None
    if explicit and profile.explicit is not None:
        return profile.explicit.minimum_for(prompt.model)
    return profile.implicit.minimum_for(prompt.model) if profile.implicit is not None else 0
