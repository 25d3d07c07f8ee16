"""Logs of any kind → the requests of one prompt, with what a comparison needs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import polars as pl

from hotprefix.doctor.prompts.errors import ExperimentError
from hotprefix.doctor.prompts.experiment.failures import FAILED, failed_calls
from hotprefix.doctor.report.columns import frame_of
from hotprefix.doctor.report.pricing import Pricing
from hotprefix.doctor.report.reading import LogReader
from hotprefix.doctor.report.table import CallTable, Choice
from hotprefix.doctor.report.trouble import Troubles
from hotprefix.profiles.loader import ProfileBook

_FAILURES = (FAILED, "aborted", "failed", "cancelled")
_CUTS = ("length", "max_tokens", "max_output_tokens", "incomplete")
_KNOWN_SESSIONS = 0.9
_KEYS = ("request_id", "session")
_READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": pl.read_csv,
    ".parquet": pl.read_parquet,
    ".json": pl.read_json,
}


class Unit(StrEnum):
    """What the split was made by. `AUTO`: the session if nearly all requests name one, else the request."""

    AUTO = "auto"
    SESSION = "session"
    TENANT = "tenant"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class PromptCalls:
    """Requests of a prompt; `unit` is what `AUTO` came to."""

    table: pl.DataFrame
    unit: Unit


def all_calls(
    logs: Sequence[str], book: ProfileBook, choice: Choice, profile: str | None = None
) -> pl.DataFrame:
    """Every request that names its prompt, failed ones included. Raises UnreadableFile, LedgerError."""
    troubles = Troubles()
    with tempfile.TemporaryDirectory(prefix="hotprefix-prompts-") as name:
        folder = Path(name)
        (folder / "calls").mkdir()
        table = CallTable(folder / "calls", choice, troubles)
        reader = LogReader(table, folder, choice, Pricing(book, troubles, profile), troubles)
        for log in logs:
            reader.read(log)
        found = table.table().filter(pl.col("prompt_name").is_not_null()).collect(engine="streaming")
    failed = [call for log in logs for call in failed_calls(log) if choice.takes(call)]
    return pl.concat([found, frame_of(failed)]) if failed else found


def prompt_calls(
    calls: pl.DataFrame, prompt: str, unit: Unit, scores: pl.DataFrame | None = None
) -> PromptCalls:
    """Those of `prompt`, ready for a comparison. Raises `ExperimentError` if there are none."""
    own = calls.filter((pl.col("prompt_name") == prompt) & pl.col("prompt_version").is_not_null())
    if not own.height:
        raise ExperimentError(
            f"No request in these logs names a version of {prompt!r}. Send 'x-hotprefix-prompt: "
            f"{prompt}@VERSION', or log prompt_name and prompt_version."
        )
    if unit is Unit.AUTO:
        known = own["session"].count() / own.height
        unit = Unit.SESSION if known >= _KNOWN_SESSIONS else Unit.REQUEST
    row = pl.format("row {}", pl.int_range(pl.len()))
    named = (
        row if unit is Unit.REQUEST else pl.coalesce(pl.format(f"{unit.value} {{}}", pl.col(unit.value)), row)
    )
    finish = pl.col("finish")
    table = own.with_columns(
        named.alias("unit"),
        finish.is_in(_FAILURES).fill_null(False).alias("failed"),
        pl.when(~finish.is_in(_FAILURES)).then(finish.is_in(_CUTS)).alias("cut"),
        pl.col("money").cast(pl.Float64) * 1e-12,
    )
    return PromptCalls(_scored(table, scores), unit)


def read_scores(file: Path, column: str = "score") -> pl.DataFrame:
    """A CSV, JSON or Parquet file with `request_id` or `session`, and a number. Raises `ExperimentError`."""
    try:
        found = _READERS.get(file.suffix.lower(), pl.read_ndjson)(file)
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise ExperimentError(f"{file} can't be read: {str(error).splitlines()[0]}") from error
    key = next((name for name in _KEYS if name in found.columns), None)
    if key is None or column not in found.columns:
        raise ExperimentError(
            f"{file} has the columns {', '.join(found.columns[:12])}; it needs request_id or session, and "
            f"{column}."
        )
    try:
        typed: pl.DataFrame = found.select(
            pl.col(key).cast(pl.String), pl.col(column).cast(pl.Float64).alias("score")
        )
    except pl.exceptions.PolarsError as error:
        raise ExperimentError(f"{file}: {column} holds something that is no number.") from error
    return typed.drop_nulls().filter(pl.col("score").is_finite()).unique(subset=[key], keep="last")


def _scored(table: pl.DataFrame, scores: pl.DataFrame | None) -> pl.DataFrame:
    """A score of a session counts once, at its first request."""
    if scores is None:
        return table.with_columns(pl.lit(None, pl.Float64).alias("score"))
    key = scores.columns[0]
    joined = table.join(scores, on=key, how="left", maintain_order="left")
    if not joined["score"].count():
        raise ExperimentError(f"No score has a {key} that is in the logs.")
    if key == "session":
        first = pl.int_range(pl.len()).over("session") == 0
        joined = joined.with_columns(pl.when(first).then(pl.col("score")).alias("score"))
    return joined
