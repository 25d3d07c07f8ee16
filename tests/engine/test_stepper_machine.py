"""Requests of every kind, aborted and failing at any moment, in arenas of any size.

After every step the books are right; in the end each request has ended once, nothing is held,
and what was answered is what an engine without a cache would have answered.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hotprefix.engine.request import FinishReason
from hotprefix.engine.settings import DecodeMode, EngineSettings
from tests.engine.fake_model import EOS
from tests.engine.tiers import Tiers
from tests.engine.worlds import LOWER, Answer, World

LONGEST = 28


class EngineMachine(RuleBasedStateMachine):
    """Submits, aborts, breaks and steps."""

    @initialize(
        blocks=st.integers(8, 24),
        granularity=st.sampled_from([1, 4]),
        policy=st.sampled_from(["lru", "slru", "adaptive", None]),
        decode=st.sampled_from(DecodeMode),
        chunk=st.sampled_from([1, 5, 16, 64]),
        running=st.sampled_from([2, 8, 128]),
        logits=st.sampled_from([0, 258 * 4 * 2, 1 << 20]),
        ram=st.sampled_from([0, 0, 3000, 1 << 20]),
    )
    def build(
        self,
        *,
        blocks: int,
        granularity: int,
        policy: str | None,
        decode: DecodeMode,
        chunk: int,
        running: int,
        logits: int,
        ram: int,
    ) -> None:
        self.world = World(
            blocks,
            granularity=granularity,
            settings=EngineSettings(
                policy=policy,
                decode=decode,
                prefill_chunk=chunk,
                mixed_chunk=max(1, chunk // 2),
                max_running=running,
                logits_bytes=logits,
            ),
            alphabet=[EOS, *LOWER[:12]],
            tiers=Tiers(ram) if ram else None,
        )
        self.broken: list[Answer] = []

    @rule(
        stem=st.sampled_from(["aaaaaaaa", "aaaabbbb", "bcbcbcbcbcbc", ""]),
        rest=st.text("ab", min_size=1, max_size=LONGEST - 12),
        max_tokens=st.one_of(st.none(), st.integers(1, 20)),
        n=st.sampled_from([1, 1, 1, 3]),
        tenant=st.sampled_from(["", "", "other"]),
    )
    def submit(self, stem: str, rest: str, max_tokens: int | None, n: int, tenant: str) -> None:
        self.world.submit(stem + rest, max_tokens, n=n, tenant=tenant)

    @precondition(lambda self: self.world.answers)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """The same prompt again, or the next turn of its conversation."""
        old = data.draw(st.sampled_from(self.world.answers))
        turn = [*old.request.prompt_ids, *old.tokens()]
        again = turn if len(turn) <= LONGEST and data.draw(st.booleans()) else old.request.prompt_ids
        self.world.submit(again, data.draw(st.integers(1, 9)), tenant=old.request.tenant)

    @precondition(lambda self: self.world.answers)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        answer = data.draw(st.sampled_from(self.world.answers))
        ended = answer.ended
        self.world.stepper.abort(answer.request.request_id)
        self.world.check()
        answer.check_ended_once()
        if not ended:
            self.broken.append(answer)

    @precondition(lambda self: not self.world.stepper.idle)
    @rule()
    def fail(self) -> None:
        """The model fails in the next step; the engine then ends what is in flight."""
        self.world.model.failures.append(RuntimeError("no luck"))
        try:
            self.world.stepper.step()
        except RuntimeError:
            self.broken += [answer for answer in self.world.answers if not answer.ended]
            self.world.stepper.end_all(FinishReason.ERROR, "sorry")
            self.world.check_nothing_leaked()
        self.world.model.failures.clear()
        self.world.check()

    @rule(count=st.integers(1, 12))
    def step(self, count: int) -> None:
        for _ in range(count):
            self.world.step()
            self.world.settle()

    @rule()
    def rest(self) -> None:
        """Nothing is asked for a while."""
        self.world.rest()

    @invariant()
    def settled(self) -> None:
        """Threads of tiers keep no time, and what is drawn next must be the same in every run."""
        if hasattr(self, "world"):
            self.world.settle()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.run()
        self.world.stepper.close()
        broken = {id(answer) for answer in self.broken}
        for answer in self.world.answers:
            expected = self.world.expected(answer)
            for index in range(answer.request.n):
                if id(answer) in broken:
                    assert answer.tokens(index) == expected[: len(answer.tokens(index))]
                else:
                    assert answer.tokens(index) == expected
                    assert answer.reason(index) in (FinishReason.STOP, FinishReason.LENGTH)


TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
