"""Where two texts part, and what lies around that point."""

from __future__ import annotations

EXCERPT = 20
"""Characters shown on each side of a difference."""


def common_length(left: str | bytes, right: str | bytes) -> int:
    """How many leading characters (bytes) are equal. Compares in halves, so mostly in C."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def excerpt(text: str, at: int) -> str:
    """Up to 20 characters on each side of position `at`."""
    return text[max(0, at - EXCERPT) : at + EXCERPT]


def differs_in_space_only(left: str, right: str) -> bool:
    """Whether two different texts are equal but for blanks, tabs and line ends."""
    return left != right and "".join(left.split()) == "".join(right.split())
