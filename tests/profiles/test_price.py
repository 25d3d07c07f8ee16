"""The row in force is found by model and day, and becomes exact decimals."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.errors import LogicError
from hotprefix.profiles.loader import load_profiles
from hotprefix.profiles.pattern import best_pattern, matches
from hotprefix.profiles.price import price_of, price_row
from hotprefix.profiles.profile import PriceRow, Profile

JANUARY, JULY = date(2031, 1, 1), date(2031, 7, 1)


def row(model: str, since: date, price: float) -> PriceRow:
    return PriceRow(model, since, "CNY", price, 2 * price, 0.2, 0.1, 0.1, {"5m": 1.25})


def profile(*rows: PriceRow) -> Profile:
    return replace(load_profiles().default, prices=rows)


def test_two_dated_rows_change_over_on_the_day() -> None:
    prices = profile(row("*", JANUARY, 4.0), row("*", JULY, 3.0))
    assert price_of(prices, "m", JULY - timedelta(days=1)).input == Decimal("0.000004")
    assert price_of(prices, "m", JULY).input == Decimal("0.000003")


def test_a_model_of_its_own_beats_a_pattern_and_a_longer_pattern_a_shorter() -> None:
    prices = profile(row("*", JULY, 1.0), row("qwen*", JANUARY, 2.0), row("qwen-plus*", JANUARY, 3.0),
                     row("qwen-plus", JANUARY, 4.0))  # fmt: skip
    found = [price_row(prices, name, JULY).input_per_million
             for name in ("llama", "qwen-max", "qwen-plus-x", "qwen-plus")]  # fmt: skip
    assert found == [1.0, 2.0, 3.0, 4.0]


def test_a_row_that_has_not_begun_leaves_the_fallback_in_force() -> None:
    prices = profile(row("*", JANUARY, 1.0), row("qwen*", JULY, 2.0))
    assert price_row(prices, "qwen-max", JANUARY).input_per_million == 1.0


def test_before_every_row_the_earliest_counts() -> None:
    prices = profile(row("*", JULY, 1.0), row("*", JANUARY, 2.0), row("qwen*", JANUARY, 3.0))
    assert price_row(prices, "llama", date(1970, 1, 1)).input_per_million == 2.0
    assert price_row(prices, "qwen-max", date(1970, 1, 1)).input_per_million == 3.0


def test_without_any_row_it_is_a_bug() -> None:
    with pytest.raises(LogicError, match="no price for m"):
        price_row(profile(), "m", JULY)


def test_prices_are_exact_where_floats_are_not() -> None:
    price = price_of(profile(row("*", JANUARY, 0.7)), "m", JULY)
    assert price.read_explicit * 1_000_000 == Decimal("0.07") != Decimal(0.7 * 0.1)
    assert price.write["5m"] * 1_000_000 == Decimal("0.875")
    assert price.output * 1_000_000 == Decimal("1.4")


def test_a_shipped_price_changes_on_its_day() -> None:
    book = load_profiles().get("anthropic-2026-09")
    day = date(2026, 10, 7)
    before = price_of(book, "claude-sonnet-5-5", day - timedelta(days=1))
    assert before.read_explicit == 2 * price_of(book, "claude-sonnet-5-5", day).read_explicit


@given(
    st.lists(st.text("ab", max_size=3).map(lambda text: text + "*"), max_size=6), st.text("ab", max_size=4)
)
def test_the_best_pattern_is_the_longest_that_matches(patterns: list[str], model: str) -> None:
    best = best_pattern(patterns, model)
    found = [pattern for pattern in patterns if matches(pattern, model)]
    assert (best is None) == (not found)
    assert best is None or len(best) == max(map(len, found))
