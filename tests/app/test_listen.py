from __future__ import annotations

import socket

import pytest

from hotprefix.app.listen import CannotListenError, bind, url_of


def test_a_free_port_is_taken() -> None:
    with bind("127.0.0.1", 0) as sock:
        assert url_of(sock) == f"http://127.0.0.1:{sock.getsockname()[1]}"


def test_every_network_is_reached_through_the_own_address() -> None:
    with bind("0.0.0.0", 0) as sock:
        assert url_of(sock).startswith("http://127.0.0.1:")


def test_a_taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListenError, match=f"Port {port} on 127.0.0.1 is taken.*--port"):
            bind("127.0.0.1", port)


@pytest.mark.parametrize(("host", "says"), [("192.0.2.1", "--host"), ("no.such.invalid", "no address")])
def test_an_address_that_is_not_ours(host: str, says: str) -> None:
    with pytest.raises(CannotListenError, match=says):
        bind(host, 0)
