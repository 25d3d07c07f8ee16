"""From a thread to an event loop: in order, in few wake-ups, and nobody is kept alive by it."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

from hotprefix.engine.mailbox import Mailbox, Mailboxes
from hotprefix.engine.request import Delta


def test_deltas_come_in_order_from_another_thread() -> None:
    async def main() -> list[int]:
        box = Mailboxes().open()
        thread = threading.Thread(target=lambda: [box.put(Delta(index=number)) for number in range(500)])
        thread.start()
        received = [(await box.get()).index for _ in range(500)]
        thread.join()
        return received

    assert asyncio.run(main()) == list(range(500))


def test_each_mailbox_gets_its_own() -> None:
    async def main() -> list[list[int]]:
        boxes = Mailboxes()
        mine = [boxes.open() for _ in range(4)]

        def deliver() -> None:
            for number in range(100):
                for index, box in enumerate(mine):
                    box.put(Delta(index=1000 * index + number))

        thread = threading.Thread(target=deliver)
        thread.start()
        received = await asyncio.gather(*(read(box, 100) for box in mine))
        thread.join()
        return received

    async def read(box: Mailbox, count: int) -> list[int]:
        return [(await box.get()).index for _ in range(count)]

    assert asyncio.run(main()) == [[1000 * index + n for n in range(100)] for index in range(4)]


def test_one_wake_up_carries_all_that_was_said_meanwhile() -> None:
    async def main() -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        wakes = 0
        schedule = loop.call_soon_threadsafe

        def counted(*args: object) -> object:
            nonlocal wakes
            wakes += 1
            return schedule(*args)  # type: ignore[arg-type]

        loop.call_soon_threadsafe = counted  # type: ignore[method-assign, assignment]
        boxes = Mailboxes()
        mine = [boxes.open() for _ in range(3)]
        for number in range(50):
            for box in mine:
                box.put(Delta(index=number))
        received = [await box.get() for _ in range(50) for box in mine]
        return wakes, len(received)

    assert asyncio.run(main()) == (1, 150)


def test_two_loops_at_once() -> None:
    boxes = Mailboxes()
    results: dict[str, list[int]] = {}

    async def main(name: str, start: int) -> None:
        box = boxes.open()
        for number in range(20):
            box.put(Delta(index=start + number))
        results[name] = [(await box.get()).index for _ in range(20)]

    threads = [
        threading.Thread(target=lambda name=name, start=start: asyncio.run(main(name, start)))
        for name, start in (("a", 0), ("b", 100))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"a": list(range(20)), "b": list(range(100, 120))}


def test_putting_after_the_loop_has_closed_harms_nobody() -> None:
    async def main() -> Mailbox:
        return Mailboxes().open()

    box = asyncio.run(main())
    for number in range(3):
        box.put(Delta(index=number))


def test_a_loop_is_forgotten_with_its_last_mailbox() -> None:
    boxes = Mailboxes()

    async def main() -> weakref.ref[asyncio.AbstractEventLoop]:
        box = boxes.open()
        box.put(Delta(index=1))
        await box.get()
        return weakref.ref(asyncio.get_running_loop())

    gone = asyncio.run(main())
    gc.collect()
    assert gone() is None
    assert len(boxes._offices) == 0
