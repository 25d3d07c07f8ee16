from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from hotprefix.app.logs import configure_logs
from hotprefix.app.settings import LogFormat, LogLevel


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    library = logging.getLogger("uvicorn.error")
    yield
    structlog.reset_defaults()
    library.handlers, library.propagate = [], True


@pytest.mark.parametrize(
    ("log_format", "out", "as_json"),
    [
        (LogFormat.AUTO, io.StringIO(), True),
        (LogFormat.AUTO, Terminal(), False),
        (LogFormat.JSON, Terminal(), True),
        (LogFormat.CONSOLE, io.StringIO(), False),
    ],
)
def test_json_unless_people_read_it(log_format: LogFormat, out: io.StringIO, as_json: bool) -> None:
    configure_logs(LogLevel.INFO, log_format, out).info("request", status=200)
    line = out.getvalue()
    assert line.endswith("\n")
    assert "request" in line
    if as_json:
        assert json.loads(line)["status"] == 200
    else:
        with pytest.raises(ValueError, match=r"Expecting|Extra"):
            json.loads(line)


def test_the_least_level() -> None:
    out = io.StringIO()
    log = configure_logs(LogLevel.WARNING, LogFormat.JSON, out)
    log.info("quiet")
    log.warning("loud")
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == ["loud"]


class Gone(io.StringIO):
    """A pipe that nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(text)


def test_an_output_that_is_gone_costs_lines_and_nothing_else() -> None:
    closed = io.StringIO()
    closed.close()
    for out in (Gone(), closed):
        with pytest.raises((OSError, ValueError)):
            out.write("it fails")
        configure_logs(LogLevel.INFO, LogFormat.AUTO, out).error("engine failed")


def test_tracebacks_are_one_line_of_json() -> None:
    out = io.StringIO()
    log = configure_logs(LogLevel.INFO, LogFormat.JSON, out)
    try:
        raise KeyError("why")
    except KeyError as error:
        log.error("failed", exc_info=error)
    (line,) = out.getvalue().splitlines()
    assert "KeyError: 'why'" in json.loads(line)["exception"]


def test_libraries_speak_through_it() -> None:
    out = io.StringIO()
    configure_logs(LogLevel.INFO, LogFormat.JSON, out)
    logging.getLogger("uvicorn.error").warning("odd %s", "bytes")
    logging.getLogger("uvicorn.error").info("chatter")
    structlog.get_logger("hotprefix.engine").info("step")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["odd bytes", "step"]
    assert (lines[0]["level"], lines[0]["logger"]) == ("warning", "uvicorn.error")
