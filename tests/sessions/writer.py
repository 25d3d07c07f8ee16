"""Saves a chain of responses for as long as it lives, and says each id once it is saved."""

from __future__ import annotations

import sys
from pathlib import Path

from hotprefix.base.clock import SystemClock
from hotprefix.sessions.store import ResponseStore
from tests.sessions.support import turn


def main() -> None:
    store = ResponseStore(Path(sys.argv[1]), SystemClock())
    last = None
    for number in range(1_000_000):
        last = store.save(turn(f"r{number}", previous=last))
        sys.stdout.write(f"r{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
