"""How a strategy is written."""

from __future__ import annotations

import pytest

from hotprefix.engine.strategy.choice import StrategyChoice, StrategyName, parse_choice


@pytest.mark.parametrize(
    "text,choice",
    [
        ("static", StrategyChoice(StrategyName.STATIC)),
        (" Dynamic ", StrategyChoice(StrategyName.DYNAMIC)),
        ("window; window=768", StrategyChoice(StrategyName.WINDOW, window=768)),
        ("window;sinks=0;keys=0.1", StrategyChoice(StrategyName.WINDOW, sinks=0, keys=0.1)),
        ("mixed; recent=128", StrategyChoice(StrategyName.MIXED, recent=128)),
        ("window; pin=none", StrategyChoice(StrategyName.WINDOW, pins_system=False)),
        ("window; pin=system,120-340", StrategyChoice(StrategyName.WINDOW, pins=((120, 340),))),
        ("window; pin=50", StrategyChoice(StrategyName.WINDOW, pins=((0, 50),), pins_system=False)),
    ],
)
def test_what_can_be_asked(text: str, choice: StrategyChoice) -> None:
    assert parse_choice(text) == choice


@pytest.mark.parametrize(
    "text,reason",
    [
        ("", "is no strategy; there are static, dynamic, window, mixed"),
        ("windows", "'windows' is no strategy"),
        ("window; window", "'window' is none of window=…"),
        ("window; size=3", "'size=3' is none of"),
        ("window; window=-1", "window: '-1' is no number of tokens"),
        ("window; sinks=1e3", "sinks: '1e3' is no number"),
        ("window; keys=2", "keys: '2' is no share"),
        ("window; keys=nan", "keys: 'nan' is no share"),
        ("window; pin=9-9", "pin: '9-9' has no tokens"),
        ("window; pin=a-b", "pin: 'a' is no number"),
        ("window; pin=" + ",".join(["1-2"] * 65), "at most 64 spans"),
        ("window; window=99999999999", "is no number of tokens"),
    ],
)
def test_what_can_not(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_choice(text)
