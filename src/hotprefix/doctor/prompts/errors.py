"""What can be wrong with a folder of prompts."""

from __future__ import annotations

from hotprefix.base.errors import HotprefixError


class PromptError(HotprefixError):
    """Prompts can't be read, chosen or added."""


class UnknownPrompt(PromptError):
    """There is no prompt or version of this name; the message lists what there is."""


class BrokenRegistry(PromptError):
    """`prompts.toml` is wrong, or does not fit the files beside it."""


class EditedRelease(PromptError):
    """The text of a released version is not the one that was released."""


class ExperimentError(PromptError):
    """An experiment can't be run or judged as it is set up."""


class ArmsPartEarly(UserWarning):
    """Two arms differ so early that they share no prefix that could be cached."""
