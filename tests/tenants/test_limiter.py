"""Rate limits with a clock that is a number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.errors import RateLimited
from hotprefix.tenants.api_key import RateLimits
from hotprefix.tenants.limiter import RateLimiter, Subject, TokenBucket


def subject(name: str = "k", kind: str = "key", **limits: int) -> Subject:
    return Subject(kind, name, RateLimits(**limits))


def test_a_minutes_worth_at_once_then_one_by_one() -> None:
    limiter, key = RateLimiter(), subject(requests_per_minute=6)
    for _ in range(6):
        limiter.leave(limiter.enter([key], 0.0))
    with pytest.raises(RateLimited, match="6 requests a minute") as refused:
        limiter.enter([key], 0.0)
    assert refused.value.retry_after == 10
    with pytest.raises(RateLimited) as refused:
        limiter.enter([key], 9.5)
    assert refused.value.retry_after == 1
    limiter.enter([key], 10.0)
    with pytest.raises(RateLimited):
        limiter.enter([key], 10.0)


def test_waiting_as_long_as_told_is_enough() -> None:
    limiter, key = RateLimiter(), subject(requests_per_minute=7)
    now = 0.0
    for _ in range(40):
        try:
            limiter.enter([key], now)
        except RateLimited as error:
            now += error.retry_after
            limiter.enter([key], now)


def test_tokens_are_charged_when_they_are_known() -> None:
    limiter, key = RateLimiter(), subject(tokens_per_minute=600)
    visit = limiter.enter([key], 0.0)
    limiter.charge(visit, 500, 0.0)
    with pytest.raises(RateLimited, match="600 prompt tokens a minute") as refused:
        limiter.charge(visit, 200, 0.0)
    assert refused.value.retry_after == 10
    limiter.charge(visit, 200, 10.0)


def test_a_prompt_above_the_limit_passes_and_is_paid_for_later() -> None:
    limiter, key = RateLimiter(), subject(tokens_per_minute=600)
    visit = limiter.enter([key], 0.0)
    limiter.charge(visit, 1800, 0.0)
    for now, wait in ((0.0, 121), (60.0, 61), (119.0, 2)):
        with pytest.raises(RateLimited) as refused:
            limiter.charge(visit, 10, now)
        assert refused.value.retry_after == wait
    limiter.charge(visit, 10, 121.0)


def test_concurrent_requests() -> None:
    limiter, key = RateLimiter(), subject(concurrent=2)
    first, _ = limiter.enter([key], 0.0), limiter.enter([key], 0.0)
    with pytest.raises(RateLimited, match="2 requests running") as refused:
        limiter.enter([key], 0.0)
    assert refused.value.retry_after == 1
    limiter.leave(first)
    limiter.leave(first)
    limiter.enter([key], 0.0)
    with pytest.raises(RateLimited):
        limiter.enter([key], 0.0)


def test_key_and_tenant_both_count_and_a_refusal_costs_nothing() -> None:
    limiter = RateLimiter()
    tenant = subject("acme", "tenant", requests_per_minute=2)
    one, two = subject("1", requests_per_minute=1), subject("2", requests_per_minute=5)
    limiter.enter([one, tenant], 0.0)
    for _ in range(3):
        with pytest.raises(RateLimited, match="key '1'"):
            limiter.enter([one, tenant], 0.0)
    limiter.enter([two, tenant], 0.0)
    with pytest.raises(RateLimited, match="tenant 'acme'"):
        limiter.enter([two, tenant], 0.0)


def test_tokens_refused_for_the_tenant_are_not_taken_from_the_key() -> None:
    limiter = RateLimiter()
    key, tenant = subject(tokens_per_minute=100), subject("acme", "tenant", tokens_per_minute=50)
    visit = limiter.enter([key, tenant], 0.0)
    limiter.charge(visit, 40, 0.0)
    with pytest.raises(RateLimited, match="tenant 'acme'"):
        limiter.charge(visit, 40, 0.0)
    limiter.charge(limiter.enter([key], 0.0), 60, 0.0)


def test_without_limits_nothing_is_remembered() -> None:
    limiter = RateLimiter()
    visit = limiter.enter([subject()], 0.0)
    limiter.charge(visit, 10**9, 0.0)
    limiter.leave(visit)
    assert len(limiter) == 0


def test_a_changed_limit_counts_from_the_next_request() -> None:
    limiter = RateLimiter()
    limiter.enter([subject(requests_per_minute=1)], 0.0)
    limiter.enter([subject(requests_per_minute=2)], 0.0)
    limiter.enter([subject()], 0.0)  # no limit at all: neither refused nor counted
    limiter.enter([subject(requests_per_minute=2)], 0.0)
    with pytest.raises(RateLimited):
        limiter.enter([subject(requests_per_minute=2)], 0.0)


def test_the_table_is_bounded_and_forgets_those_who_are_idle_first() -> None:
    limiter = RateLimiter(capacity=3)
    busy = limiter.enter([subject("busy", concurrent=1)], 0.0)
    for number in range(50):
        limiter.leave(limiter.enter([subject(str(number), requests_per_minute=1)], float(number)))
        assert len(limiter) <= 3
    with pytest.raises(RateLimited):
        limiter.enter([subject("busy", concurrent=1)], 50.0)
    limiter.leave(busy)
    limiter.enter([subject("busy", concurrent=1)], 50.0)


def test_a_table_full_of_running_requests_refuses_strangers() -> None:
    limiter = RateLimiter(capacity=2)
    visits = [limiter.enter([subject(str(number), concurrent=1)], 0.0) for number in range(2)]
    with pytest.raises(RateLimited, match="Too many"):
        limiter.enter([subject("third", concurrent=1)], 0.0)
    limiter.leave(visits[0])
    limiter.enter([subject("third", concurrent=1)], 0.0)


def test_a_visit_is_counted_out_where_it_was_counted_in() -> None:
    """Even if the table had to forget the key's meter for the tenant's: else limits would grow."""
    limiter = RateLimiter(capacity=2)
    other = limiter.enter([subject("other", concurrent=1)], 0.0)
    key, tenant = subject(concurrent=1), subject("t", kind="tenant", concurrent=9)
    first = limiter.enter([key, tenant], 0.0)
    limiter.leave(other)
    limiter.enter([key], 0.0)
    limiter.leave(first)
    with pytest.raises(RateLimited, match="1 requests running"):
        limiter.enter([key], 0.0)


@given(
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 300)), min_size=1, max_size=60), st.integers(1, 200)
)
def test_nobody_ever_gets_more_than_the_rate_and_one_full_bucket(
    asks: list[tuple[float, int]], per_minute: int
) -> None:
    bucket, now, taken = TokenBucket(per_minute, 0.0), 0.0, 0
    for gap, units in asks:
        now += gap
        if bucket.wait(units, now) == 0.0:
            # The last charge may leave a debt; all before it are within the rate.
            assert taken <= per_minute + now * per_minute / 60 + 1e-6
            bucket.take(units, now)
            taken += units
        else:
            assert bucket.wait(units, now + bucket.wait(units, now) + 1e-6) == 0.0
