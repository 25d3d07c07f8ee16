"""What goes into the ledger when a request has ended."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from uuid import uuid4

from starlette.datastructures import Headers
from starlette.types import Scope

from hotprefix.api.bill import Bill
from hotprefix.api.record import Record
from hotprefix.base.clock import Clock
from hotprefix.diagnosis.reason import MissReport
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.money import bill as money_of
from hotprefix.ledger.money import day_of
from hotprefix.ledger.row import LedgerRow
from hotprefix.modes.turn import TurnRequest
from hotprefix.profiles.price import price_row

_PROMPT_HEADER = "x-hotprefix-prompt"
_LOOKS, _LOOK_SECONDS = 25, 0.2
"""How long an answer waits for a ledger that does not say what is wrong, and how often it looks."""
_NAME = re.compile(r"([A-Za-z0-9][\w.-]{0,63})(?:@([\w.-]{1,32}))?")


@dataclass(frozen=True, slots=True)
class Booking:
    """One request's line in the ledger, as far as it is known from the start."""

    record: Record
    request: TurnRequest
    key_id: str
    prompt_name: str
    prompt_version: str

    def row(self, bill: Bill, report: MissReport, clock: Clock, finish: str) -> LedgerRow:
        """The finished line. Its id is new: clients may use a request id twice."""
        request, at, now = self.request, clock.wall(), clock.now()
        first = self.record.first_token
        price = price_row(request.profile, request.model, day_of(at))
        money = money_of(bill.classes, bill.usage.prompt_tokens, request.profile, request.model, at)
        return LedgerRow(
            request_id=f"{self.record.request_id}-{uuid4().hex[:12]}",
            at=at,
            tenant=request.tenant,
            key_id=self.key_id,
            model=request.model,
            dialect=self.record.path,
            profile=request.profile.name,
            scene=request.scene,
            prompt_name=self.prompt_name,
            prompt_version=self.prompt_version,
            classes=bill.classes,
            report=report,
            money=money,
            currency=price.currency,
            first_token=first - self.record.started if first is not None else None,
            total=now - self.record.started,
            status=self.record.status or 200,
            finish=finish,
        )


def booking_of(scope: Scope, record: Record, request: TurnRequest, key_id: str) -> Booking:
    """`x-hotprefix-prompt: name@version` tells which prompt of the client's this is."""
    named = _NAME.fullmatch(Headers(scope=scope).get(_PROMPT_HEADER, ""))
    name, version = (named[1], named[2] or "") if named else ("", "")
    return Booking(record, request, key_id, name, version)


async def keep(ledger: Ledger, row: LedgerRow) -> None:
    """Wait until the row is stored: what a client was told is in the ledger, whatever happens next.

    Unless the ledger is in trouble. Then the row waits alone: an answer is worth more than its bookkeeping,
    and the ledger has told of it.
    """
    stored = asyncio.wrap_future(ledger.record_durably(row))
    stored.add_done_callback(_seen)
    for _ in range(_LOOKS):
        done, _ = await asyncio.wait([stored], timeout=_LOOK_SECONDS)
        if done or ledger.is_failing:
            return


def _seen(stored: asyncio.Future[None]) -> None:
    if not stored.cancelled():
        stored.exception()
