"""Reasons for logs that hold their requests: each prompt against the earlier ones."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from hotprefix.diagnosis.reason import MissReport
from hotprefix.doctor.explain.trial import Judged, Trial
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rendering import Renderer, UnrenderableRequest
from hotprefix.doctor.report.bodies import BodySpool
from hotprefix.doctor.report.figures import Compared
from hotprefix.doctor.report.pricing import Pricing, rounded
from hotprefix.doctor.report.trouble import Trouble, Troubles

_COLUMNS: dict[str, type[pl.DataType]] = {
    "body": pl.Int64, "reason": pl.String, "detail": pl.String, "evidence": pl.String, "share": pl.Float64,
    "avoidable": pl.Boolean, "path": pl.String, "advice_en": pl.String, "advice_zh": pl.String,
    "saved": pl.Int64, "priced_in": pl.String,
}  # fmt: skip


class Comparer:
    """Judges the `most` latest requests of a spool, oldest first, by the rules of their vendors."""

    def __init__(self, renderer: Renderer, pricing: Pricing, troubles: Troubles, wall: float) -> None:
        # Tokens of another tokenizer will do: only shares of the prompt go to the tokens of the log.
        self._renderer = renderer
        self._trial = Trial(estimates=renderer.model.is_estimate, wall=wall)
        self._pricing = pricing
        self._troubles = troubles

    def judged(self, bodies: BodySpool, most: int) -> tuple[pl.DataFrame, Compared]:
        """What was found, for `with_reasons`, and how much was compared."""
        rows = list(self._rows(bodies, most))
        frame = pl.DataFrame(rows, schema=_COLUMNS, orient="row")
        if len(bodies) > most:
            self._troubles.add(Trouble.NOT_COMPARED, count=len(bodies) - most)
        return frame, Compared(len(rows), len(bodies))

    def _rows(self, bodies: BodySpool, most: int) -> Iterator[tuple[object, ...]]:
        for number, recorded in bodies.latest(most):
            try:
                judged = self._trial.judge(self._renderer.render(recorded))
            except UnrenderableRequest:
                self._troubles.add(Trouble.UNRENDERABLE, recorded.place)
                continue
            if judged.reported is None or judged.reported.read is None:
                # What should have come from the cache says nothing of what did.
                continue
            yield (number, *self._row(judged, recorded))

    def _row(self, judged: Judged, recorded: Recorded) -> tuple[object, ...]:
        report: MissReport = judged.report
        share = report.lost_tokens / judged.tokens if judged.tokens else 0.0
        rate = self._pricing.rate(recorded.model, None, recorded.dialect.value, recorded.at)
        return (
            str(report.reason),
            report.detail,
            str(report.evidence),
            share,
            report.avoidable,
            None if report.divergence is None else report.divergence.path,
            report.advice_en,
            report.advice_zh,
            None if rate is None else rounded(rate.saved(str(judged.mode))),
            None if rate is None else rate.currency,
        )


def with_reasons(calls: pl.LazyFrame, found: pl.DataFrame) -> pl.LazyFrame:
    """The calls with what comparing them has found, where the log tells no reason itself.

    Lost tokens are those of the log: at most what was not read.
    """
    same = ("reason", "detail", "evidence", "avoidable", "path", "advice_en", "advice_zh")
    own = found.lazy().rename({name: f"found_{name}" for name in same})
    joined = calls.join(own, on="body", how="left", nulls_equal=False)
    is_new = pl.col("reason").is_null() & pl.col("found_reason").is_not_null()
    fresh = pl.col("prompt") - pl.col("read")
    lost = pl.min_horizontal((pl.col("prompt") * pl.col("share")).round().cast(pl.Int64), fresh)
    is_priced = (
        is_new
        & pl.col("saved").is_not_null()
        & (pl.col("currency").is_null() | (pl.col("currency") == pl.col("priced_in")))
    )
    filled = joined.with_columns(lost=pl.when(is_new).then(lost).otherwise(pl.col("lost")))
    return filled.with_columns(
        *(pl.when(is_new).then(pl.col(f"found_{name}")).otherwise(pl.col(name)).alias(name) for name in same),
        lost_money=pl.when(is_priced).then(pl.col("lost") * pl.col("saved")).otherwise(pl.col("lost_money")),
        currency=pl.when(is_priced).then(pl.col("priced_in")).otherwise(pl.col("currency")),
    ).select(calls.collect_schema().names())
