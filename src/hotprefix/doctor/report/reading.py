"""Logs of any kind → one table of calls."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl

from hotprefix.doctor.reading import UnreadableFile
from hotprefix.doctor.report.bodies import BodySpool
from hotprefix.doctor.report.call import Call
from hotprefix.doctor.report.opening import Form, documents, form_of, is_gzipped, opened
from hotprefix.doctor.report.pricing import Pricing
from hotprefix.doctor.report.sources import ledger
from hotprefix.doctor.report.sources.answers import AnswerLog
from hotprefix.doctor.report.sources.litellm import LiteLlmLog, is_litellm
from hotprefix.doctor.report.sources.otel import OtelExport, is_otel
from hotprefix.doctor.report.sources.server_log import ServerLog, is_server_log
from hotprefix.doctor.report.table import CallTable, Choice
from hotprefix.doctor.report.trouble import Trouble, Troubles

_SAMPLE = 200
_SLICE = 20_000
_URLS = ("postgresql://", "postgres://")

Documents = Iterator[tuple[int, Any]]


class LogReader:
    """Reads one log after the other into `table`; `folder` has room for what is unpacked on the way."""

    def __init__(
        self,
        table: CallTable,
        folder: Path,
        choice: Choice,
        pricing: Pricing,
        troubles: Troubles,
        bodies: BodySpool | None = None,
    ) -> None:
        self._table = table
        self._folder = folder
        self._choice = choice
        self._pricing = pricing
        self._troubles = troubles
        self._answers = AnswerLog(troubles, bodies)
        self._litellm = LiteLlmLog(troubles, bodies)
        self._unpacked = 0

    def read(self, log: str) -> None:
        """Read a file, or a ledger at a postgresql:// URL. Raises UnreadableFile or LedgerError."""
        if log.startswith(_URLS):
            self._table.add_frames(ledger.postgres_frames(log))
            return
        path = Path(log)
        form = form_of(path)
        if form in (Form.SQLITE, Form.PARQUET, Form.CSV) and is_gzipped(path):
            path = self._unpack(path)
        if form is Form.SQLITE:
            self._table.add_frames(ledger.sqlite_frames(path))
        elif form in (Form.PARQUET, Form.CSV):
            self._read_columns(path, form, log)
        else:
            self._take(self._calls(log, documents(path, form)))

    def _take(self, calls: Iterable[Call]) -> None:
        for call in calls:
            if not self._choice.takes(call):
                if call.at is None and self._choice.needs_time:
                    self._troubles.add(Trouble.NO_TIME)
                continue
            self._pricing.price(call)
            self._table.add(call)

    def _calls(self, log: str, found: Documents) -> Iterator[Call]:
        """The first documents tell whose log it is."""
        first = list(islice(found, _SAMPLE))
        objects = [document for _, document in first if isinstance(document, dict)]
        if not objects:
            raise UnreadableFile(f"{log} holds no JSON objects. Give a log that docs/REPORT.md lists.")
        whole = chain(first, found)
        if any(map(is_otel, objects)):
            return OtelExport(self._troubles).calls(log, whole)
        if any(map(is_litellm, objects)):
            return self._litellm.calls(log, whole)
        if any(map(is_server_log, objects)):
            return ServerLog(self._troubles).calls(log, whole)
        return self._answers.calls(log, whole)

    def _read_columns(self, path: Path, form: Form, log: str) -> None:
        try:
            table = pl.scan_csv(path, infer_schema=False) if form is Form.CSV else pl.scan_parquet(path)
            columns = table.collect_schema().names()
            if ledger.is_export(columns):
                self._table.add_lazy(ledger.export_table(table))
                return
            if not {"call_type", "prompt_tokens", "completion_tokens"} <= set(columns):
                raise UnreadableFile(
                    f"{log} is a table, but neither an export of a ledger (hotprefix usage --export) nor "
                    f"LiteLLM's spend logs. Its columns are: {', '.join(columns[:12])}."
                )
            self._take(self._litellm.calls(log, self._rows(table)))
        except pl.exceptions.PolarsError as error:
            raise UnreadableFile(f"{log} can't be read as {form}: {str(error).splitlines()[0]}") from error

    def _rows(self, table: pl.LazyFrame) -> Documents:
        """Rows with their lines, where a row is a line. By way of Parquet, where slices are found fast."""
        place = self._folder / f"rows-{self._unpacked}.parquet"
        self._unpacked += 1
        table.sink_parquet(place)
        rows, start = pl.scan_parquet(place), 0
        while (part := rows.slice(start, _SLICE).collect()).height:
            for number, row in enumerate(part.iter_rows(named=True)):
                yield start + number + 2, row
            start += part.height

    def _unpack(self, path: Path) -> Path:
        place = self._folder / f"unpacked-{self._unpacked}"
        self._unpacked += 1
        with opened(path) as packed, place.open("wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
        return place
