"""Scenes: named, versioned uses of the server, as in `support-bot@3`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

from hotprefix.base.errors import InvalidRequest

SCENE_HEADER = "x-hotprefix-session"
_FORM = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63})@([A-Za-z0-9][A-Za-z0-9._-]{0,31})")
_PERSON = b"hotprefix/scene"


@dataclass(frozen=True, slots=True)
class Scene:
    """One use case and the version of its prompts: a changed prompt is a new version, not a miss."""

    name: str
    version: str

    @classmethod
    def parse(cls, text: str, param: str) -> Scene:
        """Reads `name@version`. Raises `InvalidRequest`."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise InvalidRequest(
                f"Invalid value for '{param}': a session is named name@version, of letters, digits and ._- "
                "(at most 64 and 32), such as support-bot@3.",
                param=param,
            )
        return cls(found[1], found[2])

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    def partition(self, tenant: str) -> str:
        """A name for the scene's own part of a tenant's caches; not to be confused with any tenant's."""
        digest = blake2b(digest_size=16, person=_PERSON)
        for part in (tenant, self.name, self.version):
            # Lengths first, so that no two lists of parts are the same bytes.
            digest.update(len(part.encode()).to_bytes(4, "big") + part.encode())
        return digest.hexdigest()
