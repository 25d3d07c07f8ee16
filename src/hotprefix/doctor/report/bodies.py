"""Request bodies, put aside on disk until they can be compared in the order of time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from xxhash import xxh3_64_intdigest

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lenient import as_sent
from hotprefix.doctor.place import Place
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.report.call import Call
from hotprefix.doctor.report.usage import Usage, told_as


class BodySpool:
    """Takes bodies in any order and gives those of the latest times back, oldest first.

    In memory it holds some twenty bytes a body; the bodies lie in `file`.
    """

    def __init__(self, file: Path) -> None:
        self._stream = file.open("w+b")
        self._times = array("d")
        self._prints = array("Q")
        self._offsets = array("Q", [0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def __len__(self) -> int:
        return len(self._times)

    def add(self, recorded: Recorded, call: Call, usage: Usage) -> int:
        """Put a call's request aside; its number leads back to it. Without times, order is that of adding."""
        at = call.at
        place = recorded.place
        around = {
            "dialect": recorded.dialect.value,
            "file": place.file,
            "line": place.line,
            "session": call.session or "",
            "headers": dict(recorded.headers),
            "at": at,
            "first_token": call.first_token,
        }
        answer = recorded.response or {}
        response = {name: answer[name] for name in ("id", "output") if name in answer}
        response["usage"] = told_as(recorded.dialect, usage)
        data = as_sent([around, recorded.body, response])
        self._stream.write(data)
        self._prints.append(xxh3_64_intdigest(data))
        self._times.append(float(len(self)) if at is None else at)
        self._offsets.append(self._offsets[-1] + len(data))
        return len(self._times) - 1

    def latest(self, most: int) -> Iterator[tuple[int, Recorded]]:
        """The `most` latest requests with their numbers, oldest first; equal times by content."""
        self._stream.flush()
        order = sorted(range(len(self)), key=lambda number: (self._times[number], self._prints[number]))
        for number in order[-most:] if most else []:
            yield number, self._recorded(number)

    def _recorded(self, number: int) -> Recorded:
        self._stream.seek(self._offsets[number])
        around, body, response = orjson.loads(
            self._stream.read(self._offsets[number + 1] - self._offsets[number])
        )
        return _built(around, body, response)


def _built(around: dict[str, Any], body: Any, response: Any) -> Recorded:
    return Recorded(
        Dialect(around["dialect"]),
        body,
        Place(around["file"], around["line"]),
        response=response,
        at=around["at"],
        first_token=around["first_token"],
        session=around["session"],
        headers=around["headers"],
    )
