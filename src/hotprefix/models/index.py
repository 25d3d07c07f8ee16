"""Finds a file on a Python package index by the simple API (PEP 691 JSON, PEP 503 HTML)."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import httpx

PYPI = "https://pypi.org/simple/"
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


def index_url(env: Mapping[str, str], given: str | None = None) -> str:
    """The index to ask: `given`, else what pip or uv are told by `env`, else PyPI."""
    names = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
    found = given or next((env[name] for name in names if env.get(name)), PYPI)
    # uv allows a name before the address: "mirror=https://…".
    return re.sub(r"^[\w.-]+=(?=https?://)", "", found.strip())


def tls_context(env: Mapping[str, str]) -> ssl.SSLContext:
    """The certificate authorities that `env` names for pip and friends, else the system's."""
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
        path = Path(env.get(name) or "")
        if env.get(name) and path.exists():
            folder = str(path) if path.is_dir() else None
            return ssl.create_default_context(cafile=None if folder else str(path), capath=folder)
    return httpx.create_ssl_context()


def without_secret(url: str) -> str:
    """`url` without user name and password, for messages."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def find_file(client: httpx.Client, index: str, project: str, filename: str) -> str | None:
    """Address of `filename` in `project`, None if the project lacks it.

    Raises `httpx.HTTPError` when the index can't be reached or refuses.
    """
    page = f"{index.rstrip('/')}/{project}/"
    response = client.get(page, headers={"Accept": _ACCEPT})
    response.raise_for_status()
    base = str(response.url)
    if "json" in response.headers.get("content-type", ""):
        files = response.json().get("files", [])
        links = {str(entry.get("filename")): str(entry.get("url")) for entry in files}
    else:
        links = _html_links(response.text)
    link = links.get(filename)
    return None if link is None else _with_login(urljoin(base, link).partition("#")[0], page)


def _with_login(url: str, page: str) -> str:
    """Keep the index's user name and password for files on the same host."""
    file, index = urlsplit(url), urlsplit(page)
    login, at, host = index.netloc.rpartition("@")
    return file._replace(netloc=login + at + host).geturl() if at and file.netloc == host else url


def _html_links(page: str) -> dict[str, str]:
    parser = _Links()
    parser.feed(page)
    return {unquote(urlsplit(link).path).rpartition("/")[2]: link for link in parser.links}


class _Links(HTMLParser):
    """Collects the addresses of all anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]
