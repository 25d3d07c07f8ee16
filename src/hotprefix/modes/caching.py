"""The caches' side of a request: `begin` says what it may read, `finish` writes and bills."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.keys.chain import TokenHistory
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.modes.entries import Entry, EntryBook, Tombstone
from hotprefix.modes.imprint import Imprint, take_imprint
from hotprefix.modes.marker import Marker
from hotprefix.modes.pinner import Pinner
from hotprefix.modes.rules import effective_markers, lookback_blocks, supports_explicit
from hotprefix.modes.turn import Turn, TurnRequest
from hotprefix.profiles.profile import ExplicitRules, Readable, SessionRules

_SESSION_TTL = "session"


class Caching:
    """Explicit and session entries over the engine's prefix tree. Used on the event loop only.

    An entry is a record here and a pin in the arena. What is *reported* follows the profile; what
    is reused underneath is whatever the tree has, so a request is never slower for its mode.
    """

    def __init__(self, book: EntryBook, pinner: Pinner, clock: Clock, block_size: int) -> None:
        self.book = book
        self._pinner = pinner
        self._clock = clock
        self._block_size = block_size

    def begin(self, request: TurnRequest) -> Turn:
        """Choose the mode and find the hit; a hit renews its entry.

        Raises `InvalidRequest` for markers that the profile refuses.
        """
        self.sweep()
        mode = Mode.IMPLICIT if request.profile.implicit else Mode.NONE
        turn = Turn(request, mode, 0, warnings=list(request.warnings))
        if request.session and request.profile.session is not None:
            self._begin_session(turn, request.profile.session)
        elif request.markers:
            self._begin_explicit(turn)
        return turn

    def admitted(self, turn: Turn, reused: int) -> None:
        """The engine has told what it had of the prompt: a hit whose blocks have gone is none.

        Requests that find no other room take the blocks of pins. Up to a block's worth is always
        computed anew, so a hit counts as real within a block.
        """
        while turn.hit > reused + self._block_size:
            entry = self._entry_of_hit(turn)
            if entry is not None:
                self._pinner.unpin(self.book.drop(entry, "evicted").pin)
            before, turn.hit, turn.hit_lost = turn.hit, 0, True
            self._find_again(turn, before)

    async def first_output(self, turn: Turn) -> None:
        """The first token is there: entries of vendors that make them readable now are written."""
        rules = request_rules(turn)
        if rules is not None and rules.readable is Readable.AT_FIRST_OUTPUT:
            await self._write(turn)

    async def finish(self, turn: Turn, reused: int, output: int) -> TokenClasses:
        """The answer is complete: write what is to be written and say which token is billed how.

        `reused` prompt tokens were not computed, in truth; `output` were drawn.
        """
        total = len(turn.request.prompt.token_ids)
        if turn.mode is Mode.IMPLICIT:
            hit = self._implicit_hit(turn, reused)
            return TokenClasses(Mode.IMPLICIT, total - hit, hit, output=output)
        if turn.mode is Mode.NONE:
            return TokenClasses(Mode.NONE, total, 0, output=output)
        await self._hold_again(turn)
        await self._complete(turn)
        await self._write(turn)
        written = {ttl: count for ttl, count in turn.written.items() if count}
        computed = total - turn.hit - sum(written.values())
        return TokenClasses(turn.mode, computed, turn.hit, written, output=output)

    def expected(self, turn: Turn, reused: int) -> TokenClasses:
        """What `finish` will say if all goes well, before anything was drawn."""
        total = len(turn.request.prompt.token_ids)
        if turn.mode in (Mode.NONE, Mode.IMPLICIT) or turn.is_written:
            return self.cancelled(turn, reused, 0)
        written: dict[str, int] = {}
        done = turn.hit
        for marker in turn.markers:
            tokens = turn.request.prompt.spans[marker.block].end_token
            if tokens >= turn.minimum and tokens > done:
                name = _billed_ttl(turn, marker)
                written[name] = written.get(name, 0) + tokens - done
                done = tokens
        return TokenClasses(turn.mode, total - turn.hit - sum(written.values()), turn.hit, written)

    def cancelled(self, turn: Turn, reused: int, output: int) -> TokenClasses:
        """The request ended early: nothing is written that was not written already."""
        total = len(turn.request.prompt.token_ids)
        hit = self._implicit_hit(turn, reused) if turn.mode is Mode.IMPLICIT else turn.hit
        written = {ttl: count for ttl, count in turn.written.items() if count}
        return TokenClasses(turn.mode, total - hit - sum(written.values()), hit, written, output=output)

    def marker_keys(self, turn: Turn) -> list[BlockKey]:
        """The keys that the entries of a turn's markers have, in their order."""
        if not turn.markers:
            return []
        history, spans = self._history(turn.request), turn.request.prompt.spans
        return [history.key_at(spans[marker.block].end_token) for marker in turn.markers]

    @property
    def block_size(self) -> int:
        """Tokens in a block of the engine."""
        return self._block_size

    def imprint(self, request: TurnRequest) -> Imprint:
        """For requests that come without one."""
        prompt, tenant = request.prompt, request.cache_tenant
        return take_imprint(self, tenant, request.model, prompt, request.tools, request.parameters)

    def root_for(self, tenant: str) -> BlockKey:
        """The root of a tenant's keys."""
        return self._pinner.root_for(tenant)

    def history(self, tenant: str, token_ids: Sequence[int]) -> TokenHistory:
        """The tokens with the keys of a tenant's own blocks."""
        return TokenHistory(self.root_for(tenant), token_ids, self._block_size)

    def gone(self, key: BlockKey) -> Tombstone | None:
        """What became of an entry that can't be read any more."""
        return self.book.gone(key, self._clock.now())

    def sweep(self) -> None:
        """Let go of what has expired."""
        for entry in self.book.sweep(self._clock.now()):
            self._pinner.unpin(entry.pin)

    def _history(self, request: TurnRequest) -> TokenHistory:
        root, imprint = self._pinner.root_for(request.cache_tenant), request.imprint
        if imprint is not None and imprint.history.root == root:
            return imprint.history
        return TokenHistory(root, request.prompt.token_ids, self._block_size)

    def _begin_explicit(self, turn: Turn) -> None:
        request, rules = turn.request, turn.request.profile.explicit
        if rules is None or not supports_explicit(request.profile, request.model):
            turn.warnings.append(f"cache_control has no effect for the model {request.model}")
            turn.markers_ignored = True
            return
        turn.mode = Mode.EXPLICIT
        turn.markers = effective_markers(rules, request.markers, turn.warnings)
        candidates = {block for marker in turn.markers for block in lookback_blocks(rules, marker)}
        self._find(turn, sorted(candidates, reverse=True))
        turn.minimum = rules.minimum_for(request.model)

    def _begin_session(self, turn: Turn, rules: SessionRules) -> None:
        spans = turn.request.prompt.spans
        turn.mode = Mode.SESSION
        turn.minimum = rules.minimum
        if turn.request.markers:
            turn.warnings.append("cache_control has no effect beside the session cache")
        if spans:
            turn.markers = (Marker(len(spans) - 1, _SESSION_TTL, spans[-1].block.path),)
            self._find(turn, range(len(spans) - 1, -1, -1))

    def _find(self, turn: Turn, blocks: list[int] | range) -> None:
        request, now = turn.request, self._clock.now()
        history = self._history(request)
        for block in blocks:
            tokens = request.prompt.spans[block].end_token
            entry = self.book.find(history.key_at(tokens), now)
            if entry is not None:
                self.book.renew(entry, now)
                turn.hit = tokens
                return

    def _find_again(self, turn: Turn, below: int) -> None:
        """The longest entry with fewer than `below` tokens, under the rules of the turn's mode."""
        request, rules = turn.request, turn.request.profile.explicit
        blocks = set(range(len(request.prompt.spans)))
        if turn.mode is Mode.EXPLICIT and rules is not None:
            blocks = {block for marker in turn.markers for block in lookback_blocks(rules, marker)}
        shorter = [block for block in blocks if request.prompt.spans[block].end_token < below]
        self._find(turn, sorted(shorter, reverse=True))

    async def _write(self, turn: Turn) -> None:
        """Write an entry for every marker that is long enough; at most once for a turn."""
        if turn.is_written:
            return
        turn.is_written = True
        request = turn.request
        done = turn.hit
        history = self._history(request)
        for marker in turn.markers:
            tokens = request.prompt.spans[marker.block].end_token
            if tokens < turn.minimum:
                # Only if no marker is long enough: the one that lacks least is told of.
                turn.short_by = turn.minimum - tokens
                continue
            turn.short_by = 0
            key = history.key_at(tokens)
            if self._is_known(turn, marker, key, tokens):
                # Written meanwhile by an identical request, whose blocks this one waited for.
                turn.hit = max(turn.hit, tokens) if not turn.written else turn.hit
                done = max(done, tokens)
            elif await self._keep(turn, marker, key, tokens) and tokens > done:
                name = _billed_ttl(turn, marker)
                turn.written[name] = turn.written.get(name, 0) + tokens - done
                done = tokens

    def _is_known(self, turn: Turn, marker: Marker, key: BlockKey, tokens: int) -> bool:
        now = self._clock.now()
        known = self.book.find(key, now)
        if known is None:
            return False
        ttl = self._ttl(turn, marker)
        self.book.add(Entry(key, turn.request.cache_tenant, tokens, ttl, now + ttl, known.pin))
        return True

    async def _keep(self, turn: Turn, marker: Marker, key: BlockKey, tokens: int) -> bool:
        request, now = turn.request, self._clock.now()
        ttl = self._ttl(turn, marker)
        pin = f"entry-{uuid4().hex}"
        if not await self._hold(turn, pin, tokens):
            turn.pin_failed = True
            return False
        for gone in self.book.add(Entry(key, request.cache_tenant, tokens, ttl, now + ttl, pin)):
            self._pinner.unpin(gone.pin)
        return True

    async def _hold(self, turn: Turn, pin: str, tokens: int) -> bool:
        """Pin a prefix. While its answer is drawn, the last block of a prompt can't be shared yet: entries
        that are written so early hold whole blocks until `_complete`."""
        request, rules = turn.request, request_rules(turn)
        ids = request.prompt.token_ids
        if await self._pinner.pin(pin, request.cache_tenant, ids[:tokens]):
            return True
        whole = tokens - tokens % self._block_size
        if rules is None or rules.readable is not Readable.AT_FIRST_OUTPUT or not whole:
            return False
        return await self._pinner.pin(pin, request.cache_tenant, ids[:whole]) > 0

    async def _hold_again(self, turn: Turn) -> None:
        """Pin the hit's entry if it came from an earlier process: now its blocks are in the arena."""
        entry = self._entry_of_hit(turn)
        if entry is not None and not entry.pin:
            pin = f"entry-{uuid4().hex}"
            if await self._hold(turn, pin, turn.hit):
                entry.pin = pin

    def _entry_of_hit(self, turn: Turn) -> Entry | None:
        if not turn.hit:
            return None
        return self.book.find(self._history(turn.request).key_at(turn.hit), self._clock.now())

    async def _complete(self, turn: Turn) -> None:
        """Let the entries of an answer that has ended hold their last blocks too."""
        if not turn.is_written or request_rules(turn) is None:
            return
        request, history, now = turn.request, self._history(turn.request), self._clock.now()
        for marker in turn.markers:
            tokens = request.prompt.spans[marker.block].end_token
            entry = self.book.find(history.key_at(tokens), now)
            if entry is not None and entry.pin and tokens % self._block_size:
                await self._pinner.pin(entry.pin, request.cache_tenant, request.prompt.token_ids[:tokens])

    def _ttl(self, turn: Turn, marker: Marker) -> float:
        profile = turn.request.profile
        if turn.mode is Mode.SESSION and profile.session is not None:
            return profile.session.ttl_seconds
        return profile.explicit.ttls[marker.ttl] if profile.explicit is not None else 0.0

    @staticmethod
    def _implicit_hit(turn: Turn, reused: int) -> int:
        rules = turn.request.profile.implicit
        if rules is None or reused < rules.minimum_for(turn.request.model):
            return 0
        return reused - reused % rules.quantum


def _billed_ttl(turn: Turn, marker: Marker) -> str:
    return marker.ttl if turn.mode is Mode.EXPLICIT else "5m"


def request_rules(turn: Turn) -> ExplicitRules | None:
    """The explicit rules, if this turn is under them."""
    return turn.request.profile.explicit if turn.mode is Mode.EXPLICIT else None
