"""Model patterns: a name, or the beginning of one followed by `*`."""

from __future__ import annotations

from collections.abc import Iterable


def matches(pattern: str, model: str) -> bool:
    """Whether `pattern` covers `model`."""
    if pattern.endswith("*"):
        return model.startswith(pattern[:-1])
    return model == pattern


def best_pattern(patterns: Iterable[str], model: str) -> str | None:
    """The pattern that says most about `model`: its name, else the longest beginning."""
    found = [pattern for pattern in patterns if matches(pattern, model)]
    return max(found, key=specificity, default=None)


def specificity(pattern: str) -> tuple[bool, int]:
    """Larger for patterns that say more; a full name says most."""
    return (not pattern.endswith("*"), len(pattern))
