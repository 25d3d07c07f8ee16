"""Totals as JSON: every group keeps its name."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hotprefix.ledger.facts import usage_facts
from hotprefix.ledger.query import Dimension, Totals

GROUP = Totals("greeting", "USD", 2, 1, 300, 100, 200, 0, 0, 9, 0, Decimal("0.10"), Decimal(0), 0.5)


@pytest.mark.parametrize("by", Dimension)
def test_a_group_has_its_name_and_its_tokens(by: Dimension) -> None:
    [group] = usage_facts(by, [GROUP], [])["groups"]
    assert group["prompt_name" if by is Dimension.PROMPT else by.value] == "greeting"
    assert (group["prompt"], group["read"], group["money"]) == (300, 200, "0.1")
