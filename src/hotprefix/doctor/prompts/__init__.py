"""Prompts with versions: a folder under git, a split by hash, comparison of versions, a review list.

from hotprefix.doctor.prompts import open_registry

prompts = open_registry("prompts")
chosen = prompts.choose("greeting", unit=user_id)
send(system=chosen.text, headers={"x-hotprefix-prompt": chosen.header})
"""

from hotprefix.doctor.prompts.errors import (
    ArmsPartEarly,
    BrokenRegistry,
    EditedRelease,
    PromptError,
    UnknownPrompt,
)
from hotprefix.doctor.prompts.registry import PromptText, Registry, open_registry
from hotprefix.doctor.prompts.split import arm_of
from hotprefix.doctor.prompts.version import Status, Version, digest_of

__all__ = [
    "ArmsPartEarly",
    "BrokenRegistry",
    "EditedRelease",
    "PromptError",
    "PromptText",
    "Registry",
    "Status",
    "UnknownPrompt",
    "Version",
    "arm_of",
    "digest_of",
    "open_registry",
]
