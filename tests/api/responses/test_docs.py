"""`docs/responses.md` names every path of the Responses API."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.routing import Route, Router

from hotprefix.api.responses.routes import COMPATIBLE_RESPONSES, RESPONSES
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process

PAGE = Path(__file__).resolve().parents[3] / "docs" / "responses.md"


@pytest.mark.anyio
async def test_every_route_is_listed() -> None:
    async with in_process(ScriptedEngine()) as server:
        shown = {
            (method, route.path)
            for route in routes(server)
            for method in (route.methods or set()) - {"HEAD"}
            if "/responses" in route.path
        }
    text = PAGE.read_text(encoding="utf-8")
    listed = {tuple(found) for found in re.findall(r"^\| `(\w+) (/v1\S+)` \|", text, re.MULTILINE)}
    assert {(method, path) for method, path in shown if path.startswith("/v1/")} == listed
    for prefix in (path.removesuffix(RESPONSES) for path in COMPATIBLE_RESPONSES):
        assert f"`{prefix}`" in text
        assert {
            (method, path.removeprefix(prefix)) for method, path in shown if path.startswith(prefix)
        } == listed


def routes(server: Server) -> list[Route]:
    app = server.app
    while not isinstance(app, Router):
        app = app._app  # type: ignore[attr-defined]  # the layers around the router
    return [route for route in app.routes if isinstance(route, Route)]
