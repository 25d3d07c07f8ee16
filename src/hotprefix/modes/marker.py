"""Cache markers as a request carries them, whatever its dialect."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker at the end of content block `block` (index into the prompt's spans).

    `ttl` is a key of the profile's TTLs; `path` the JSON path where it stands.
    """

    block: int
    ttl: str
    path: str
