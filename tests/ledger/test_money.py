"""Money is exact, and a token that is counted twice is found out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.errors import LogicError
from hotprefix.ledger.columns import from_pico, to_pico
from hotprefix.ledger.money import amount, bill, day_of
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.profiles.loader import load_profiles
from hotprefix.profiles.price import price_of
from hotprefix.profiles.profile import PriceRow

BOOK = load_profiles()
TOKENS = st.integers(0, 10**7)
NEW_PRICES = date(2031, 7, 1)


def cny(model_input: float, since: date) -> PriceRow:
    return PriceRow("*", since, "CNY", model_input, 2.5 * model_input, 0.2, 0.1, 0.1, {"5m": 1.25})


TWO_ROWS = replace(BOOK.default, prices=(cny(0.8, date(2031, 1, 1)), cny(0.6, NEW_PRICES)))
BEFORE = datetime(2031, 6, 30, 23, 59, 59, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("classes", "old", "new"),
    [
        # create: 1,200 at 125 % and 50 at 100 %
        (TokenClasses(Mode.EXPLICIT, 50, 0, {"5m": 1200}, output=100), "0.00144", "0.00108"),
        # explicit hit: 1,200 at 10 %, 300 more at 125 %
        (TokenClasses(Mode.EXPLICIT, 50, 1200, {"5m": 300}, output=100), "0.000636", "0.000477"),
        # session hit: 10 %
        (TokenClasses(Mode.SESSION, 50, 1200, output=100), "0.000336", "0.000252"),
        # implicit hit: 20 %
        (TokenClasses(Mode.IMPLICIT, 50, 1200, output=100), "0.000432", "0.000324"),
        # nothing cached, something free
        (TokenClasses(Mode.NONE, 1000, 0, free=250), "0.0008", "0.0006"),
    ],
)
def test_t30_exact_amounts_under_two_dated_rows(classes: TokenClasses, old: str, new: str) -> None:
    assert bill(classes, classes.prompt, TWO_ROWS, "m", BEFORE) == Decimal(old)
    assert bill(classes, classes.prompt, TWO_ROWS, "m", BEFORE + 1) == Decimal(new)


def test_t31_the_bill_that_others_got_wrong() -> None:
    """172,000 in, of which 155,000 read and 3,000 written, at 5, 0.5 and 6.25 per million."""
    classes = TokenClasses(Mode.EXPLICIT, computed=14_000, read=155_000, written={"5m": 3_000})
    price = price_of(BOOK.get("anthropic-2026-09"), "claude-opus-4-6", NEW_PRICES)
    assert (price.input, price.read_explicit, price.write["5m"]) == (
        Decimal("0.000005"), Decimal("0.0000005"), Decimal("0.00000625"))  # fmt: skip
    assert amount(classes, 172_000, price) == Decimal("0.16625")


def test_t31_naive_double_counting_fails_the_invariant() -> None:
    naive = TokenClasses(Mode.EXPLICIT, computed=172_000, read=155_000, written={"5m": 3_000})
    price = price_of(BOOK.get("anthropic-2026-09"), "claude-opus-4-6", NEW_PRICES)
    with pytest.raises(LogicError, match="330000 tokens, but the prompt has 172000"):
        amount(naive, 172_000, price)


def test_a_write_for_an_unknown_ttl_is_a_bug() -> None:
    classes = TokenClasses(Mode.EXPLICIT, 0, 0, {"1d": 5})
    with pytest.raises(LogicError, match="'1d'"):
        bill(classes, 5, TWO_ROWS, "m", BEFORE)


def test_reading_without_a_cache_is_a_bug() -> None:
    with pytest.raises(LogicError, match="no cache was in use"):
        bill(TokenClasses(Mode.NONE, 0, 5), 5, TWO_ROWS, "m", BEFORE)


@given(TOKENS, TOKENS, TOKENS, TOKENS, st.sampled_from([Mode.IMPLICIT, Mode.EXPLICIT, Mode.SESSION]))
def test_splitting_a_request_changes_nothing(
    computed: int, read: int, written: int, out: int, mode: Mode
) -> None:
    """Shipped prices divide into whole pico-units, so bills add up to the last digit."""
    classes = TokenClasses(mode, computed, read, {"5m": written}, output=out)
    price = price_of(BOOK.default, "qwen-flash", NEW_PRICES)
    parts = [
        TokenClasses(mode, computed, 0),
        TokenClasses(mode, 0, read),
        TokenClasses(mode, 0, 0, {"5m": written}),
        TokenClasses(mode, 0, 0, output=out),
    ]
    assert amount(classes, classes.prompt, price) == sum(amount(part, part.prompt, price) for part in parts)


@given(st.integers(0, 2**63 - 1))
def test_pico_units_are_money_without_loss(pico: int) -> None:
    assert to_pico(from_pico(pico)) == pico


def test_days_are_utc() -> None:
    assert day_of(1_774_310_399.9) == date(2026, 3, 23)
    assert day_of(1_774_310_400.0) == date(2026, 3, 24)
