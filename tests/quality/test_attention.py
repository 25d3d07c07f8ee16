"""How tokens were looked at, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from hotprefix.quality.attention import LAG, looks


def test_looks_are_what_the_definition_says() -> None:
    random = np.random.default_rng(1)
    tokens, size, group = 90, 8, 2
    keys, values = random.normal(0, 1, (2, tokens, size)).astype(np.float32)
    places = np.array([10, 40, 60, 89])
    queries = random.normal(0, 2, (group, len(places), size)).astype(np.float32)
    found = looks(queries, keys, values, places)
    for token in (0, 7, 20, 57, 58):
        of_values, of_keys, share, count = 0.0, 0.0, 0.0, 0
        for member in range(group):
            for query, place in enumerate(places):
                if token > place - LAG:
                    continue
                logits = keys[: place + 1].astype(float) @ queries[member, query] / np.sqrt(size)
                weights = np.exp(logits - logits.max())
                weights /= weights.sum()
                output = weights @ values[: place + 1]
                distance = np.square(values[token] - output).sum()
                of_values += weights[token] ** 2
                of_keys += weights[token] ** 2 * distance
                share += weights[token]
                count += 1
        if count == 0:
            assert found.share[token] == 0
            continue
        assert found.share[token] == pytest.approx(share / count, rel=1e-4)
        effect = (np.log2(of_values / count) + np.log2(of_keys / count)) / 2
        assert found.effect[token] == pytest.approx(effect, abs=1e-3)
    assert (found.effect[58:] == found.effect[58]).all()


def test_what_is_looked_at_has_more_effect() -> None:
    keys = np.zeros((64, 4), np.float32)
    keys[5, 0] = 6.0
    values = np.random.default_rng(1).normal(0, 1, (64, 4)).astype(np.float32)
    queries = np.zeros((1, 4, 4), np.float32)
    queries[:, :, 0] = 2.0
    found = looks(queries, keys, values, np.array([60, 61, 62, 63]))
    assert int(found.effect.argmax()) == 5
    assert found.share[5] > 0.5
