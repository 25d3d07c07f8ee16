"""The sampler: right distribution, right candidates, and nothing of a row's company shows."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hotprefix.base.errors import InvalidRequest, LogicError
from hotprefix.engine.candidates import candidates, pick
from hotprefix.engine.grammar import GrammarCompiler
from hotprefix.engine.request import Grammar, GrammarKind, Sampling
from hotprefix.engine.row_state import RowState
from hotprefix.engine.sampler import Sampler
from tests.engine.small_bpe import EOS, small_tokenizer

Logits = NDArray[np.float32]

CHI_SQUARE_19 = 43.82
"""The value that chi-square with 19 degrees of freedom exceeds once in a thousand."""


def row(sampling: Sampling, vocab: int, prompt: tuple[int, ...] = (), choice: int = 0) -> RowState:
    return RowState(sampling, vocab, prompt, choice=choice, entropy=lambda: 11)


def draw(logits: Logits, state: RowState, count: int) -> NDArray[np.intp]:
    batch = logits[None, :]
    return np.array([Sampler().sample(batch, [state])[0].token_id for _ in range(count)])


def softmax(logits: Logits) -> NDArray[np.float64]:
    weights = np.exp(logits.astype(np.float64) - float(logits.max()))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def chi_square(drawn: NDArray[np.intp], expected: NDArray[np.float64], groups: int = 20) -> float:
    """Over at most `groups` groups of about equal probability."""
    group = np.minimum((np.cumsum(expected) - expected / 2) * groups, groups - 1).astype(int)
    share = np.bincount(group, weights=expected, minlength=groups) * len(drawn)
    seen = np.bincount(group[drawn], minlength=groups)
    used = share > 0
    assert seen[~used].sum() == 0
    return float(((seen - share)[used] ** 2 / share[used]).sum())


# --- distribution


@pytest.mark.parametrize("vocab", [60, 5000], ids=["small", "in blocks"])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_frequencies_follow_the_probabilities(vocab: int, temperature: float) -> None:
    logits = np.random.default_rng(3).normal(size=vocab).astype(np.float32)
    drawn = draw(logits, row(Sampling(temperature=temperature, seed=5), vocab), 6000)
    assert chi_square(drawn, softmax(logits / np.float32(temperature))) < CHI_SQUARE_19


def test_wrong_temperature_would_be_noticed() -> None:
    logits = np.random.default_rng(3).normal(size=60).astype(np.float32)
    drawn = draw(logits, row(Sampling(temperature=1.2, seed=5), 60), 6000)
    assert chi_square(drawn, softmax(logits)) > CHI_SQUARE_19


@pytest.mark.parametrize(
    "sampling",
    [Sampling(top_k=40, seed=1), Sampling(top_p=0.7, seed=1), Sampling(min_p=0.1, top_p=0.9, seed=1)],
)
def test_what_is_left_keeps_its_proportions(sampling: Sampling) -> None:
    logits = np.random.default_rng(4).normal(size=3000).astype(np.float32)
    kept = naive_kept(logits, sampling, slack=0)
    expected = softmax(np.where(kept, logits, -np.inf).astype(np.float32))
    drawn = draw(logits, row(sampling, 3000), 6000)
    assert kept[drawn].all()
    assert chi_square(drawn, expected) < CHI_SQUARE_19


# --- candidates against a naive reference


def naive_kept(logits: Logits, sampling: Sampling, slack: float) -> NDArray[np.bool_]:
    """Sort everything, in double precision. `slack` loosens (> 0) or tightens (< 0) every bound."""
    scaled = logits.astype(np.float64) / sampling.temperature
    order = np.argsort(-scaled, kind="stable")
    chances = np.exp(scaled[order] - scaled[order[0]])
    keep = chances >= sampling.min_p * (1 - slack)
    keep[0] = True
    if sampling.top_k and sampling.top_k < len(order):
        keep &= scaled[order] >= scaled[order][sampling.top_k - 1] - max(slack, 0)
    chances = chances[keep]
    before = np.cumsum(chances) - chances
    nucleus = before < (sampling.top_p + slack) * chances.sum() if sampling.top_p < 1 else before >= 0
    kept = np.zeros(len(logits), dtype=bool)
    kept[order[: int(nucleus.sum())]] = True
    return kept


samplings = st.builds(
    Sampling,
    temperature=st.floats(0.1, 3),
    top_k=st.integers(0, 40),
    top_p=st.one_of(st.just(1.0), st.floats(0.01, 0.999)),
    min_p=st.one_of(st.just(0.0), st.floats(0.001, 1)),
)


@st.composite
def rows_of_logits(drawing: st.DrawFn) -> Logits:
    rng = np.random.default_rng(drawing(st.integers(0, 2**32)))
    size = drawing(st.one_of(st.integers(1, 50), st.integers(1000, 4000)))
    logits = rng.normal(scale=drawing(st.floats(0.1, 8)), size=size)
    if drawing(st.booleans()):
        logits = np.round(logits)  # many equal values
    return logits.astype(np.float32)


@given(rows_of_logits(), samplings)
def test_candidates_equal_the_reference(logits: Logits, sampling: Sampling) -> None:
    ids, weights = candidates(logits, sampling)
    ids = np.arange(len(logits)) if ids is None else ids
    kept = np.zeros(len(logits), dtype=bool)
    kept[ids] = True
    assert len(ids) == kept.sum() > 0
    assert logits[kept].min() >= np.max(logits[~kept], initial=-np.inf)
    fewest, most = (naive_kept(logits, sampling, slack).sum() for slack in (-1e-4, 1e-4))
    assert fewest <= kept.sum() <= most
    chances = np.exp((logits[ids].astype(np.float64) - float(logits.max())) / sampling.temperature)
    np.testing.assert_allclose(weights, chances, rtol=1e-4, atol=1e-30)


@given(
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=1500).filter(lambda w: sum(w) > 1e-3),
    st.floats(0, 1, exclude_max=True),
)
def test_pick_inverts_the_running_total(weights: list[float], uniform: float) -> None:
    at = pick(np.array(weights, dtype=np.float32), uniform)
    total = math.fsum(weights)
    assert weights[at] > 0
    assert math.fsum(weights[:at]) <= uniform * total + 1e-5 * total
    assert uniform * total <= math.fsum(weights[: at + 1]) + 1e-5 * total


def test_equal_tokens_stay_together_in_top_k_and_go_by_id_in_top_p() -> None:
    logits = np.array([0, 2, 1, 1, 1], dtype=np.float32)
    ids, _ = candidates(logits, Sampling(top_k=2))
    assert ids is not None
    assert ids.tolist() == [1, 2, 3, 4]
    ids, _ = candidates(np.zeros(4, dtype=np.float32), Sampling(top_p=0.5))
    assert ids is not None
    assert ids.tolist() == [0, 1]


def test_top_p_is_of_what_top_k_left() -> None:
    logits = np.log(np.array([0.4, 0.3, 0.2, 0.1], dtype=np.float32))
    ids, _ = candidates(logits, Sampling(top_k=2, top_p=0.5))
    assert ids is not None
    assert ids.tolist() == [0]  # 0.4 of 0.7 is over a half, 0.4 of 1 would not be


# --- greedy


def test_greedy_rows_take_the_first_largest() -> None:
    logits = np.array([[0, 5, 5], [9, 1, 2]], dtype=np.float32)
    rows = [row(Sampling(temperature=0), 3), row(Sampling(temperature=1e-6), 3)]
    assert [d.token_id for d in Sampler().sample(logits, rows)] == [1, 0]
    assert all(d.logprob is None for d in Sampler().sample(logits, rows))


def test_no_rows() -> None:
    assert Sampler().sample(np.zeros((0, 8), dtype=np.float32), []) == []


# --- company and seeds

MIXED = [
    Sampling(seed=1),
    Sampling(seed=1, top_p=0.8, temperature=0.7),
    Sampling(temperature=0),
    Sampling(seed=3, top_k=5),
    Sampling(temperature=0, top_logprobs=3),
    Sampling(seed=4, frequency_penalty=1.0, repetition_penalty=1.3),
]


def run(kinds: list[Sampling], logits: NDArray[np.float32]) -> list[list[object]]:
    rows = [row(kind, logits.shape[2], prompt=(1, 2, 3)) for kind in kinds]
    out: list[list[object]] = [[] for _ in kinds]
    for step in logits:
        for i, drawn in enumerate(Sampler().sample(step[: len(kinds)], rows)):
            rows[i].accept(drawn.token_id)
            out[i].append(drawn)
    return out


def test_a_row_draws_the_same_whatever_its_company() -> None:
    one = np.random.default_rng(8).normal(size=(12, 1, 2000)).astype(np.float32)
    logits = np.repeat(one, len(MIXED), axis=1)
    together = run(MIXED, logits)
    alone = [run([kind], one)[0] for kind in MIXED]
    assert together == alone


def test_seed_fixes_the_draws_and_choices_differ() -> None:
    logits = np.zeros(1000, dtype=np.float32)
    same = [draw(logits, row(Sampling(seed=7), 1000), 8).tolist() for _ in range(2)]
    assert same[0] == same[1]
    sibling = draw(logits, row(Sampling(seed=7), 1000, choice=1), 8).tolist()
    assert sibling != same[0]
    assert sibling == draw(logits, row(Sampling(seed=8), 1000), 8).tolist()


def test_without_seed_the_entropy_is_asked() -> None:
    logits = np.zeros(1000, dtype=np.float32)
    by_entropy = draw(logits, RowState(Sampling(), 1000, (), entropy=lambda: 99), 8).tolist()
    assert by_entropy == draw(logits, row(Sampling(seed=99), 1000), 8).tolist()
    two = [draw(logits, RowState(Sampling(), 1000, ()), 8).tolist() for _ in range(2)]
    assert two[0] != two[1]


@pytest.mark.parametrize("seed", [-1, 2**64 - 1, -(2**63)])
def test_any_64_bit_seed(seed: int) -> None:
    assert draw(np.zeros(10, dtype=np.float32), row(Sampling(seed=seed), 10), 1)[0] in range(10)


# --- penalties and bias


def adjusted(sampling: Sampling, prompt: tuple[int, ...], answer: tuple[int, ...]) -> list[float]:
    state = row(sampling, 4, prompt)
    for token in answer:
        state.accept(token)
    logits = np.array([2, 2, -2, 2], dtype=np.float32)
    state.adjust(logits)
    return [float(value) for value in logits]


def test_frequency_and_presence_count_the_answer_only() -> None:
    sampling = Sampling(frequency_penalty=0.5, presence_penalty=0.25)
    assert adjusted(sampling, (3, 3), (0, 0, 1)) == [0.75, 1.25, -2, 2]


def test_repetition_counts_prompt_and_answer_once() -> None:
    assert adjusted(Sampling(repetition_penalty=2.0), (2, 2), (0, 0)) == [1, 2, -4, 2]


def test_bias_comes_before_the_repetition_penalty() -> None:
    sampling = Sampling(repetition_penalty=2.0, logit_bias={0: 4.0, 3: -100.0})
    assert adjusted(sampling, (0,), ()) == [3, 2, -2, -98]


def test_bias_forces_a_token() -> None:
    logits = np.random.default_rng(0).normal(size=50).astype(np.float32)
    assert set(draw(logits, row(Sampling(seed=0, logit_bias={17: 100.0}), 50), 20)) == {17}


@pytest.mark.parametrize("token", [-1, 4])
def test_bias_outside_the_vocabulary_is_refused(token: int) -> None:
    with pytest.raises(InvalidRequest, match=f"token {token}") as caught:
        row(Sampling(logit_bias={token: 1.0}), 4)
    assert caught.value.param == "logit_bias"


# --- log-probabilities


def test_logprobs_are_the_models_own() -> None:
    logits = np.random.default_rng(2).normal(size=100).astype(np.float32)
    sampling = Sampling(temperature=0.2, top_k=3, seed=1, top_logprobs=4, logit_bias={5: 2.0})
    drawn = Sampler().sample(logits[None], [row(sampling, 100)])[0]
    expected = np.log(softmax(logits))
    assert drawn.logprob is not None
    assert drawn.logprob.token_id == drawn.token_id
    assert drawn.logprob.logprob == pytest.approx(expected[drawn.token_id], abs=1e-5)
    assert [t for t, _ in drawn.logprob.top] == np.argsort(-logits)[:4].tolist()


def test_zero_alternatives_still_give_the_drawn_token() -> None:
    drawn = Sampler().sample(
        np.zeros((1, 4), dtype=np.float32), [row(Sampling(temperature=0, top_logprobs=0), 4)]
    )
    assert drawn[0].logprob is not None
    assert drawn[0].logprob.logprob == pytest.approx(-math.log(4))
    assert drawn[0].logprob.top == ()


# --- grammar


def test_random_drawing_under_a_schema_gives_valid_json() -> None:
    tokenizer = small_tokenizer()
    compiler = GrammarCompiler(tokenizer, [EOS], tokenizer.vocab_size)
    grammar = Grammar(GrammarKind.JSON_SCHEMA, json.dumps({"type": "array", "items": {"enum": ["red", 7]}}))
    rng = np.random.default_rng(1)
    for seed in range(10):
        sampling = Sampling(seed=seed, top_p=0.9, grammar=grammar)
        state = RowState(sampling, tokenizer.vocab_size, (), matcher=compiler.matcher(grammar))
        answer: list[int] = []
        assert state.matcher is not None
        while not state.matcher.finished and len(answer) < 500:
            logits = rng.normal(size=(1, tokenizer.vocab_size)).astype(np.float32)
            answer.append(Sampler().sample(logits, [state])[0].token_id)
            state.accept(answer[-1])
        assert state.matcher.complete
        assert all(item in ("red", 7) for item in json.loads(tokenizer.decode(answer)))


# --- what must not be changed, and what must not pass


@pytest.mark.parametrize("sampling", MIXED)
def test_logits_are_only_read(sampling: Sampling) -> None:
    logits = np.random.default_rng(0).normal(size=(1, 64)).astype(np.float32)
    logits.flags.writeable = False
    state = row(sampling, 64, prompt=(1,))
    state.accept(3)
    Sampler().sample(logits, [state])


@pytest.mark.parametrize("sampling", MIXED)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_broken_logits_are_an_error(sampling: Sampling, bad: float) -> None:
    logits = np.zeros((2, 64), dtype=np.float32)
    logits[1, 40] = bad
    with pytest.raises(LogicError, match="largest logit"):
        Sampler().sample(logits, [row(sampling, 64), row(sampling, 64)])


def test_wrong_number_of_rows_is_an_error() -> None:
    with pytest.raises(LogicError, match="1 rows of logits for 2"):
        Sampler().sample(np.zeros((1, 4), dtype=np.float32), [row(Sampling(), 4)] * 2)
