"""Reading a request's body: bounded in size and time, then parsed strictly."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import orjson
from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from hotprefix.api.settings import ApiSettings
from hotprefix.base.errors import InvalidRequest, PayloadTooLarge, RequestError

_DISCARD_FACTOR = 4


class ClientGoneError(Exception):
    """The client closed the connection before its request was complete."""


class BodyTimeoutError(RequestError):
    """The body did not arrive in time."""

    status = 408
    code = "request_timeout"


async def read_json(scope: Scope, receive: Receive, settings: ApiSettings) -> dict[str, Any]:
    """The body as a JSON object.

    Raises `PayloadTooLarge`, `BodyTimeoutError`, `InvalidRequest` or `ClientGoneError`.
    """
    return parse_object(await _in_time(scope, receive, settings))


async def read_optional_json(scope: Scope, receive: Receive, settings: ApiSettings) -> dict[str, Any]:
    """As `read_json`; a body that is empty is an empty object."""
    body = await _in_time(scope, receive, settings)
    return parse_object(body) if body.strip() else {}


async def _in_time(scope: Scope, receive: Receive, settings: ApiSettings) -> bytes:
    try:
        async with asyncio.timeout(settings.body_timeout):
            return await _read(scope, receive, settings.body_limit)
    except TimeoutError:
        raise BodyTimeoutError(f"The body did not arrive within {settings.body_timeout:g} seconds.") from None


async def _read(scope: Scope, receive: Receive, limit: int) -> bytes:
    declared = Headers(scope=scope).get("content-length")
    if declared is not None and _exceeds(declared, limit):
        await discard(receive, _DISCARD_FACTOR * limit)
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            parts.clear()
            if message.get("more_body", False):
                await discard(receive, _DISCARD_FACTOR * limit)
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _exceeds(declared: str, limit: int) -> bool:
    """Whether a `Content-Length` is above the limit; a number of any length may stand there."""
    return declared.isdecimal() and (len(declared) > 18 or int(declared) > limit)


async def discard(receive: Receive, budget: int) -> None:
    """Read on for a while: a client that is cut off while sending never sees the answer."""
    with contextlib.suppress(ClientGoneError):
        while budget > 0:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            budget -= len(message.get("body", b""))
            if not message.get("more_body", False):
                return


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is over the limit of {limit} bytes; send less.")


def parse_object(body: bytes) -> dict[str, Any]:
    """Strict JSON (no NaN, no lone surrogates) whose top level is an object."""
    if not body.strip():
        raise InvalidRequest("The body is empty; send a JSON object.", code="invalid_json")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(_json_fault(body, error), code="invalid_json") from None
    if not isinstance(document, dict):
        raise InvalidRequest("The body must be a JSON object.", code="invalid_json")
    return document


def _json_fault(body: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as broken:
        return f"The body is not valid UTF-8 at byte {broken.start}; send JSON encoded as UTF-8."
    return f"The body is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}."
