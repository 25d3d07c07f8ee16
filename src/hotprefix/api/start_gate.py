"""Whether the server has done what it wanted to do before taking traffic."""

from __future__ import annotations


class StartGate:
    """Closed while prefixes are warmed at the start; requests are answered all the same."""

    def __init__(self) -> None:
        self._is_open = False

    @property
    def is_open(self) -> bool:
        return self._is_open

    def open(self) -> None:
        """From now on, for good."""
        self._is_open = True
