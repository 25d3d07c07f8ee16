"""Whether a tenant can tell by the time to the first token what another tenant has in the cache: it can't.

On a live server, one tenant has prefixes computed, and another sends probes: half begin with one of
them, half with a prefix that nobody has, in random order. The area under the ROC curve of "sooner means
known" is 0.5 if the time says nothing and 1 if it says all.

Of 200 probes the area has a standard error of 0.041 even where the time says nothing: one series alone
would be off by 0.05 in 22 of 100 runs. So more series of 200 are added until the area of all probes
together is within 0.05 of 0.5, five at most. Simulated, a time that says nothing fails in 0.2 of 100 runs,
one with a true area of 0.6 in 87, and one of 0.7 always.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import pytest

from hotprefix.base.clock import SystemClock
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.tenants.api_key import KeyWish
from hotprefix.tenants.tenancy import open_tenancy
from tests.e2e.server import Server, serving
from tests.engine.test_isolation import auc

pytestmark = [pytest.mark.model, pytest.mark.slow]

PROBES = 200
SERIES = 5
ALLOWED = 0.05
OWN_PROBES = 60
"""Within one tenant the difference is plain."""
PREFIX = 192
"""Tokens: six blocks."""
TAIL = 8
WARMED = 10
"""Prefixes that are computed before the probes for them, and as many others, come."""
VOCABULARY = range(1000, 40_000)


@dataclass(frozen=True)
class Shop:
    """A server that tells every cached token, and the API keys of two tenants."""

    server: Server
    owner: str
    stranger: str


@pytest.fixture(scope="module")
def shop(default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("probes")
    with open_tenancy(folder / "state", SystemClock()) as tenancy:
        owner, stranger = (tenancy.keys.create(KeyWish(name)).text for name in ("owner", "stranger"))
    with serving(folder, "--profile", "hotprefix") as server:
        yield Shop(server, owner, stranger)


class Prober:
    """Makes prompts that share no token with any earlier one at their beginning, and times them."""

    def __init__(self, server: Server, seed: int) -> None:
        self._server = server
        self._random = Random(seed)
        self._first = iter(self._random.sample(VOCABULARY, 5000))

    def prefix(self) -> list[int]:
        return [next(self._first), *self._random.choices(VOCABULARY, k=PREFIX - 1)]

    def series(self, owner: str, prober: str, probes: int) -> tuple[list[float], list[float], list[int]]:
        """Seconds of probes for what `owner` has and for what nobody has; tokens from the cache."""
        known: list[float] = []
        unknown: list[float] = []
        cached: list[int] = []
        for _ in range(probes // (2 * WARMED)):
            warmed = [self.prefix() for _ in range(WARMED)]
            for prefix in warmed:
                self._ask(owner, prefix)
            line = [(prefix, known) for prefix in warmed]
            line += [(self.prefix(), unknown) for _ in range(WARMED)]
            self._random.shuffle(line)
            for prefix, seconds in line:
                took, tokens = self._ask(prober, prefix)
                seconds.append(took)
                cached.append(tokens)
        return known, unknown, cached

    def _ask(self, key: str, prefix: list[int]) -> tuple[float, int]:
        """Seconds until the first token of a stream, and tokens of the prompt that came from the cache."""
        body = {
            "model": DEFAULT_MODEL,
            "prompt": [*prefix, *self._random.choices(VOCABULARY, k=TAIL)],
            "max_tokens": 1,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        headers = {"authorization": f"Bearer {key}"}
        began = time.perf_counter()
        with self._server.client.stream("POST", "/v1/completions", json=body, headers=headers) as response:
            assert response.status_code == 200, response.read()
            lines = (line for line in response.iter_lines() if line.startswith("data: "))
            next(lines)
            took = time.perf_counter() - began
            events = [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]
        return took, events[-1]["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_another_tenants_prefixes_can_not_be_told_by_time(
    shop: Shop, record_property: Callable[[str, object], None]
) -> None:
    prober = Prober(shop.server, 20_261_130)
    known: list[float] = []
    unknown: list[float] = []
    areas: list[float] = []
    while not areas or (abs(areas[-1] - 0.5) >= ALLOWED and len(areas) < SERIES):
        more = prober.series(shop.owner, shop.stranger, PROBES)
        known += more[0]
        unknown += more[1]
        assert set(more[2]) == {0}
        areas.append(auc(known, unknown))
    record_property("auc", areas)
    print(f"area under the curve after each {PROBES} probes: {areas}")
    assert abs(areas[-1] - 0.5) < ALLOWED, areas


def test_the_same_probe_tells_a_tenants_own_prefixes(
    shop: Shop, record_property: Callable[[str, object], None]
) -> None:
    """Else the test above would prove nothing."""
    known, unknown, cached = Prober(shop.server, 7).series(shop.owner, shop.owner, OWN_PROBES)
    area = auc(known, unknown)
    record_property("auc", area)
    print(f"area under the curve within one tenant: {area}")
    assert sorted(set(cached)) == [0, PREFIX]
    assert area > 0.9
