"""The ledger as the server sees it: record now, stored soon, by a thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from itertools import islice
from threading import Condition, Thread

from hotprefix.ledger.errors import LedgerError, RowRefused
from hotprefix.ledger.row import LedgerRow
from hotprefix.ledger.store import LedgerStore

_WAITING_ROWS = 100_000
_BATCH = 1000
_RETRY_SECONDS = 1.0
_CLOSE_SECONDS = 60.0

Entry = tuple[LedgerRow, Future[None] | None]


class Ledger:
    """Takes rows without waiting and stores them in batches.

    At most `limit` rows wait; beyond that `record` drops the row, counts it in `dropped` and says so, for a
    server that answers is worth more than its bookkeeping. While the store fails, rows wait and are tried
    again. `complain` gets a sentence for each new trouble, on the thread where it is noticed.
    """

    def __init__(
        self,
        store: LedgerStore,
        *,
        limit: int = _WAITING_ROWS,
        retry_seconds: float = _RETRY_SECONDS,
        complain: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._limit = limit
        self._retry_seconds = retry_seconds
        self._complain = complain
        self._waiting: deque[Entry] = deque()
        self._change = Condition()
        self._recorded = 0
        self._settled = 0
        self._failures = 0
        self._trouble: LedgerError | None = None
        self._closing = False
        self.dropped = 0
        self._thread = Thread(target=self._work, name="hotprefix-ledger", daemon=True)
        self._thread.start()

    @property
    def store(self) -> LedgerStore:
        """For queries; what was recorded a moment ago may not be in it yet."""
        return self._store

    @property
    def is_failing(self) -> bool:
        """Whether the store failed when it was last tried: rows wait for it to come back."""
        return self._trouble is not None

    def record(self, row: LedgerRow) -> None:
        """Keep `row`; a few microseconds, whatever the store does."""
        self._take(row, None)

    def record_durably(self, row: LedgerRow) -> Future[None]:
        """Keep `row`; the future is done when it is stored, or holds a LedgerError when it never will be."""
        stored: Future[None] = Future()
        # A client that goes away cancels its wait, not the row.
        stored.set_running_or_notify_cancel()
        self._take(row, stored)
        return stored

    def flush(self, timeout: float = 30.0) -> None:
        """Wait until all rows recorded so far are stored. LedgerError if that fails or takes too long."""
        with self._change:
            target, failures = self._recorded, self._failures
            self._change.wait_for(lambda: self._settled >= target or self._failures > failures, timeout)
            if self._settled < target:
                raise self._unsettled(target - self._settled)

    def close(self) -> None:
        """Store what waits and end the thread, the store included. LedgerError if rows are left."""
        with self._change:
            self._closing = True
            self._change.notify_all()
        self._thread.join(_CLOSE_SECONDS)
        with self._change:
            left = self._recorded - self._settled
            trouble = self._unsettled(left) if left else None
            for _, stored in self._waiting:
                if stored is not None and trouble is not None:
                    stored.set_exception(trouble)
            self._waiting.clear()
        if not self._thread.is_alive():
            self._store.close()
        if trouble is not None:
            raise trouble

    def _take(self, row: LedgerRow, stored: Future[None] | None) -> None:
        with self._change:
            if not self._closing and len(self._waiting) < self._limit:
                if not self._waiting:
                    # The thread sleeps only while nothing waits; waking it is most of what this costs.
                    self._change.notify_all()
                self._waiting.append((row, stored))
                self._recorded += 1
                return
            self.dropped += 1
            first = self.dropped == 1
        reason = "closed" if self._closing else f"behind by {self._limit} requests"
        lost = LedgerError(f"Request {row.request_id} is not in the ledger, which is {reason}.")
        if first:
            self._tell(f"{lost} Later losses are counted, not told.")
        if stored is not None:
            stored.set_exception(lost)

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                self._settle(batch)
            except Exception as error:
                # The edge of the thread: whatever the store ran into, rows wait and accounts go on.
                if not self._fail(error):
                    return

    def _next_batch(self) -> list[Entry]:
        """Empty when closing and nothing is left. The rows stay in the line until they are settled."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._closing)
            return list(islice(self._waiting, _BATCH))

    def _settle(self, batch: list[Entry]) -> None:
        try:
            self._store.append([row for row, _ in batch])
        except RowRefused:
            for entry in batch:
                self._settle_one(entry)
            return
        self._leave(batch, None)

    def _settle_one(self, entry: Entry) -> None:
        try:
            self._store.append([entry[0]])
        except RowRefused as error:
            self.dropped += 1
            self._tell(str(error))
            self._leave([entry], error)
        else:
            self._leave([entry], None)

    def _leave(self, batch: list[Entry], refused: RowRefused | None) -> None:
        for _, stored in batch:
            if stored is None:
                continue
            if refused is None:
                stored.set_result(None)
            else:
                stored.set_exception(refused)
        with self._change:
            for _ in batch:
                self._waiting.popleft()
            self._settled += len(batch)
            self._trouble = None
            self._change.notify_all()

    def _fail(self, error: Exception) -> bool:
        """Whether to try again; waits before it says so."""
        trouble = error if isinstance(error, LedgerError) else LedgerError(f"{type(error).__name__}: {error}")
        if self._trouble is None:
            self._tell(f"{trouble} Rows wait and are tried again.")
        with self._change:
            self._trouble = trouble
            self._failures += 1
            self._change.notify_all()
            if not self._closing:
                self._change.wait_for(lambda: self._closing, self._retry_seconds)
                return True
            return False

    def _unsettled(self, rows: int) -> LedgerError:
        why = self._trouble or "the store takes too long."
        return LedgerError(f"{rows} requests are not in the ledger: {why}")

    def _tell(self, sentence: str) -> None:
        if self._complain is not None:
            self._complain(sentence)
