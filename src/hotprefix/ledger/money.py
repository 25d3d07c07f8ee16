"""From token classes to an amount of money, in exact decimals."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from hotprefix.base.errors import LogicError
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.profiles.price import Price, price_of
from hotprefix.profiles.profile import Profile

PICO = Decimal("0.000000000001")
"""The ledger's smallest unit. Amounts are exact to it."""


def bill(classes: TokenClasses, prompt: int, profile: Profile, model: str, at: float) -> Decimal:
    """Money for a request at Unix time `at`; `prompt` is the prompt's length as the tokenizer counts it."""
    return amount(classes, prompt, price_of(profile, model, day_of(at)))


def amount(classes: TokenClasses, prompt: int, price: Price) -> Decimal:
    """Money in `price.currency`, rounded to a pico-unit.

    LogicError if the classes don't add up to `prompt`: then a token is in two classes or in none.
    """
    if classes.prompt != prompt:
        raise LogicError(
            f"{classes.computed} computed + {classes.read} read + {classes.write_total} written + "
            f"{classes.free} free = {classes.prompt} tokens, but the prompt has {prompt}"
        )
    total = classes.computed * price.input + classes.output * price.output
    if classes.read:
        total += classes.read * read_price(price, classes.mode)
    for ttl, tokens in classes.written.items():
        total += tokens * _write_price(price, ttl)
    return total.quantize(PICO)


def read_price(price: Price, mode: Mode) -> Decimal:
    """Money for a token read through the cache of `mode`."""
    match mode:
        case Mode.IMPLICIT:
            return price.read_implicit
        case Mode.EXPLICIT:
            return price.read_explicit
        case Mode.SESSION:
            return price.read_session
        case Mode.NONE:
            raise LogicError("tokens were read from a cache, but no cache was in use")


def day_of(at: float) -> date:
    """The day (UTC) of a Unix time."""
    return datetime.fromtimestamp(at, UTC).date()


def _write_price(price: Price, ttl: str) -> Decimal:
    if ttl not in price.write:
        raise LogicError(f"tokens were written for {ttl!r}, which the price table does not know")
    return price.write[ttl]
