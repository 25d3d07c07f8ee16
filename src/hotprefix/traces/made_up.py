"""Traffic made up for measuring: conversations behind a few system prompts, and one-off requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import orjson


@dataclass(frozen=True, slots=True)
class Traffic:
    """Shape of the traffic; lengths are in blocks.

    A share of `talks` of the requests belongs to conversations with `turns` turns on average, each some
    `pause` seconds behind the one before. System prompts are chosen by Zipf's law.
    """

    block: int = 512
    rate: float = 10.0
    systems: int = 200
    system_blocks: int = 3
    own_blocks: int = 4
    turn_blocks: int = 2
    talks: float = 0.7
    turns: float = 4.0
    pause: float = 90.0


def made_up(requests: int, seed: int, traffic: Traffic | None = None) -> Iterator[bytes]:
    """Lines in Mooncake's format, by time. Memory is that of the conversations that go on."""
    shape = traffic if traffic is not None else Traffic()
    random = Random(seed)
    weights = [1 / (place + 1) for place in range(shape.systems)]
    prompts = [list(range(place * 64, place * 64 + shape.system_blocks)) for place in range(shape.systems)]
    waiting: dict[int, list[list[int]]] = {}
    serial, now = shape.systems * 64, 0.0
    for _ in range(requests):
        now += random.expovariate(shape.rate)
        due = waiting.get(int(now))
        if due:
            ids = due.pop()
            grown = random.randint(1, 2 * shape.turn_blocks)
        else:
            waiting.pop(int(now), None)
            ids = prompts[random.choices(range(shape.systems), weights)[0]]
            grown = random.randint(1, 2 * shape.own_blocks)
        ids = [*ids, *range(serial, serial + grown)]
        serial += grown
        if random.random() < shape.talks * (1 - 1 / shape.turns) / 0.75:
            moment = int(now + random.expovariate(1 / shape.pause)) + 1
            waiting.setdefault(moment, []).append(ids)
        length = len(ids) * shape.block - random.randrange(shape.block)
        line = {
            "timestamp": int(now * 1000),
            "input_length": length,
            "output_length": random.randint(20, 600),
            "hash_ids": ids,
        }
        yield orjson.dumps(line) + b"\n"
