"""Stop strings found in text that arrives piece by piece."""

from __future__ import annotations

from collections.abc import Sequence


class StopScanner:
    """Lets text through up to the first stop string, however the text is cut into pieces.

    The stop that begins earliest wins, the longest of those that begin together; it and all text
    after it are dropped. Text that might still become such a stop is held back, so the outcome is
    the same as searching the whole text at once. Empty stop strings are ignored.
    """

    __slots__ = ("_held", "_matched", "_stops")

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(dict.fromkeys(stop for stop in stops if stop))
        self._held = ""
        self._matched: str | None = None

    @property
    def matched(self) -> str | None:
        """The stop string that ended the text, if one did."""
        return self._matched

    def push(self, text: str) -> tuple[str, str | None]:
        """Text that is certain now, and the stop string once one is found.

        After a stop, everything pushed is dropped.
        """
        if not self._stops:
            return text, None
        if self._matched is not None:
            return "", self._matched
        text = self._held + text
        found = self._first_match(text)
        pending = self._first_pending(text)
        if found is not None and found[0] < pending:
            return self._cut(text, found), self._matched
        self._held = text[pending:]
        return text[:pending], None

    def finish(self) -> str:
        """Whatever is still held back once no more text comes; `matched` is final afterwards."""
        text, self._held = self._held, ""
        found = self._first_match(text)
        return text if found is None else self._cut(text, found)

    def _cut(self, text: str, found: tuple[int, str]) -> str:
        self._held = ""
        self._matched = found[1]
        return text[: found[0]]

    def _first_match(self, text: str) -> tuple[int, str] | None:
        hits = [(at, -len(stop), stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if not hits:
            return None
        at, _, stop = min(hits)
        return at, stop

    def _first_pending(self, text: str) -> int:
        """Where the earliest unfinished stop string begins; the text's length if there is none."""
        first = len(text)
        for stop in self._stops:
            at = text.find(stop[0], max(0, len(text) - len(stop) + 1), first)
            while at >= 0 and not stop.startswith(text[at:]):
                at = text.find(stop[0], at + 1, first)
            if at >= 0:
                first = at
        return first
