"""Requests with every strategy, aborted and failing at any moment, in arenas of any size.

After every step the books are right, nobody has more blocks than its budget, and all that can be found is
what a whole computation would have written. What is answered is what the twin says.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hotprefix.engine.request import FinishReason
from hotprefix.engine.settings import DecodeMode, EngineSettings
from hotprefix.engine.strategy.choice import StrategyChoice, StrategyName
from hotprefix.engine.strategy.settings import StrategySettings
from tests.engine.fake_model import EOS
from tests.engine.strategy.truth import check_memory, check_tree
from tests.engine.worlds import LOWER, Answer, World

spans = st.tuples(st.integers(0, 20), st.integers(1, 4)).map(lambda pair: (pair[0], sum(pair)))
common = {
    "window": st.sampled_from([16, 20, 24]),
    "sinks": st.integers(0, 3),
    "pins": st.lists(spans, max_size=1).map(tuple),
}
windows = st.builds(
    StrategyChoice,
    name=st.just(StrategyName.WINDOW),
    keys=st.sampled_from([None, 0.0, 0.1, 0.25]),
    **common,
)
mixed = st.builds(StrategyChoice, name=st.just(StrategyName.MIXED), recent=st.integers(0, 6), **common)
choices = st.one_of(windows, windows, mixed).filter(
    lambda choice: sum(end - start for start, end in choice.pins) + (choice.sinks or 0) <= 4
)
others = st.sampled_from([None, StrategyChoice(StrategyName.STATIC), StrategyChoice(StrategyName.DYNAMIC)])


class StrategyMachine(RuleBasedStateMachine):
    """Submits, aborts, breaks and steps."""

    @initialize(
        blocks=st.integers(12, 30),
        policy=st.sampled_from(["lru", "slru", "adaptive", None]),
        chunk=st.sampled_from([2, 5, 16, 64]),
        running=st.sampled_from([2, 8]),
        decode=st.sampled_from(DecodeMode),
    )
    def build(self, blocks: int, policy: str | None, chunk: int, running: int, decode: DecodeMode) -> None:
        self.world = World(
            blocks,
            settings=EngineSettings(
                policy=policy,
                decode=decode,
                prefill_chunk=chunk,
                mixed_chunk=max(1, chunk // 2),
                max_running=running,
                strategy=StrategySettings(longest=120, scorer="norm"),
            ),
            alphabet=[EOS, *LOWER[:12]],
        )
        self.broken: set[int] = set()

    @rule(
        stem=st.sampled_from(["aaaaaaaabbbb", "aaaabbbbcccc", "bcbcbcbcbcbcbcbcbcbc", ""]),
        rest=st.text("ab", min_size=1, max_size=60),
        max_tokens=st.integers(1, 30),
        strategy=choices,
        n=st.sampled_from([1, 1, 2]),
    )
    def cut(self, stem: str, rest: str, max_tokens: int, strategy: StrategyChoice, n: int) -> None:
        # At most half of the arena can be a window.
        if (strategy.window or 0) <= self.world.pool.size * 2:
            self.world.submit(stem + rest, max_tokens, n=n, strategy=strategy)

    @rule(
        stem=st.sampled_from(["aaaaaaaabbbb", "bcbcbcbcbcbcbcbcbcbc", ""]),
        rest=st.text("ab", min_size=1, max_size=8),
        max_tokens=st.integers(1, 16),
        strategy=others,
    )
    def keep(self, stem: str, rest: str, max_tokens: int, strategy: StrategyChoice | None) -> None:
        self.world.submit(stem + rest, max_tokens, strategy=strategy)

    @precondition(lambda self: self.world.answers)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        answer = data.draw(st.sampled_from(self.world.answers))
        ended = answer.ended
        self.world.stepper.abort(answer.request.request_id)
        self.world.check()
        if not ended:
            self.broken.add(id(answer))

    @precondition(lambda self: not self.world.stepper.idle)
    @rule()
    def fail(self) -> None:
        """The model fails in the next step; the engine then ends what is in flight."""
        self.world.model.failures.append(RuntimeError("no luck"))
        try:
            self.world.stepper.step()
        except RuntimeError:
            self.broken |= {id(answer) for answer in self.world.answers if not answer.ended}
            self.world.stepper.end_all(FinishReason.ERROR, "sorry")
            self.world.check_nothing_leaked()
        self.world.model.failures.clear()
        check_tree(self.world)

    @rule(count=st.integers(1, 12))
    def step(self, count: int) -> None:
        for _ in range(count):
            self.world.step()
            check_memory(self.world)
        check_tree(self.world)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.run()
        check_tree(self.world)
        for answer in self.world.answers:
            self._check(answer)

    def _check(self, answer: Answer) -> None:
        expected = self.world.expected(answer)
        for index in range(answer.request.n):
            if id(answer) in self.broken:
                assert answer.tokens(index) == expected[: len(answer.tokens(index))]
            else:
                assert answer.tokens(index) == expected
                assert answer.reason(index) in (FinishReason.STOP, FinishReason.LENGTH)


TestStrategyMachine = StrategyMachine.TestCase
TestStrategyMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
