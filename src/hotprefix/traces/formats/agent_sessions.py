"""Sessions of coding agents, as kv-cache-tester records them: one JSON file a session.

`{id, block_size, hash_id_scope: "local", requests: [{t, in, out, hash_ids, …}]}`. `t` is in seconds
from the session's start; ids mean something within the session only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.fields import count, ids, required, seconds
from hotprefix.traces.lines import Advance, read_whole
from hotprefix.traces.request import RawRequest


class AgentSessionFormat:
    """See the module."""

    name = "agent-session"
    names_blocks = True

    def accepts(self, path: Path, head: bytes) -> bool:
        return head.lstrip()[:1] == b"{" and b'"hash_id_scope"' in head and b'"requests"' in head

    def block_size(self, path: Path) -> int | None:
        size = count(_session(path), "block_size", str(path))
        if size < 1:
            raise BrokenTrace(f"{path}: 'block_size' is {size}.")
        return size

    def read(self, path: Path, advance: Advance) -> Iterator[RawRequest]:
        session = _session(path)
        scope = str(required(session, "id", str(path)))
        if session.get("hash_id_scope") == "global":
            scope = ""
        requests = required(session, "requests", str(path))
        if not isinstance(requests, list):
            raise BrokenTrace(f"{path}: 'requests' has to be a list.")
        for number, record in enumerate(requests, 1):
            place = f"{path}: request {number}"
            if not isinstance(record, dict):
                raise BrokenTrace(f"{place} is no JSON object.")
            yield RawRequest(
                seconds(record, "t", place),
                scope,
                ids(record, "hash_ids", place),
                count(record, "in", place),
                count(record, "out", place),
            )
        advance(path.stat().st_size)


def _session(path: Path) -> dict[str, Any]:
    try:
        session = orjson.loads(read_whole(path))
    except orjson.JSONDecodeError as error:
        raise BrokenTrace(f"{path} is no JSON: {error}.") from error
    if not isinstance(session, dict):
        raise BrokenTrace(f"{path} is no JSON object.")
    return session
