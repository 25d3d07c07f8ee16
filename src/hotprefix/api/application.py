"""The ASGI application: which path leads where."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp

from hotprefix.api.admittance import Admittance
from hotprefix.api.anthropic.endpoint import CountEndpoint, MessagesEndpoint
from hotprefix.api.anthropic.rules import anthropic_rules, compatible_rules
from hotprefix.api.boundary import Boundary
from hotprefix.api.chat import ChatEndpoint
from hotprefix.api.completions import CompletionsEndpoint
from hotprefix.api.dashboard.routes import dashboard_routes
from hotprefix.api.dashscope.endpoint import NativeEndpoint, multimodal_route, text_route
from hotprefix.api.named_caches import named_cache_routes
from hotprefix.api.probes import HealthEndpoint, MetricsEndpoint, ModelEndpoint, ModelsEndpoint, ReadyEndpoint
from hotprefix.api.responses.routes import responses_routes
from hotprefix.api.service import Service
from hotprefix.api.tokenize import TokenizeEndpoint

_PREFIXES = ("/v1", "/compatible-mode/v1")


def build_application(service: Service) -> ASGIApp:
    """Everything this server answers."""
    routes: list[BaseRoute] = [
        Route("/healthz", HealthEndpoint(), methods=["GET"]),
        Route("/readyz", ReadyEndpoint(service), methods=["GET"]),
        Route("/metrics", MetricsEndpoint(service), methods=["GET"]),
        Route("/tokenize", TokenizeEndpoint(service), methods=["POST"]),
    ]
    chat, completions = ChatEndpoint(service), CompletionsEndpoint(service)
    models, model = ModelsEndpoint(service), ModelEndpoint(service)
    for prefix in _PREFIXES:
        routes += [
            Route(f"{prefix}/chat/completions", chat, methods=["POST"]),
            Route(f"{prefix}/completions", completions, methods=["POST"]),
            Route(f"{prefix}/models", models, methods=["GET"]),
            Route(f"{prefix}/models/{{name:path}}", model, methods=["GET"]),
        ]
    text, multimodal = NativeEndpoint(service, text_route), NativeEndpoint(service, multimodal_route)
    routes += [
        Route("/api/v1/services/aigc/text-generation/generation", text, methods=["POST"]),
        Route("/api/v1/services/aigc/multimodal-generation/generation", multimodal, methods=["POST"]),
    ]
    for root, rules in (("", anthropic_rules), ("/apps/anthropic", compatible_rules)):
        messages, count = MessagesEndpoint(service, rules), CountEndpoint(service, rules)
        routes += [
            Route(f"{root}/v1/messages", messages, methods=["POST"]),
            Route(f"{root}/v1/messages/count_tokens", count, methods=["POST"]),
        ]
    routes += responses_routes(service)
    routes += named_cache_routes(service)
    routes += dashboard_routes(service)
    for part in service.admin:
        routes += part.routes()
    router = Router(routes, redirect_slashes=False)
    return Boundary(Admittance(router, service.doorman), service)
