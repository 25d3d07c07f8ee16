"""Taking the address before the model is loaded: a taken one is known at once, and probes are answered."""

from __future__ import annotations

import errno
import socket

from hotprefix.base.errors import HotprefixError

_BACKLOG = 2048
"""Connections that may wait to be accepted: uvicorn's own number."""


class CannotListenError(HotprefixError):
    """The address can't be listened on."""


def bind(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet. Port 0 takes a free one. Raises `CannotListenError`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CannotListenError(f"There is no address for host '{host}': {error}.") from None
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise cannot_listen(host, port, error) from None
    sock.set_inheritable(False)
    return sock


def listen(sock: socket.socket) -> None:
    """Accept connections on a bound socket. Raises `CannotListenError`."""
    try:
        sock.listen(_BACKLOG)
    except OSError as error:
        host, port = sock.getsockname()[:2]
        raise cannot_listen(host, port, error) from None


def cannot_listen(host: str, port: int, error: OSError) -> CannotListenError:
    """What the system said, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return CannotListenError(f"Port {port} on {host} is taken; choose another with --port.")
    if error.errno == errno.EACCES:
        return CannotListenError(f"Port {port} needs privileges; choose one above 1023 with --port.")
    if error.errno == errno.EADDRNOTAVAIL:
        return CannotListenError(f"{host} is not an address of this machine; choose another with --host.")
    return CannotListenError(f"Can't listen on {host}, port {port}: {error.strerror}.")


def url_of(sock: socket.socket) -> str:
    """Where to reach the server from this machine."""
    host, port = sock.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
