"""A shop's customer service, asked in three ways: what a fixed prefix is worth in time and money.

pip install openai hotprefix
hotprefix serve                                      # in another terminal
python examples/customer_service/compare.py          # HOTPREFIX_URL names another server
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

from openai import OpenAI
from rich.console import Console
from rich.table import Table

from hotprefix.ledger.money import amount
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.profiles.loader import DEFAULT_PROFILE, load_profiles
from hotprefix.profiles.price import Price, price_of

FOLDER = Path(__file__).resolve().parent
SYSTEM = (FOLDER / "system_prompt.txt").read_text(encoding="utf-8")
QUESTIONS = (FOLDER / "questions.txt").read_text(encoding="utf-8").splitlines()
START = datetime(2031, 4, 5, 10, 0, tzinfo=UTC)


@dataclass
class Way:
    """One way to ask, and what its requests took. Tokens and money over all of them, seconds of each."""

    name: str
    prompt: int = 0
    computed: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    money: Decimal = Decimal(0)
    first_tokens: list[float] = field(default_factory=list)

    @property
    def first_token(self) -> float:
        """The median, without the first request, which finds nothing in any cache."""
        return median(self.first_tokens[1:])


def messages(way: str, number: int) -> list[dict[str, Any]]:
    """The customer's `number`th message. Every way tells the model the same things."""
    now = START + timedelta(seconds=7 * number)
    who = f"Time: {now:%Y-%m-%d %H:%M:%S}\nCustomer: C-{48213 + 37 * number}"
    question = QUESTIONS[number % len(QUESTIONS)]
    if way == "stamp in front":
        return [
            {"role": "system", "content": f"{who}\n\n{SYSTEM}"},
            {"role": "user", "content": question},
        ]
    system: Any = SYSTEM
    if way == "prefix, marked":
        system = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    return [{"role": "system", "content": system}, {"role": "user", "content": f"{question}\n\n{who}"}]


def ask(client: OpenAI, model: str, way: Way, number: int, price: Price) -> None:
    """One request, added to what its way took."""
    start = time.perf_counter()
    first: float | None = None
    usage = None
    stream = client.chat.completions.create(
        model=model,
        messages=messages(way.name, number),  # type: ignore[arg-type]  # markers are no part of OpenAI's types
        max_tokens=32,
        temperature=0,
        top_p=0.1,
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        if chunk.choices and first is None:
            first = time.perf_counter() - start
        usage = chunk.usage or usage
    assert usage is not None and first is not None
    details: dict[str, Any] = usage.prompt_tokens_details.model_dump() if usage.prompt_tokens_details else {}
    read = details.get("cached_tokens") or 0
    written = details.get("cache_creation_input_tokens") or 0
    classes = TokenClasses(
        mode=Mode.EXPLICIT if way.name == "prefix, marked" else Mode.IMPLICIT,
        computed=usage.prompt_tokens - read - written,
        read=read,
        written={"5m": written} if written else {},
        output=usage.completion_tokens,
    )
    way.prompt += usage.prompt_tokens
    way.computed += classes.computed
    way.read += read
    way.written += written
    way.output += usage.completion_tokens
    way.money += amount(classes, usage.prompt_tokens, price)
    way.first_tokens.append(first)


def less(before: float | Decimal, after: float | Decimal) -> float:
    """How many per cent less `after` is."""
    return round(float(100 * (1 - after / before)), 1)


def facts(ways: list[Way]) -> dict[str, Any]:
    """Everything, for programs."""
    spoiled = ways[0]
    return {
        "ways": [asdict(way) | {"money": str(way.money), "first_token": way.first_token} for way in ways],
        "cost_reduction": {way.name: less(spoiled.money, way.money) for way in ways[1:]},
        "first_token_reduction": {way.name: less(spoiled.first_token, way.first_token) for way in ways[1:]},
    }


def show(ways: list[Way], requests: int, currency: str) -> None:
    """A table for people."""
    table = Table(
        title=f"{requests} requests each, {ways[0].prompt / requests:,.0f} prompt tokens on average"
    )
    table.add_column("")
    for name in ("computed", "read", "written", f"{currency} / 1,000", "less", "first token", "less"):
        table.add_column(name, justify="right", no_wrap=True)
    for way in ways:
        row = [way.name, *(f"{count:,}" for count in (way.computed, way.read, way.written))]
        row += [f"{1000 * way.money / requests:.3f}", f"{less(ways[0].money, way.money):.0f} %"]
        row += [f"{1000 * way.first_token:.0f} ms", f"{less(ways[0].first_token, way.first_token):.0f} %"]
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default=os.environ.get("HOTPREFIX_URL", "http://127.0.0.1:8080"))
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help="whose prices to count with")
    parser.add_argument("--requests", type=int, default=12, help="of each way")
    parser.add_argument("--json", action="store_true", help="print JSON")
    wanted = parser.parse_args()
    if wanted.requests < 2:
        parser.error("--requests: at least 2, for the first one finds nothing in any cache")
    ways = [Way("stamp in front"), Way("fixed prefix"), Way("prefix, marked")]
    run = secrets.token_hex(4)
    for way in ways:
        # A key of its own for each: nothing is found that another way, or an earlier run, has left.
        key = os.environ.get("HOTPREFIX_API_KEY") or f"{way.name}-{run}".replace(" ", "-")
        client = OpenAI(base_url=f"{wanted.url}/v1", api_key=key)
        model = client.models.list().data[0].id
        price = price_of(load_profiles().get(wanted.profile), model, datetime.now(UTC).date())
        for number in range(wanted.requests):
            ask(client, model, way, number, price)
    if wanted.json:
        print(json.dumps(facts(ways), indent=2))
    else:
        show(ways, wanted.requests, price.currency)


if __name__ == "__main__":
    main()
