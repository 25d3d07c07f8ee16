"""Writes records to a disk tier until it is killed, and says which are in it."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from hotprefix.base.clock import SystemClock
from hotprefix.tiers.disk import DiskStore
from tests.tiers.records import SCOPE, key_of, record

RETAINED = 20
SIZE = 50_000


def main(folder: str, limit: str, first: str) -> None:
    """The first records are retained for ever; all later ones come and go."""
    store = DiskStore(Path(folder), int(limit), SCOPE, SystemClock())
    for number in range(RETAINED):
        if not store.contains([key_of(number)])[0]:
            store.put(record(number, SIZE))
    store.retain([key_of(number) for number in range(RETAINED)], 1e12)
    print("ready", flush=True)
    for number in count(int(first)):
        store.put(record(number, SIZE))
        print(number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
