"""A thread that does one job after the other, with a bounded line of waiting ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Protocol


class Job(Protocol):
    """One of both is called, once, on the worker's thread (on the caller's if the worker has ended)."""

    def run(self) -> None: ...

    def cancel(self) -> None:
        """There was no room for it, or the worker ends first."""
        ...


class Worker:
    """A daemon thread: whatever hangs in it can't keep the process alive.

    `rested` is called on it when no job has come for `rest_seconds` after the last one.
    """

    def __init__(
        self, name: str, room: int, rested: Callable[[], None] | None = None, rest_seconds: float = 1.0
    ) -> None:
        self._room = room
        self._rested = rested
        self._rest_seconds = rest_seconds
        self._taken = 0
        self._jobs: deque[tuple[Job, int]] = deque()
        self._refused: deque[Job] = deque()
        self._changed = Condition()
        self._is_busy = False
        self._is_stopping = False
        self._has_ended = False
        self.failed = 0
        """Jobs that raised."""
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def has_room(self, size: int) -> bool:
        """Whether a job of that size would be taken now."""
        with self._changed:
            return self._has_room(size)

    def offer(self, job: Job, size: int) -> bool:
        """Queue a job that takes `size` of the room until it is done; False if there is too little.

        An empty line takes a job of any size, and any line one of size 0.
        """
        with self._changed:
            if not self._has_room(size):
                return False
            self._taken += size
            self._jobs.append((job, size))
            self._changed.notify_all()
            return True

    def refuse(self, job: Job) -> None:
        """Have the thread cancel a job that was not taken."""
        with self._changed:
            if not self._has_ended:
                self._refused.append(job)
                self._changed.notify_all()
                return
        job.cancel()

    def wait_idle(self, timeout: float) -> bool:
        """Until nothing waits or runs, for at most so many seconds; whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._has_ended or not self._is_working(), timeout)

    def cancel_waiting(self) -> None:
        """Have the thread cancel all jobs that have not begun."""
        with self._changed:
            self._refused.extend(job for job, _ in self._jobs)
            self._taken -= sum(size for _, size in self._jobs)
            self._jobs.clear()
            self._changed.notify_all()

    def stop(self) -> None:
        """Take no more jobs; end when those that wait are done."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def join(self, timeout: float) -> bool:
        """Wait for the end, for at most so many seconds; whether it has come."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _has_room(self, size: int) -> bool:
        is_enough = not (self._taken and size) or self._taken + size <= self._room
        return is_enough and not self._is_stopping

    def _has_news(self) -> bool:
        return bool(self._jobs or self._refused or self._is_stopping)

    def _is_working(self) -> bool:
        return bool(self._is_busy or self._jobs or self._refused)

    def _work(self) -> None:
        to_call: Callable[[], None] | None = None
        while True:
            with self._changed:
                has_news = self._changed.wait_for(self._has_news, self._rest_seconds if to_call else None)
            if to_call is not None and not has_news:
                self._do(to_call)
                to_call = None
                continue
            to_call = self._rested
            with self._changed:
                if not self._jobs and not self._refused:
                    self._has_ended = True
                    self._changed.notify_all()
                    return
                self._is_busy = True
                refused = self._refused.popleft() if self._refused else None
                job, size = (refused, 0) if refused is not None else self._jobs.popleft()
            act = job.run if refused is None else job.cancel
            self._do(act)
            # Nothing of a job may outlive it: it holds a block's bytes.
            del job, refused, act
            with self._changed:
                self._taken -= size
                self._is_busy = False
                self._changed.notify_all()

    def _do(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception:
            # The edge of a thread: one bad job must not stop the others.
            self.failed += 1
