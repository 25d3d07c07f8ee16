"""One request's account with the caches: what it may read, what it wrote, what that is billed as."""

from __future__ import annotations

from collections.abc import Sequence

from hotprefix.api.bill import Bill, summed
from hotprefix.diagnosis.headers import report_headers
from hotprefix.diagnosis.reason import MissReport
from hotprefix.engine.request import Delta, Usage
from hotprefix.modes.caching import Caching
from hotprefix.modes.classes import TokenClasses
from hotprefix.modes.doctor import Case, Doctor
from hotprefix.modes.turn import Turn, TurnRequest

_WARNING = b"x-hotprefix-warning"
_MODE = b"x-hotprefix-cache-mode"


class Account:
    """Opened before a job is submitted, settled once it has ended, however that was."""

    def __init__(self, caching: Caching, doctor: Doctor, requests: Sequence[TurnRequest]) -> None:
        self._caching = caching
        self._doctor = doctor
        self._arrived = doctor.moment
        self._turns = [caching.begin(request) for request in requests]
        self._cases: list[Case] = []
        self._first: dict[int, Usage] = {}
        self._final: dict[int, Usage] = {}
        self._drawn = [0] * len(requests)
        self._said: list[tuple[list[str], list[int]]] = [([], []) for _ in requests]
        self._report: MissReport | None = None

    @property
    def turns(self) -> Sequence[Turn]:
        """One for each prompt."""
        return self._turns

    @property
    def case(self) -> Case | None:
        """The first prompt beside the earlier one that it resembles, once they have been compared."""
        return self._cases[0] if self._cases else None

    @property
    def is_complete(self) -> bool:
        """Whether every prompt's last delta has come."""
        return len(self._final) == len(self._turns)

    @property
    def report(self) -> MissReport:
        """Why the first prompt did not get more; final once the account is settled or cancelled."""
        if self._report is None:
            self.examine()
            self._report = self._doctor.report(self._cases[0], self._expected(0))
        return self._report

    def examine(self) -> None:
        """Compare the prompts with earlier ones; a good use of the time until the first token."""
        if not self._cases:
            self._cases = [self._doctor.open(turn, self._arrived) for turn in self._turns]

    async def note(self, prompt: int, delta: Delta) -> None:
        """Learn from a delta: the first one tells what was reused, the last one everything."""
        self._drawn[prompt] += len(delta.token_ids)
        if delta.index == 0:
            texts, ids = self._said[prompt]
            texts.append(delta.text)
            ids.extend(delta.token_ids)
        if delta.usage is None:
            return
        if prompt not in self._first:
            self._first[prompt] = delta.usage
            self._caching.admitted(self._turns[prompt], delta.usage.cached_tokens)
            await self._caching.first_output(self._turns[prompt])
        if delta.last:
            self._final[prompt] = delta.usage

    def opening(self) -> Bill:
        """What can be said when the first delta is there."""
        classes = [self._expected(prompt) for prompt in range(len(self._turns))]
        usage = self.usage()
        return Bill(Usage(usage.prompt_tokens, usage.cached_tokens, 0), summed(classes))

    async def settle(self) -> Bill:
        """Write what is to be written, and bill. Only once every prompt has ended."""
        classes = []
        for prompt, turn in enumerate(self._turns):
            drawn = self._final[prompt].completion_tokens
            classes.append(await self._caching.finish(turn, self._reused(prompt), drawn))
        self._close(classes, [("".join(texts), ids) for texts, ids in self._said])
        return Bill(self.usage(), summed(classes))

    def cancel(self) -> Bill:
        """The request ended early: bill what was done until then."""
        classes = [
            self._caching.cancelled(turn, self._reused(prompt), self._output(prompt))
            for prompt, turn in enumerate(self._turns)
        ]
        self._close(classes, None)
        return Bill(self.usage(), summed(classes))

    def usage(self) -> Usage:
        """The engine's own figures where a prompt has ended, what was seen so far elsewhere."""
        prompts = range(len(self._turns))
        return Usage(
            prompt_tokens=sum(len(turn.request.prompt.token_ids) for turn in self._turns),
            cached_tokens=sum(self._reused(prompt) for prompt in prompts),
            completion_tokens=sum(self._output(prompt) for prompt in prompts),
            dropped_tokens=sum(self._dropped(prompt) for prompt in prompts),
        )

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The mode, why the cache gave no more, what was done to the prompt, and what was ignored."""
        headers = [(_MODE, turn.mode.value.encode()) for turn in self._turns[:1]]
        headers += [(name.encode(), value.encode("ascii")) for name, value in report_headers(self.report)]
        notes = [note for turn in self._turns[:1] for note in turn.request.notes]
        headers += [(name.encode(), value.encode("ascii", "replace")) for name, value in notes]
        warnings = [warning for turn in self._turns for warning in turn.warnings]
        if warnings:
            text = "; ".join(warnings)[:1000]
            headers.append((_WARNING, text.encode("ascii", "replace")))
        return headers

    def _dropped(self, prompt: int) -> int:
        usage = self._final.get(prompt) or self._first.get(prompt)
        return usage.dropped_tokens if usage is not None else 0

    def _expected(self, prompt: int) -> TokenClasses:
        return self._caching.expected(self._turns[prompt], self._reused(prompt))

    def _close(
        self, classes: Sequence[TokenClasses], answers: Sequence[tuple[str, Sequence[int]]] | None
    ) -> None:
        """The last report, and what is remembered; a cancelled request leaves its prompt only."""
        self.examine()
        self._report = self._doctor.report(self._cases[0], classes[0])
        for number, case in enumerate(self._cases):
            if answers is None:
                self._doctor.close(case, None, ("", ()))
            else:
                self._doctor.close(case, classes[number], answers[number])

    def _reused(self, prompt: int) -> int:
        usage = self._final.get(prompt) or self._first.get(prompt)
        return usage.cached_tokens if usage is not None else 0

    def _output(self, prompt: int) -> int:
        final = self._final.get(prompt)
        return final.completion_tokens if final is not None else self._drawn[prompt]
