"""One request's account with the caches: what it may read, what it wrote, what that is billed as."""

from __future__ import annotations

from collections.abc import Sequence

from hotprefix.api.bill import Bill, summed
from hotprefix.engine.request import Delta, Usage
from hotprefix.modes.caching import Caching
from hotprefix.modes.turn import Turn, TurnRequest

_WARNING = b"x-hotprefix-warning"
_MODE = b"x-hotprefix-cache-mode"


class Account:
    """Opened before a job is submitted, settled once it has ended, however that was."""

    def __init__(self, caching: Caching, requests: Sequence[TurnRequest]) -> None:
        self._caching = caching
        self._turns = [caching.begin(request) for request in requests]
        self._first: dict[int, Usage] = {}
        self._final: dict[int, Usage] = {}
        self._drawn = [0] * len(requests)

    @property
    def turns(self) -> Sequence[Turn]:
        """One for each prompt."""
        return self._turns

    @property
    def is_complete(self) -> bool:
        """Whether every prompt's last delta has come."""
        return len(self._final) == len(self._turns)

    async def note(self, prompt: int, delta: Delta) -> None:
        """Learn from a delta: the first one tells what was reused, the last one everything."""
        self._drawn[prompt] += len(delta.token_ids)
        if delta.usage is None:
            return
        if prompt not in self._first:
            self._first[prompt] = delta.usage
            await self._caching.first_output(self._turns[prompt])
        if delta.last:
            self._final[prompt] = delta.usage

    def opening(self) -> Bill:
        """What can be said when the first delta is there."""
        classes = [
            self._caching.expected(turn, self._reused(prompt)) for prompt, turn in enumerate(self._turns)
        ]
        usage = self.usage()
        return Bill(Usage(usage.prompt_tokens, usage.cached_tokens, 0), summed(classes))

    async def settle(self) -> Bill:
        """Write what is to be written, and bill. Only once every prompt has ended."""
        classes = []
        for prompt, turn in enumerate(self._turns):
            drawn = self._final[prompt].completion_tokens
            classes.append(await self._caching.finish(turn, self._reused(prompt), drawn))
        return Bill(self.usage(), summed(classes))

    def cancel(self) -> Bill:
        """The request ended early: bill what was done until then."""
        classes = [
            self._caching.cancelled(turn, self._reused(prompt), self._output(prompt))
            for prompt, turn in enumerate(self._turns)
        ]
        return Bill(self.usage(), summed(classes))

    def usage(self) -> Usage:
        """The engine's own figures where a prompt has ended, what was seen so far elsewhere."""
        prompts = range(len(self._turns))
        return Usage(
            prompt_tokens=sum(len(turn.request.prompt.token_ids) for turn in self._turns),
            cached_tokens=sum(self._reused(prompt) for prompt in prompts),
            completion_tokens=sum(self._output(prompt) for prompt in prompts),
        )

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The mode, and what was ignored or refused."""
        headers = [(_MODE, turn.mode.value.encode()) for turn in self._turns[:1]]
        warnings = [warning for turn in self._turns for warning in turn.warnings]
        if warnings:
            text = "; ".join(warnings)[:1000]
            headers.append((_WARNING, text.encode("ascii", "replace")))
        return headers

    def _reused(self, prompt: int) -> int:
        usage = self._final.get(prompt) or self._first.get(prompt)
        return usage.cached_tokens if usage is not None else 0

    def _output(self, prompt: int) -> int:
        final = self._final.get(prompt)
        return final.completion_tokens if final is not None else self._drawn[prompt]
