"""The threads of the stack: one job after the other, and each is run or cancelled once."""

from __future__ import annotations

from queue import Queue
from threading import Event, current_thread

from hotprefix.tiers.worker import Worker


class Noted:
    """A job that waits for its gate, and notes what became of it."""

    def __init__(self, notes: list[str], name: str, gate: Event | None = None) -> None:
        self._notes = notes
        self._name = name
        self._gate = gate
        self.began = Event()

    def run(self) -> None:
        self.began.set()
        assert self._gate is None or self._gate.wait(30)
        self._notes.append(f"ran {self._name} on {current_thread().name}")

    def cancel(self) -> None:
        self._notes.append(f"cancelled {self._name} on {current_thread().name}")


class Failing:
    def run(self) -> None:
        raise ZeroDivisionError

    def cancel(self) -> None:
        raise ZeroDivisionError


def test_room_is_that_of_all_jobs_not_yet_done() -> None:
    notes: list[str] = []
    gate = Event()
    worker = Worker("w", 10)
    assert worker.offer(Noted(notes, "large", gate), 50)  # into an empty line
    assert not worker.has_room(1)
    assert worker.has_room(0)
    assert not worker.offer(Noted(notes, "late"), 1)
    assert worker.offer(Noted(notes, "free"), 0)
    gate.set()
    assert worker.wait_idle(30)
    assert worker.has_room(50)
    assert worker.offer(Noted(notes, "small"), 6)
    worker.stop()
    assert worker.join(30)
    assert notes == ["ran large on w", "ran free on w", "ran small on w"]
    assert not worker.offer(Noted(notes, "too late"), 0)


def test_a_rest_is_noted_once_after_each_time_of_work() -> None:
    notes: list[str] = []
    rested: Queue[int] = Queue()
    worker = Worker("w", 10, lambda: rested.put(len(notes)), rest_seconds=0.01)
    for number in range(3):
        worker.offer(Noted(notes, str(number)), 1)
        assert rested.get(timeout=30) == number + 1
    assert worker.wait_idle(30)
    worker.stop()
    assert worker.join(30)
    assert rested.empty()


def test_cancelled_on_the_thread_or_after_its_end_by_the_caller() -> None:
    notes: list[str] = []
    gate = Event()
    worker = Worker("w", 10)
    first = Noted(notes, "first", gate)
    worker.offer(first, 5)
    assert first.began.wait(30)
    worker.offer(Noted(notes, "second"), 5)
    worker.refuse(Noted(notes, "third"))
    worker.cancel_waiting()
    gate.set()
    assert worker.wait_idle(30)
    assert notes == ["ran first on w", "cancelled third on w", "cancelled second on w"]
    worker.stop()
    assert worker.join(30)
    worker.refuse(Noted(notes, "last"))
    assert notes[3:] == ["cancelled last on MainThread"]


def test_a_failing_job_stops_nothing() -> None:
    notes: list[str] = []
    worker = Worker("w", 10)
    worker.offer(Failing(), 1)
    worker.refuse(Failing())
    worker.offer(Noted(notes, "next"), 1)
    assert worker.wait_idle(30)
    assert worker.failed == 2
    assert notes == ["ran next on w"]
    worker.stop()
    assert worker.join(30)
