"""Limits of the HTTP side."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """`body_limit` in bytes; `body_timeout` in seconds for a whole body to arrive.

    `max_choices` bounds the answers that one request may ask for: prompts times `n`. With
    `isolate_scenes` the caches of two scenes of a tenant share nothing. With `redact` the ledger keeps
    lengths instead of the prompts' words.
    """

    body_limit: int = 16 * 1024 * 1024
    body_timeout: float = 60.0
    max_choices: int = 128
    isolate_scenes: bool = False
    redact: bool = False
