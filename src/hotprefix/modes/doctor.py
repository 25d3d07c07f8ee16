"""Says of every request why the cache gave no more: gathers the facts, remembers the prompt."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.diagnosis.compare import Comparison
from hotprefix.diagnosis.explain import explain
from hotprefix.diagnosis.facts import CacheRules, EngineFacts, Eviction, MarkerFacts, MissFacts, StoreFacts
from hotprefix.diagnosis.finding import comparison_of
from hotprefix.diagnosis.marker_rules import MANY_WRITES, marker_stays
from hotprefix.diagnosis.memory import SnapshotMemory
from hotprefix.diagnosis.reason import MissReport
from hotprefix.diagnosis.snapshot import PromptSnapshot
from hotprefix.kv.accounts import Outcome
from hotprefix.modes.caching import Caching
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.modes.entries import Tombstone
from hotprefix.modes.turn import Turn
from hotprefix.profiles.price import Price, price_of

_COUNTED = 10_000
"""Tenants whose writes without a read, and conversations whose markers that stay, are counted."""


@dataclass(frozen=True, slots=True)
class Case:
    """One request under examination: itself, the earlier one it resembles, and what stood in the way.

    `stayed` counts the requests in a row, up to this one, whose last marker was at the same place while the
    conversation grew. `keys` are those of its markers' entries, `block_keys` those of its full blocks;
    `arrived` is the moment, by the log of evictions, at which it had not yet asked for any; `gone` is the
    longest of its entries that can't be read any more.
    """

    turn: Turn
    snapshot: PromptSnapshot
    earlier: PromptSnapshot | None
    keys: tuple[BlockKey, ...]
    is_write_pending: bool
    block_keys: Sequence[BlockKey]
    arrived: int
    comparison: Comparison
    gone: Tombstone | None
    stayed: int = 1


class Doctor:
    """Used on the event loop only. `evictions` tells which blocks had to make room; `disabled` names
    a cache that is switched off."""

    def __init__(
        self,
        memory: SnapshotMemory,
        caching: Caching,
        clock: Clock,
        evictions: EvictionLog,
        disabled: str = "",
    ) -> None:
        self._memory = memory
        self._caching = caching
        self._clock = clock
        self._evictions = evictions
        self._disabled = disabled
        self._writing: Counter[BlockKey] = Counter()
        self._unread: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._stayed: OrderedDict[tuple[str, str, bytes], int] = OrderedDict()

    @property
    def moment(self) -> int:
        """Now, for `open`: to be noted before a request is handed to the engine."""
        return self._evictions.moment

    def open(self, turn: Turn, arrived: int | None = None) -> Case:
        """Look at a request while it is computed; it `arrived` at that moment, or now. Every case has to
        be closed."""
        request, arrived = turn.request, self.moment if arrived is None else arrived
        imprint = request.imprint or self._caching.imprint(request)
        snapshot = replace(
            imprint.snapshot,
            markers=tuple(sorted({marker.block for marker in turn.markers})),
            scene=request.scene,
            at=self._clock.now(),
        )
        keys = tuple(self._caching.marker_keys(turn))
        pending = any(self._writing[key] for key in keys)
        self._writing.update(keys)
        earlier = self._memory.nearest(request.cache_tenant, snapshot)
        compared = comparison_of(MissFacts(snapshot, earlier, turn.mode.value, None, _rules(turn)))
        stones = (self._caching.gone(key) for key in reversed(keys))
        gone = next((stone for stone in stones if stone is not None), None)
        stays = turn.mode is Mode.EXPLICIT and earlier is not None and marker_stays(earlier, snapshot)
        stayed = self._stayed.get(_talk(turn, snapshot), 1) + 1 if stays else 1
        return Case(
            turn, snapshot, earlier, keys, pending, imprint.block_keys, arrived, compared, gone, stayed
        )

    def report(self, case: Case, classes: TokenClasses) -> MissReport:
        """The reason, by what the request was billed as reading."""
        return explain(self.facts(case, classes))

    def facts(self, case: Case, classes: TokenClasses) -> MissFacts:
        """All that the reason rests on."""
        turn, price = case.turn, self._price(case.turn)
        store, known = self._store(case, classes.read)
        return MissFacts(
            snapshot=case.snapshot,
            earlier=case.earlier,
            mode=turn.mode.value,
            matched=classes.read,
            rules=_rules(turn),
            markers=self._markers(case),
            store=store,
            engine=EngineFacts(disabled=self._disabled),
            known=known,
            money_per_million=float((price.input - _read_price(price, turn.mode)) * 1_000_000),
            comparison=case.comparison,
        )

    def currency(self, turn: Turn) -> str:
        """What the losses of a turn are counted in."""
        return self._price(turn).currency

    def close(self, case: Case, classes: TokenClasses | None, answer: tuple[str, Sequence[int]]) -> None:
        """The request has ended; what it wrote and what it said is remembered. Without `classes` it
        was cancelled, and only its prompt is."""
        self._writing.subtract(case.keys)
        for key in case.keys:
            if self._writing[key] <= 0:
                del self._writing[key]
        snapshot = case.snapshot
        if classes is not None:
            snapshot = snapshot.answered(*answer)
            self._count_unread(case.turn, classes)
            self._count_stayed(case)
        expires = {
            marker.block: entry.expires
            for marker, key in zip(case.turn.markers, case.keys, strict=True)
            if (entry := self._caching.book.find(key, self._clock.now())) is not None
        }
        self._memory.remember(case.turn.request.cache_tenant, snapshot.written(expires))

    def _markers(self, case: Case) -> MarkerFacts:
        turn = case.turn
        rules, counted = turn.request.profile.explicit, {marker.path for marker in turn.markers}
        ignored: tuple[str, ...] = ()
        if turn.mode is Mode.EXPLICIT:
            ignored = tuple(marker.path for marker in turn.request.markers if marker.path not in counted)
        both = turn.request.session and bool(turn.request.markers)
        return MarkerFacts(
            ignored=ignored,
            most=rules.max_markers if rules is not None else 0,
            missing=turn.short_by or None,
            writes_unread=self._unread.get((turn.request.tenant, turn.request.scene), 0),
            is_frozen=case.stayed >= MANY_WRITES and _behind(case) >= _rules(turn).minimum,
            is_needed=turn.request.profile.implicit is None and not turn.request.markers,
            is_unsupported=turn.markers_ignored,
            conflict="explicit/session" if both else "",
        )

    def _store(self, case: Case, matched: int) -> tuple[StoreFacts, int]:
        """What the logs say, and how many tokens of the prompt they know to have been cached."""
        gone = case.gone  # by now it may be written anew
        is_lost = case.turn.hit_lost or (gone is not None and gone.cause == "evicted")
        evicted, known = (Eviction.CAPACITY, 0) if is_lost else self._evicted(case, matched)
        expired = gone is not None and gone.cause == "expired"
        facts = StoreFacts(
            expired_for=self._clock.now() - gone.expired if gone is not None and expired else None,
            ttl=_ttl(case.turn) if expired else None,
            evicted=evicted,
            may_be_evicted=case.turn.mode is Mode.IMPLICIT and not self._evictions.is_complete,
            is_write_pending=case.is_write_pending,
            is_pin_failed=case.turn.pin_failed,
            is_lost_at_restart=gone is not None and gone.cause == "restart",
        )
        return facts, known

    def _evicted(self, case: Case, matched: int) -> tuple[Eviction | None, int]:
        """Why the first missing blocks of an implicit prefix are not there, and where they end in tokens."""
        cause: Outcome | None = None
        known, size = 0, self._caching.block_size
        if case.turn.mode is not Mode.IMPLICIT or not len(self._evictions):
            return None, 0
        for number in range(matched // size, len(case.block_keys)):
            found = self._evictions.cause(case.block_keys[number], case.arrived)
            if found is not None:
                cause, known = cause or found, (number + 1) * size
            elif cause is not None:
                break
        if cause is None:
            return None, 0
        return Eviction.CAPACITY if cause is Outcome.CAPACITY else Eviction.TENANT_QUOTA, known

    def _count_unread(self, turn: Turn, classes: TokenClasses) -> None:
        if turn.mode is not Mode.EXPLICIT:
            return
        name = (turn.request.tenant, turn.request.scene)
        writes = 0 if classes.read else self._unread.pop(name, 0) + bool(classes.write_total)
        self._unread[name] = writes
        self._unread.move_to_end(name)
        if len(self._unread) > _COUNTED:
            self._unread.popitem(last=False)

    def _count_stayed(self, case: Case) -> None:
        name = _talk(case.turn, case.snapshot)
        self._stayed.pop(name, None)
        if case.stayed > 1:
            self._stayed[name] = case.stayed
        if len(self._stayed) > _COUNTED:
            self._stayed.popitem(last=False)

    def _price(self, turn: Turn) -> Price:
        day = datetime.fromtimestamp(self._clock.wall(), UTC).date()
        return price_of(turn.request.profile, turn.request.model, day)


def _talk(turn: Turn, snapshot: PromptSnapshot) -> tuple[str, str, bytes]:
    """Whose conversation it is, by how it begins."""
    return turn.request.cache_tenant, turn.request.scene, snapshot.blocks[0].body.digest


def _behind(case: Case) -> int:
    """Tokens that the earlier prompt had behind the marker that stays."""
    if case.earlier is None:
        return 0
    return case.earlier.tokens - case.snapshot.blocks[case.snapshot.markers[-1]].end_token


def _rules(turn: Turn) -> CacheRules:
    profile, model = turn.request.profile, turn.request.model
    explicit, implicit = profile.explicit, profile.implicit
    if turn.mode is Mode.EXPLICIT and explicit is not None:
        return CacheRules(
            minimum=explicit.minimum_for(model),
            lookback=explicit.lookback,
            lookback_counts_marker=explicit.lookback_counts_marker,
        )
    if turn.mode is Mode.SESSION and profile.session is not None:
        return CacheRules(minimum=profile.session.minimum)
    if implicit is not None:
        return CacheRules(minimum=implicit.minimum_for(model), quantum=implicit.quantum)
    return CacheRules()


def _read_price(price: Price, mode: Mode) -> Decimal:
    match mode:
        case Mode.EXPLICIT:
            return price.read_explicit
        case Mode.SESSION:
            return price.read_session
        case _:
            return price.read_implicit


def _ttl(turn: Turn) -> float | None:
    profile = turn.request.profile
    if turn.mode is Mode.SESSION and profile.session is not None:
        return profile.session.ttl_seconds
    if profile.explicit is not None and turn.markers:
        return profile.explicit.ttls.get(turn.markers[-1].ttl)
    return None
