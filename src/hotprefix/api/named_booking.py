"""What making a named cache costs, and its row in the ledger."""

from __future__ import annotations

from dataclasses import replace

from starlette.types import Scope

from hotprefix.api.admittance import admission_of
from hotprefix.api.bill import Bill
from hotprefix.api.booking import booking_of, keep
from hotprefix.api.record import record_of
from hotprefix.api.service import Service
from hotprefix.diagnosis.explain import redacted
from hotprefix.diagnosis.reason import MissReport
from hotprefix.engine.request import FinishReason, Usage
from hotprefix.modes.doctor import Case
from hotprefix.modes.marker import Marker
from hotprefix.modes.named import Kept
from hotprefix.modes.turn import TurnRequest
from hotprefix.profiles.profile import ExplicitRules


class NamedBooking:
    """Bills the making of a named cache as the profile's vendor bills the making of a cache.

    That is a request with a marker on its last content block, to which nothing is answered. Where there are
    no explicit caches, or none for this model or so few tokens, it is a prompt like any other. No entry is
    written that requests with markers would find: the cache is held by its name.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def book(self, scope: Scope, request: TurnRequest, kept: Kept, status: int) -> None:
        """Waits until the row is stored."""
        service, record = self._service, record_of(scope)
        bill, report, case = self._billed(_marked(request, kept.cache.definition.ttl), kept.known)
        record.model, record.usage, record.notes = request.model, bill.usage, dict(request.notes)
        record.finish_reason = FinishReason.LENGTH
        if service.ledger is None:
            return
        admission = admission_of(scope)
        booking = booking_of(scope, record, request, admission.identity.key_id if admission else "")
        row = booking.row(bill, report, service.clock, FinishReason.LENGTH)
        row = replace(row, status=status)
        await keep(service.ledger, row)
        if service.recent is not None:
            service.recent.add(row, case)

    def _billed(self, request: TurnRequest, known: int) -> tuple[Bill, MissReport, Case]:
        caching, doctor = self._service.caching, self._service.doctor
        turn = caching.begin(request)
        caching.admitted(turn, known)
        bill = Bill(Usage(len(request.prompt.token_ids), known, 0), caching.expected(turn, known))
        case = doctor.open(turn)
        report = doctor.report(case, bill.classes)
        # Remembered for comparison with later prompts, and not as a write that nobody has read yet.
        doctor.close(case, None, ("", ()))
        return bill, redacted(report) if self._service.settings.redact else report, case


def _marked(turn: TurnRequest, ttl: float | None) -> TurnRequest:
    """With a marker at its end, if the vendor knows such a thing."""
    rules, spans = turn.profile.explicit, turn.prompt.spans
    if rules is None or not spans:
        return turn
    end = len(spans) - 1
    return replace(turn, markers=(Marker(end, _ttl_name(rules, ttl), spans[end].block.path),))


def _ttl_name(rules: ExplicitRules, ttl: float | None) -> str:
    """The vendor's shortest lifetime that is long enough, or its longest."""
    by_length = sorted(rules.ttls, key=lambda name: rules.ttls[name])
    enough = (name for name in by_length if ttl is not None and rules.ttls[name] >= ttl)
    return next(enough, by_length[-1])
