"""The outermost layer: request ids, the error envelope, one log line per request."""

from __future__ import annotations

import asyncio
import re
import uuid

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hotprefix.api.body import ClientGoneError
from hotprefix.api.envelopes import encoded, envelope_of
from hotprefix.api.errors import problem_of
from hotprefix.api.record import Record, attach
from hotprefix.api.respond import send_bytes
from hotprefix.api.service import Service
from hotprefix.api.wishes import wishes_of, wishing
from hotprefix.base.errors import Draining

_SANE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
_CLIENT_CLOSED = 499


class Boundary:
    """Pure ASGI; whatever is raised below ends here."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("app", self)  # makes the router raise instead of answering in plain text
        record = Record(
            request_id=request_id_of(scope),
            method=scope["method"],
            path=scope["path"],
            started=self._service.clock.now(),
        )
        attach(scope, record)
        try:
            await self._guarded(scope, receive, self._labelled(send, record), record)
        finally:
            self._log(record)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
        try:
            with wishing(wishes_of(scope)):
                await self._app(scope, receive, send)
        except ClientGoneError:
            record.client_gone = True
            record.status = record.status or _CLIENT_CLOSED
        except asyncio.CancelledError:
            # The server stops and doesn't wait any longer, for instance for a body that never ends.
            if not self._service.inflight.draining:
                raise
            if record.status is None:
                await self._tell(Draining("The server is shutting down."), send, record)
        except Exception as error:
            if record.status is not None:
                self._service.log.error("response failed", request_id=record.request_id, exc_info=error)
                raise
            await self._tell(error, send, record)

    async def _tell(self, error: Exception, send: Send, record: Record) -> None:
        problem = problem_of(error, record.request_id)
        record.error = problem.code or problem.kind
        if problem.kind == "server_error":
            self._service.log.error("request failed", request_id=record.request_id, exc_info=error)
        envelope = envelope_of(record.path)
        headers = [(b"content-type", b"application/json"), *problem.headers]
        headers += envelope.headers(record.request_id)
        if problem.status in (408, 413):
            headers.append((b"connection", b"close"))
        body = encoded(envelope, problem, record.request_id)
        await send_bytes(send, envelope.status(problem), body, headers)

    def _labelled(self, send: Send, record: Record) -> Send:
        label = (b"x-request-id", record.request_id.encode())

        async def labelled(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                headers = message["headers"] = [*message.get("headers", ()), label]
                if self._service.inflight.draining:
                    headers[:] = [pair for pair in headers if pair[0] != b"connection"]
                    headers.append((b"connection", b"close"))
            await send(message)

        return labelled

    def _log(self, record: Record) -> None:
        log = self._service.log
        fields = record.fields(self._service.clock.now())
        if record.generated or record.error is not None or record.client_gone:
            (log.warning if (record.status or 0) >= 500 else log.info)("request", **fields)
        else:
            log.debug("request", **fields)


def request_id_of(scope: Scope) -> str:
    wanted = Headers(scope=scope).get("x-request-id", "")
    return wanted if _SANE_ID.fullmatch(wanted) else uuid.uuid4().hex
