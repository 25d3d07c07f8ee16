"""Drawn tokens → text deltas, stop conditions and the end of a choice."""

from __future__ import annotations

from collections.abc import Collection

from hotprefix.engine.request import Delta, FinishReason, Timings, Usage
from hotprefix.engine.sampler import Drawn
from hotprefix.engine.sequence import RequestState, Sequence


class AnswerWriter:
    """Sends what sequences say to their sinks. Every choice ends in exactly one last delta."""

    def __init__(self, eos_ids: Collection[int]) -> None:
        self._eos_ids = frozenset(eos_ids)

    def accept(self, sequence: Sequence, drawn: Drawn, now: float) -> FinishReason | None:
        """Add a drawn token; returns why the choice ends, if it does. Nothing is sent at an end."""
        state = sequence.parent
        if state.first_token_at is None:
            state.first_token_at = now
        sequence.token_at = now
        state.completion_tokens += 1
        token = drawn.token_id
        sequence.row.accept(token)
        sequence.history.append(token)
        if drawn.logprob is not None:
            sequence.logprobs.append(drawn.logprob)
        if self._is_end(sequence, token):
            return FinishReason.STOP
        sequence.unsent.append(token)
        text, stop = sequence.stops.push(sequence.text.push(token))
        if text or sequence.logprobs:
            self._send(sequence, text)
        matcher = sequence.row.matcher
        if stop is not None or (matcher is not None and matcher.finished):
            return FinishReason.STOP
        return FinishReason.LENGTH if sequence.generated >= sequence.limit else None

    def finish(
        self, sequence: Sequence, reason: FinishReason, now: float, error: str | None = None
    ) -> RequestState | None:
        """Send the last delta of a choice; returns the request if that was its last choice."""
        state = sequence.parent
        text = ""
        if sequence.stops.matched is None:
            text, _ = sequence.stops.push(sequence.text.finish())
            text += sequence.stops.finish()
        stop = sequence.stops.matched
        state.open_choices -= 1
        last = state.open_choices == 0
        delta = Delta(
            index=sequence.index,
            text=text,
            token_ids=tuple(sequence.unsent),
            logprobs=tuple(sequence.logprobs),
            finish_reason=FinishReason.STOP if stop is not None and reason is FinishReason.LENGTH else reason,
            stop_sequence=stop,
            error=error,
            usage=usage_of(state),
            timings=timings_of(state, now) if last else None,
            last=last,
        )
        state.sink(delta)
        return state if last else None

    def _send(self, sequence: Sequence, text: str) -> None:
        delta = Delta(
            index=sequence.index,
            text=text,
            token_ids=tuple(sequence.unsent),
            logprobs=tuple(sequence.logprobs),
            usage=None if sequence.parent.is_heard else usage_of(sequence.parent),
        )
        sequence.parent.is_heard = True
        sequence.unsent.clear()
        sequence.logprobs.clear()
        sequence.parent.sink(delta)

    def _is_end(self, sequence: Sequence, token: int) -> bool:
        sampling = sequence.parent.request.sampling
        if token in sampling.stop_token_ids:
            return True
        return token in self._eos_ids and not sampling.ignore_eos


def usage_of(state: RequestState) -> Usage:
    """Token counts of a request over all its choices so far."""
    prompt = len(state.request.prompt_ids)
    return Usage(prompt, state.cached_tokens, state.completion_tokens, state.dropped_tokens)


def timings_of(state: RequestState, now: float) -> Timings:
    """Seconds since the request was submitted; a phase that never came counts up to `now`."""
    admitted = state.admitted_at if state.admitted_at is not None else now
    first = state.first_token_at if state.first_token_at is not None else now
    start = state.submitted_at
    return Timings(queued=admitted - start, first_token=first - start, total=now - start)
