"""Records rows until it is killed; after each flush it says up to which one they are safe."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.store import open_store
from hotprefix.modes.classes import Mode, TokenClasses
from tests.ledger.rows import row


def tokens(number: int) -> TokenClasses:
    """Different for every request, so that a total tells which ones are in it."""
    return TokenClasses(Mode.EXPLICIT, number % 7, 2 * number, {"5m": number % 11}, output=number % 5)


def main(place: str) -> None:
    ledger = Ledger(open_store(place if "://" in place else Path(place)))
    for number in count():
        ledger.record(row(number, classes=tokens(number)))
        if number % 20 == 19:
            ledger.flush()
            print(number + 1, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
