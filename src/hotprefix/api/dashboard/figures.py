"""The overview's figures, added up by the ledger."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from hotprefix.api.dashboard.selection import Selection
from hotprefix.base.errors import HotprefixError
from hotprefix.ledger.columns import from_pico
from hotprefix.ledger.facts import usage_facts
from hotprefix.ledger.query import Dimension, Totals, totals, totals_by
from hotprefix.ledger.store import LedgerStore
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.price import price_of

_STEPS = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800,
)  # fmt: skip
_MOST_BUCKETS = 120
_SAMPLE = 10_000
"""Times to the first token that are looked at: the newest."""
_CHOICES = 200
_MOST_NAMES = 500
_BOUNDS = tuple(round(0.001 * 10 ** (step / 6), 6) for step in range(31))
"""Seconds, from one millisecond to a hundred seconds, six to a decade."""
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def summary(store: LedgerStore, profiles: ProfileBook, chosen: Selection, now: float) -> dict[str, Any]:
    """Sums, the course over time, reasons, first tokens and what can be chosen from."""
    sums = usage_facts(Dimension.REASON, totals_by(store, Dimension.REASON, chosen), totals(store, chosen))
    avoidable = _avoidable(store, chosen)
    reasons = [group | avoidable.get(group["reason"], {}) for group in sums["groups"]]
    saved = _saved(store, profiles, chosen)
    return {
        "now": now,
        "totals": [total | saved[total["currency"]] for total in sums["totals"]],
        "formula": sums["formula"],
        "reasons": reasons,
        "series": _series(store, chosen, now),
        "first_token": _first_tokens(store, chosen),
        "choices": {name: _choices(store, chosen, name) for name in ("tenant", "scene", "reason")},
    }


def by_scene(store: LedgerStore, chosen: Selection, most: int = _MOST_NAMES) -> dict[str, Any]:
    """Scenes and named prompts with their sums, when they were last seen, and what cost each scene most.

    Clients choose both names: beyond `most` of a kind, those with fewer prompt tokens are left out.
    """
    scenes, more = _largest(totals_by(store, Dimension.SCENE, chosen), most)
    prompts, others = _largest(
        [group for group in totals_by(store, Dimension.PROMPT, chosen) if group.key], most
    )
    where, parameters = chosen.where()
    sql = (
        f"SELECT scene, reason, MAX(at), SUM(lost_tokens) FROM ledger_request {where} "
        "GROUP BY scene, reason ORDER BY 4"
    )
    seen: dict[str, float] = defaultdict(float)
    worst: dict[str, str] = {}
    for scene, reason, at, lost in store.query(sql, parameters):
        seen[scene] = max(seen[scene], float(at))
        if lost:
            worst[scene] = reason
    facts = [
        group | {"last_seen": seen.get(group["scene"]), "worst_reason": worst.get(group["scene"], "")}
        for group in _named("scene", scenes)
    ]
    return {"scenes": facts, "prompts": _named("prompt_name", prompts), "left_out": more + others}


def _largest(groups: Sequence[Totals], most: int) -> tuple[list[Totals], int]:
    """The groups to show, and how many others there are."""
    order = sorted(groups, key=lambda group: (-group.prompt, group.key))
    return order[:most], max(0, len(order) - most)


def _named(field: str, groups: Sequence[Totals]) -> list[dict[str, Any]]:
    """Sums with the name of their group in `field`: `prompt` is the number of prompt tokens."""
    sums = usage_facts(Dimension.TENANT, (), groups)["totals"]
    return [{field: group.key} | numbers for group, numbers in zip(groups, sums, strict=True)]


def _avoidable(store: LedgerStore, chosen: Selection) -> dict[str, dict[str, int]]:
    where, parameters = chosen.where()
    sql = (
        "SELECT reason, SUM(avoidable), SUM(CASE WHEN avoidable = 1 THEN lost_tokens ELSE 0 END) "
        f"FROM ledger_request {where} GROUP BY reason"
    )
    return {
        str(reason): {"avoidable_requests": int(requests), "avoidable_tokens": int(tokens)}
        for reason, requests, tokens in store.query(sql, parameters)
    }


def _saved(store: LedgerStore, profiles: ProfileBook, chosen: Selection) -> dict[str, dict[str, Any]]:
    """By currency: what the same requests cost without a cache, less what they cost. `unpriced` requests
    are of a profile that is not there any more, or has another currency now: they are left out."""
    where, parameters = chosen.where()
    sql = (
        "SELECT profile, model, day, currency, COUNT(*), SUM(prompt), SUM(output), "
        f"SUM(money_pico / 1000000), SUM(money_pico - money_pico / 1000000 * 1000000) "
        f"FROM ledger_request {where} GROUP BY 1, 2, 3, 4"
    )
    found: dict[str, dict[str, Any]] = defaultdict(lambda: {"saved": Decimal(0), "unpriced": 0})
    for profile, model, day, currency, requests, prompt, output, money, rest in store.query(sql, parameters):
        try:
            price = price_of(profiles.get(profile), model, date.fromisoformat(day))
        except HotprefixError:
            price = None
        if price is None or price.currency != currency:
            found[currency]["unpriced"] += int(requests)
            continue
        full = int(prompt) * price.input + int(output) * price.output
        found[currency]["saved"] += full - from_pico(int(money) * 1_000_000 + int(rest))
    return {
        currency: {"saved_money": format(one["saved"].normalize(), "f"), "unpriced": one["unpriced"]}
        for currency, one in found.items()
    }


def _series(store: LedgerStore, chosen: Selection, now: float) -> dict[str, Any]:
    """Buckets that have requests, as [number, requests, prompt, read, written, lost]."""
    until = now if chosen.until is None else chosen.until
    since = chosen.since if chosen.since is not None else _first(store, chosen, until)
    span = max(1.0, until - since)
    step = next((step for step in _STEPS if span / step <= _MOST_BUCKETS), _STEPS[-1])
    start = since // step * step
    where, parameters = chosen.where()
    # Rounding half a bucket down is a floor in every database; the little more keeps whole numbers whole.
    sql = (
        "SELECT CAST(ROUND((at - ?) / ? - 0.5 + 0.000000001) AS BIGINT), COUNT(*), SUM(prompt), SUM(read), "
        f"SUM(written), SUM(lost_tokens) FROM ledger_request {where} GROUP BY 1 ORDER BY 1"
    )
    rows = store.query(sql, (float(start), float(step), *parameters))
    buckets = [[int(value) for value in row] for row in rows]
    return {"start": start, "step": step, "end": until, "buckets": buckets}


def _first(store: LedgerStore, chosen: Selection, otherwise: float) -> float:
    where, parameters = chosen.where()
    row = next(iter(store.query(f"SELECT MIN(at) FROM ledger_request {where}", parameters)), None)
    return otherwise if row is None or row[0] is None else float(row[0])


def _first_tokens(store: LedgerStore, chosen: Selection) -> dict[str, Any]:
    """How long the first token took, of requests that read something and of those that read nothing."""
    where, parameters = chosen.where()
    where = (f"{where} AND " if where else "WHERE ") + "first_token IS NOT NULL"
    sql = f"SELECT first_token, read FROM ledger_request {where} ORDER BY at DESC LIMIT {_SAMPLE}"
    hit: list[float] = []
    miss: list[float] = []
    for seconds, read in store.query(sql, parameters):
        (hit if read else miss).append(float(seconds))
    shown = {"hit": _distribution(hit), "miss": _distribution(miss)}
    return shown | {"bounds": _BOUNDS, "is_sample": len(hit) + len(miss) >= _SAMPLE}


def _distribution(seconds: list[float]) -> dict[str, Any]:
    """Quantiles by nearest rank, and how many lie below each bound, the last bin being open."""
    seconds.sort()
    bins = [0] * (len(_BOUNDS) + 1)
    for value in seconds:
        bins[bisect_right(_BOUNDS, value)] += 1
    quantiles = {name: _quantile(seconds, part) for name, part in _QUANTILES.items()}
    return {"count": len(seconds), "bins": bins} | quantiles


def _quantile(ordered: Sequence[float], part: float) -> float | None:
    return ordered[max(0, -int(-len(ordered) * part // 1) - 1)] if ordered else None


def _choices(store: LedgerStore, chosen: Selection, name: str) -> list[list[Any]]:
    """Values of a field with their requests, whatever is chosen for that field itself."""
    where, parameters = chosen.without(name).where()
    sql = (
        f"SELECT {name}, COUNT(*) FROM ledger_request {where} "
        f"GROUP BY {name} ORDER BY 2 DESC, 1 LIMIT {_CHOICES}"
    )
    return [[str(value), int(requests)] for value, requests in store.query(sql, parameters)]
