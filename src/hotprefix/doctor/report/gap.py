"""Ideal against actual: what the difference is made of."""

from __future__ import annotations

from collections import defaultdict

import polars as pl

from hotprefix.diagnosis.reason import Evidence, Reason
from hotprefix.doctor.report.figures import Cause, Gap, Loss, Money, Sums
from hotprefix.doctor.report.sums import money_of, money_sums

_REASONS: dict[Cause, tuple[Reason, ...]] = {
    Cause.PROMPT: (
        Reason.MODEL_CHANGED, Reason.PARAM_CHANGED, Reason.SYSTEM_CHANGED, Reason.TOOLS_REORDERED,
        Reason.TOOLS_CHANGED, Reason.HEAD_TRIMMED, Reason.BLOCK_VANISHED, Reason.BLOCK_INSERTED,
        Reason.IMAGE_REPLACED, Reason.ARG_KEY_ORDER, Reason.WHITESPACE_ONLY, Reason.HISTORY_EDITED,
        Reason.ROLE_CHANGED,
    ),
    Cause.TEMPLATE: (Reason.EXPECTED_TEMPLATE, Reason.GENERATION_PROMPT, Reason.RETOKENISED),
    Cause.MARKERS: (
        Reason.NO_MARKER, Reason.TOO_MANY_MARKERS, Reason.LOOKBACK_EXCEEDED, Reason.WRITE_ONLY,
        Reason.FROZEN_MARKERS, Reason.MODE_CONFLICT, Reason.MODEL_NOT_SUPPORTED,
    ),
    Cause.TTL: (Reason.TTL_EXPIRED,),
    Cause.EVICTION: (Reason.EVICTED,),
    Cause.ROUTING: (Reason.ROUTED_ELSEWHERE, Reason.ROUTER_BLIND, Reason.TENANT_ISOLATED),
    Cause.GRANULARITY: (Reason.BELOW_MIN, Reason.BELOW_BLOCK, Reason.NONE),
    Cause.PENDING: (Reason.WRITE_PENDING, Reason.COLD_FIRST_USE),
    Cause.SERVER: (
        Reason.FLUSHED, Reason.STORE_FAILED, Reason.RESTART_LOST, Reason.NO_ROLLBACK, Reason.STATE_MISSING,
        Reason.FEATURE_DISABLED,
    ),
    Cause.UNKNOWN: (Reason.BEST_EFFORT, Reason.UNKNOWN, Reason.NOT_REPORTED),
}  # fmt: skip
CAUSES: dict[str, Cause] = {reason.value: cause for cause, reasons in _REASONS.items() for reason in reasons}
"""Reasons by cause. A reason that this version does not know is of unknown cause."""


def gap_of(calls: pl.LazyFrame, total: Sums) -> Gap | None:
    """None if no call has a reason."""
    if not total.judged or not total.judged_prompt:
        return None
    judged = calls.filter(
        pl.all_horizontal(pl.col(name).is_not_null() for name in ("reason", "lost", "read", "prompt"))
    )
    lost = pl.col("lost")
    sums = (
        judged.group_by("reason")
        .agg(
            (lost > 0).sum().alias("requests"),
            lost.sum().alias("tokens"),
            lost.filter(pl.col("evidence") == Evidence.INFERRED.value).sum().alias("inferred"),
            lost.filter(pl.col("avoidable")).sum().alias("avoidable"),
        )
        .collect(engine="streaming")
    )
    counts: dict[Cause, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in sums.iter_rows(named=True):
        found = counts[CAUSES.get(row["reason"], Cause.UNKNOWN)]
        for place, name in enumerate(("requests", "tokens", "inferred", "avoidable")):
            found[place] += int(row[name])
    money = _money(judged)
    losses = [
        Loss(cause, requests, tokens, inferred, avoidable, tuple(money[cause]))
        for cause, (requests, tokens, inferred, avoidable) in counts.items()
        if tokens
    ]
    return Gap(
        total.judged_prompt,
        total.judged_read,
        sum(loss.tokens for loss in losses),
        total.judged_prompt / total.prompt if total.prompt else 0.0,
        tuple(sorted(losses, key=lambda loss: (-loss.tokens, loss.cause))),
    )


def _money(judged: pl.LazyFrame) -> dict[Cause, list[Money]]:
    found = (
        judged.filter(pl.col("currency").is_not_null())
        .group_by("reason", "currency")
        .agg(*money_sums("lost_money"))
        .collect(engine="streaming")
    )
    sums: dict[tuple[Cause, str], Money] = {}
    for row in found.iter_rows(named=True):
        amount = money_of(row, "lost_money")
        if amount is None:
            continue
        key = CAUSES.get(row["reason"], Cause.UNKNOWN), amount.currency
        known = sums.get(key)
        sums[key] = amount if known is None else Money(amount.currency, known.amount + amount.amount)
    money: dict[Cause, list[Money]] = defaultdict(list)
    for key, amount in sorted(sums.items()):
        money[key[0]].append(amount)
    return money
