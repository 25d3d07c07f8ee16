"""Sends prefixes to a server, one after the other, and adds up what they took."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import httpx

from hotprefix.api.wishes import KEEP_HEADER, KEEP_SHORT
from hotprefix.app.warm_file import Prefix
from hotprefix.base.clock import Clock
from hotprefix.base.errors import HotprefixError

_PATIENCE = 600.0
_ODD = (ValueError, KeyError, IndexError, TypeError, AttributeError)
"""What reading an answer of another program's may raise."""


class CannotWarm(HotprefixError):
    """The server can't be reached, or refuses the key."""


@dataclass(frozen=True, slots=True)
class Warmed:
    """What became of a prefix: tokens computed for it and tokens that were warm already, in `seconds`.

    `problem` is what the server said if it refused.
    """

    prefix: Prefix
    computed: int = 0
    known: int = 0
    seconds: float = 0.0
    problem: str = ""


def credentials(key: str | None) -> dict[str, str]:
    """Headers with an API key, if there is one. Raises `CannotWarm` for what can't be one."""
    if not key:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise CannotWarm("The API key has characters that no key has. Check that it was copied as it is.")
    return {"authorization": f"Bearer {key}"}


def client_of(url: str, key: str | None) -> httpx.AsyncClient:
    """Speaks to the server at `url`. Raises `CannotWarm` for what can't be an address or a key."""
    headers = credentials(key)
    try:
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=_PATIENCE)
    except httpx.InvalidURL as error:
        raise CannotWarm(
            f"{url} is no address of a server: {error}. Write one like http://HOST:PORT."
        ) from None


async def warmed(
    client: httpx.AsyncClient, prefixes: Sequence[Prefix], clock: Clock
) -> AsyncIterator[Warmed]:
    """Each prefix once it is warm, or refused. Raises `CannotWarm` where going on is of no use."""
    model = await _model(client)
    for prefix in prefixes:
        body = prefix.body if prefix.path.endswith("/caches") else {"model": model} | prefix.body
        start = clock.now()
        response = await _asked(client, "POST", prefix.path, body)
        yield replace(_result(prefix, response), seconds=clock.now() - start)


async def _model(client: httpx.AsyncClient) -> str:
    response = await _asked(client, "GET", "/v1/models", None)
    if response.status_code != 200:
        raise _no_server(response)
    try:
        return str(response.json()["data"][0]["id"])
    except _ODD:
        raise _no_server(response) from None


async def _asked(
    client: httpx.AsyncClient, method: str, path: str, body: dict[str, object] | None
) -> httpx.Response:
    try:
        response = await client.request(method, path, json=body, headers={KEEP_HEADER: KEEP_SHORT})
    except httpx.HTTPError as error:
        why = str(error).rstrip(".") or type(error).__name__
        raise CannotWarm(f"{client.base_url} can't be reached: {why}. Is the server running?") from None
    if response.status_code in (401, 403, 503):
        raise CannotWarm(f"The server refuses: {_said(response)}")
    return response


def _result(prefix: Prefix, response: httpx.Response) -> Warmed:
    if response.status_code not in (200, 201):
        return Warmed(prefix, problem=_said(response))
    try:
        answer = response.json()
        if "usage" not in answer:
            return Warmed(prefix, answer["computed_tokens"], answer["reused_tokens"])
        usage = answer["usage"]
        known = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        return Warmed(prefix, usage["prompt_tokens"] - known, known)
    except _ODD:
        raise _no_server(response) from None


def _no_server(response: httpx.Response) -> CannotWarm:
    return CannotWarm(f"{response.url} does not answer as Hotprefix would: {_said(response)}.")


def _said(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except _ODD:
        return f"status {response.status_code}"
