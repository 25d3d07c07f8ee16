"""What a tenant can learn of another's prompts by probing: nothing, but for what is public.

A probe is a prompt of which the attacker measures the work until the first token: prompt tokens
computed, and steps. Half of the probes begin with what the victim has just used, half with what
nobody has. The area under the ROC curve is 0.5 if the measure says nothing and 1 if it says all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from hotprefix.base.ids import RequestId
from hotprefix.engine.request import GenerationRequest, Sampling
from hotprefix.keys.scope import CacheScope
from hotprefix.keys.zones import PUBLIC_TENANT, PublicZone
from hotprefix.tenants.derive import tenant_salt
from tests.engine.fake_model import letters
from tests.engine.worlds import Answer, World

SECRET = bytes(range(32))
VICTIM, ATTACKER = tenant_salt(SECRET, "victim"), tenant_salt(SECRET, "attacker")
PROBES = 200
ALPHABET = letters("abcdefghijklmnopqrstuvwxyz")


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Area under the ROC curve of "less work means that the victim was here", ties counted half."""
    wins = sum((p < n) + 0.5 * (p == n) for p in positive for n in negative)
    return wins / (len(positive) * len(negative))


def test_the_measure_itself() -> None:
    assert auc([1, 1], [2, 3]) == 1.0
    assert auc([2, 3], [1, 1]) == 0.0
    assert auc([1, 2], [1, 2]) == auc([5], [5]) == 0.5


@dataclass
class Trial:
    """Work until the first token by probe, where the victim was and where nobody was."""

    tokens: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    steps: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    seconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def worst(self) -> float:
        """The most telling of the two exact measures, whichever way round."""
        areas = [auc(*measure) for measure in (self.tokens, self.steps)]
        return max(max(area, 1 - area) for area in areas)


class Lab:
    """An engine around the byte-true model; histories begin in the public zone where they may."""

    def __init__(self, public: Sequence[Sequence[int]] = ()) -> None:
        self.world = World(256)
        root = CacheScope("fake", "digests", tenant=PUBLIC_TENANT).root()
        self.zone = PublicZone(root, self.world.cache.block_size, public)
        self.serial = 0

    def ask(self, prompt: Sequence[int], tenant: str) -> Answer:
        """One request of one answered token, run until there is nothing to do."""
        answer = self.enqueue(prompt, tenant)
        self.world.run()
        return answer

    def enqueue(self, prompt: Sequence[int], tenant: str) -> Answer:
        self.serial += 1
        sampling = Sampling(max_tokens=1, temperature=0.0)
        answer = Answer(GenerationRequest(RequestId(f"p{self.serial}"), prompt, sampling, 1, tenant))
        state = self.world.stepper.prepare(answer.request, answer.deltas.append)
        for sequence in state.sequences:
            sequence.history = self.zone.history(sequence.history.root, prompt)
        self.world.stepper.enqueue(state)
        self.world.answers.append(answer)
        return answer

    def probe(self, prompt: Sequence[int], tenant: str) -> tuple[int, int, float]:
        """Prompt tokens computed, steps and seconds until the first token; the answer is right."""
        computed, began = self.world.model.computed, time.perf_counter()
        answer = self.enqueue(prompt, tenant)
        steps = 0
        while not answer.deltas:
            self.world.step()
            steps += 1
        work = (self.world.model.computed - computed, steps, time.perf_counter() - began)
        self.world.run()
        assert answer.tokens() == self.world.expected(answer)
        return work


def trial(lab: Lab, tenant: str, secret_of: Callable[[Random, int], list[int]]) -> Trial:
    """The victim uses a secret before every other probe; the attacker asks for one each time."""
    random, result = Random(11), Trial()
    for number in range(PROBES):
        secret = secret_of(random, number)
        visited = random.random() < 0.5
        if visited:
            lab.ask([*secret, *random.choices(ALPHABET, k=5)], VICTIM)
        work = lab.probe([*secret, *random.choices(ALPHABET, k=5)], tenant)
        for measure, value in zip((result.tokens, result.steps, result.seconds), work, strict=True):
            measure[0 if visited else 1].append(float(value))
    return result


def fresh_secret(random: Random, number: int) -> list[int]:
    return random.choices(ALPHABET, k=40)


def test_another_tenants_prefix_can_not_be_told_from_one_that_nobody_has(
    record_property: Callable[[str, object], None],
) -> None:
    result = trial(Lab(), ATTACKER, fresh_secret)
    record_property("auc_wall_time", auc(*result.seconds))
    assert result.worst() < 0.55


def test_the_probe_would_see_it_in_the_victims_own_scope() -> None:
    """Else the test above would prove nothing."""
    assert trial(Lab(), VICTIM, fresh_secret).worst() > 0.99


class TestPublicZone:
    SHARED = letters("you sell shoes and nothing else. ")
    """Eight full blocks and a token."""

    def test_that_the_public_prefix_was_used_can_be_seen(self) -> None:
        """The operator gives that away: the first use by anybody warms it for all."""
        random = Random(5)
        areas = Trial()
        for number in range(PROBES // 5):
            lab = Lab([self.SHARED])
            if number % 2:
                lab.ask([*self.SHARED, *random.choices(ALPHABET, k=9)], VICTIM)
            work = lab.probe([*self.SHARED, *random.choices(ALPHABET, k=9)], ATTACKER)
            areas.tokens[0 if number % 2 else 1].append(float(work[0]))
        assert auc(*areas.tokens) > 0.99

    def test_what_follows_it_can_not(self) -> None:
        lab = Lab([self.SHARED])
        lab.ask(self.SHARED, "somebody")

        def secret(random: Random, number: int) -> list[int]:
            return [*self.SHARED, *random.choices(ALPHABET, k=30)]

        assert trial(lab, ATTACKER, secret).worst() < 0.55
        assert trial(lab, VICTIM, secret).worst() > 0.99

    def test_only_full_blocks_are_shared(self) -> None:
        lab = Lab([self.SHARED])
        prompt = [*self.SHARED, *letters("size 43")]
        lab.ask(prompt, VICTIM)
        computed, _, _ = lab.probe(prompt, ATTACKER)
        assert computed == len(prompt) - len(self.SHARED) // 4 * 4

    def test_simultaneous_first_uses_compute_the_public_part_once(self) -> None:
        lab = Lab([self.SHARED])
        answers = [lab.enqueue([*self.SHARED, *letters(f"{n} pairs")], f"tenant {n}") for n in range(6)]
        lab.world.run()
        private = sum(len(answer.request.prompt_ids) - 32 for answer in answers)
        assert lab.world.model.computed == 32 + private
        for answer in answers:
            assert answer.tokens() == lab.world.expected(answer)


@pytest.mark.parametrize("private", [True, False])
def test_tenants_do_not_wait_for_each_others_private_prompts(private: bool) -> None:
    """Waiting for the same blocks would tell that somebody computes them now."""
    lab = Lab()
    prompt = letters("the merger is on friday, tell nobody")
    first = lab.enqueue(prompt, VICTIM)
    second = lab.enqueue(prompt, ATTACKER if private else VICTIM)
    lab.world.step()
    assert bool(first.deltas) and bool(second.deltas) == private
    lab.world.run()
