"""Ledger rows for tests."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from hotprefix.diagnosis.reason import Divergence, Evidence, MissReport, Reason
from hotprefix.ledger.row import LedgerRow
from hotprefix.modes.classes import Mode, TokenClasses

REPORT = MissReport(
    reason=Reason.SYSTEM_CHANGED,
    detail="VOLATILE_TIME",
    matched=40,
    ideal=90,
    lost_tokens=50,
    lost_money=0.000036,
    avoidable=True,
    evidence=Evidence.BYTES,
    divergence=Divergence("messages[0].content", 0, 12, "10:00:01", "10:00:02"),
    advice_en="Move the time behind the fixed text.",
    advice_zh="把时间移到固定文本之后。",
)
ROW = LedgerRow(
    request_id="req-0",
    at=1_774_310_400.0,  # 2026-03-24T00:00:00Z
    tenant="acme",
    key_id="k1",
    model="smollm2",
    dialect="openai",
    profile="dashscope-2026-03",
    scene="support",
    prompt_name="greeting",
    prompt_version="3",
    classes=TokenClasses(Mode.EXPLICIT, computed=10, read=40, written={"5m": 50}, free=0, output=7),
    report=REPORT,
    money=Decimal("0.0000752"),
    currency="CNY",
    first_token=0.25,
    total=1.5,
    status=200,
    finish="stop",
)


def row(number: int, **changes: object) -> LedgerRow:
    """A row with an id of its own, like ROW but for `changes`."""
    return replace(ROW, request_id=f"req-{number}", **changes)  # type: ignore[arg-type]
