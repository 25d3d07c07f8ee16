"""Log-probabilities against the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.engine.logprobs import token_logprob

finite = st.floats(-30, 30, width=32)


@given(st.lists(finite, min_size=1, max_size=40), st.data())
def test_equals_log_softmax(values: list[float], data: st.DataObject) -> None:
    token = data.draw(st.integers(0, len(values) - 1))
    top = data.draw(st.integers(0, 20))
    got = token_logprob(np.array(values, dtype=np.float32), token, top)
    total = math.log(math.fsum(math.exp(v) for v in values))
    best = sorted(range(len(values)), key=lambda i: (-values[i], i))[:top]
    assert got.token_id == token
    assert got.logprob == pytest.approx(values[token] - total, abs=1e-5)
    assert [t for t, _ in got.top] == best
    assert [p for _, p in got.top] == pytest.approx([values[t] - total for t in best], abs=1e-5)


def test_large_and_forbidden_logits() -> None:
    logits = np.array([5e4, 5e4, -np.inf], dtype=np.float32)
    got = token_logprob(logits, 0, 3)
    assert got.logprob == pytest.approx(-math.log(2))
    assert got.top[2] == (2, -math.inf)
