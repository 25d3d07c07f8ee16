"""Models, health, readiness and metrics: small answers that touch no request in flight."""

from __future__ import annotations

from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import Receive, Scope, Send

from hotprefix.api.prompting import require_model
from hotprefix.api.respond import send_bytes, send_json
from hotprefix.api.service import Service
from hotprefix.engine.front import ServedModel


def model_object(model: ServedModel, name: str) -> dict[str, Any]:
    """OpenAI's shape, with the context's length as vLLM tells it, and how keys and values are kept."""
    return {
        "id": name,
        "object": "model",
        "created": model.created,
        "owned_by": "hotprefix",
        "root": model.name,
        "max_model_len": model.context_length,
        "kv_precision": model.kv_precision,
        "kv_bytes_per_token": model.kv_bytes_per_token,
    }


class ModelsEndpoint:
    """`GET /v1/models`."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        model = self._service.engine.model
        names = dict.fromkeys((model.name, *model.aliases))
        data = [model_object(model, name) for name in names]
        await send_json(send, 200, {"object": "list", "data": data})


class ModelEndpoint:
    """`GET /v1/models/{name}`."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["name"]
        require_model(self._service.engine.model, name)
        await send_json(send, 200, model_object(self._service.engine.model, name))


class HealthEndpoint:
    """`GET /healthz`: the process answers."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, {"status": "ok"})


class ReadyEndpoint:
    """`GET /readyz`: 200 while a request would be served at full speed."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._service.inflight.draining:
            await send_json(send, 503, {"status": "draining"}, [(b"retry-after", b"5")])
        elif not self._service.engine.ready:
            await send_json(send, 503, {"status": "starting"}, [(b"retry-after", b"1")])
        elif not self._service.gate.is_open:
            await send_json(send, 503, {"status": "warming"}, [(b"retry-after", b"1")])
        else:
            await send_json(send, 200, {"status": "ready"})


class MetricsEndpoint:
    """`GET /metrics` in Prometheus' text format."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = generate_latest(self._service.registry)
        await send_bytes(send, 200, body, [(b"content-type", CONTENT_TYPE_LATEST.encode())])
