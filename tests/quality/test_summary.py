"""Summaries over documents."""

from __future__ import annotations

import numpy as np
import pytest

from hotprefix.quality.metrics import Shift
from hotprefix.quality.summary import summarise


def shift_of(divergence: list[float], agrees: list[bool], loss: list[float]) -> Shift:
    return Shift(np.array(divergence), np.array(agrees), np.array(loss), np.zeros(len(loss)))


def test_tokens_count_equally_whatever_their_document() -> None:
    found = summarise(
        [shift_of([1.0], [True], [0.3]), shift_of([0.0, 0.0, 2.0], [True, False, True], [0, 0, 0.1])]
    )
    assert found.kl_mean.value == pytest.approx(0.75)
    assert found.kl_max == 2.0
    assert found.kl_median == pytest.approx(0.5)
    assert found.same_top.value == pytest.approx(0.75)
    assert found.ppl_ratio.value == pytest.approx(np.exp(0.1))
    assert (found.tokens, found.documents) == (4, 2)


def test_tails_are_of_all_tokens() -> None:
    found = summarise([shift_of([0.0] * 998 + [1.0, 3.0], [True] * 1000, [0.0] * 1000)])
    assert found.kl_p99 == 0.0
    assert 1.0 <= found.kl_p999 <= 3.0


def test_the_interval_is_as_wide_as_documents_differ() -> None:
    alike = summarise([shift_of([1.0] * 9, [True] * 9, [0.0] * 9)] * 6)
    assert alike.kl_mean.low == alike.kl_mean.high == 1.0
    apart = summarise([shift_of([float(n)] * 9, [True] * 9, [0.0] * 9) for n in range(6)])
    assert apart.kl_mean.value == 2.5
    assert apart.kl_mean.low < 2
    assert apart.kl_mean.high > 3
    assert summarise([shift_of([0.5], [True], [0.0])]).kl_mean.low == 0.5
