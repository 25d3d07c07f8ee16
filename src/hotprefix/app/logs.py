"""Structured logs on stderr: one line per event, JSON or for people."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TextIO, cast

import orjson
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from hotprefix.app.settings import LogFormat, LogLevel


def configure_logs(level: LogLevel, log_format: LogFormat, out: TextIO) -> FilteringBoundLogger:
    """Send the whole process's logs to `out`; called once, when a command starts."""
    sink = Lossy(out)
    as_json = log_format is LogFormat.JSON or (log_format is LogFormat.AUTO and not sink.isatty())
    structlog.configure(
        processors=_processors(as_json=as_json, colors=sink.isatty()),
        wrapper_class=structlog.make_filtering_bound_logger(level.value),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", sink)),
        cache_logger_on_first_use=False,
    )
    log = cast("FilteringBoundLogger", structlog.get_logger())
    _forward_libraries(log, ("uvicorn.error", "asyncio"))
    return log


class Lossy:
    """Writes to `out` while it can be written to.

    A terminal that was closed, a broken pipe or a full disk costs log lines, never the thread that logs.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def isatty(self) -> bool:
        """Whether people read it."""
        with suppress(ValueError):
            return self._out.isatty()
        return False

    def write(self, text: str) -> int:
        """Write `text`, or lose it. Returns its length."""
        # A closed file raises ValueError.
        with suppress(OSError, ValueError):
            self._out.write(text)
        return len(text)

    def flush(self) -> None:
        """Send on what was written, if that is possible."""
        with suppress(OSError, ValueError):
            self._out.flush()


def _processors(*, as_json: bool, colors: bool) -> list[Processor]:
    common: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if as_json:
        return [*common, structlog.processors.format_exc_info, _dumps]
    return [*common, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=_plain)]


_plain = structlog.dev.plain_traceback


def _dumps(_logger: object, _name: str, event: EventDict) -> str:
    return orjson.dumps(event, default=repr).decode()


class Forward(logging.Handler):
    """Passes the records of libraries that use `logging` on to a structlog logger."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)


def _forward_libraries(log: FilteringBoundLogger, names: tuple[str, ...]) -> None:
    """Warnings and errors of these libraries go through `log`."""
    handler = Forward(log)
    for name in names:
        library = logging.getLogger(name)
        library.handlers = [handler]
        library.setLevel(logging.WARNING)
        library.propagate = False
