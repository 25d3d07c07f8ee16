"""Which paths speak Responses, and in which dialect."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from hotprefix.api.responses.create import CreateEndpoint
from hotprefix.api.responses.dialect import DashScopeDialect, OpenAiDialect
from hotprefix.api.responses.stored import InputItemsEndpoint, ResponseEndpoint
from hotprefix.api.service import Service

RESPONSES = "/v1/responses"
COMPATIBLE_RESPONSES = (
    "/compatible-mode/v1/responses",
    "/api/v2/apps/protocols/compatible-mode/v1/responses",
)
"""The second is Model Studio's older path, which its examples still show."""


def responses_routes(service: Service) -> list[BaseRoute]:
    """For all paths the stored responses are the same ones."""
    one, items = ResponseEndpoint(service), InputItemsEndpoint(service)
    openai, dashscope = CreateEndpoint(service, OpenAiDialect()), CreateEndpoint(service, DashScopeDialect())
    routes: list[BaseRoute] = []
    for path, create in ((RESPONSES, openai), *((path, dashscope) for path in COMPATIBLE_RESPONSES)):
        routes += [
            Route(path, create, methods=["POST"]),
            Route(f"{path}/{{response_id}}", one, methods=["GET", "DELETE"]),
            Route(f"{path}/{{response_id}}/input_items", items, methods=["GET"]),
        ]
    return routes
