"""The page and what it loads: files of this package, held in memory."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from importlib import resources

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from hotprefix.api.respond import send_bytes

PAGE = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
SECURITY = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(frozen=True, slots=True)
class StaticFile:
    """`tag` changes with the content."""

    content: bytes
    kind: str
    tag: str


def load_files() -> dict[str, StaticFile]:
    """All files by name."""
    folder = resources.files("hotprefix.api.dashboard") / "static"
    found = {}
    for file in folder.iterdir():
        kind = next((kind for suffix, kind in _TYPES.items() if file.name.endswith(suffix)), None)
        if kind is not None:
            content = file.read_bytes()
            tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
            found[file.name] = StaticFile(content, kind, tag)
    return found


class StaticFiles:
    """Answers with one file: the page, or the one that the path names."""

    def __init__(self) -> None:
        self._files = load_files()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = self._files.get(scope["path_params"].get("name", PAGE))
        if file is None:
            raise HTTPException(404)
        headers = [*SECURITY, (b"etag", file.tag.encode()), (b"cache-control", b"no-cache")]
        if Headers(scope=scope).get("if-none-match") == file.tag:
            await send_bytes(send, 304, b"", headers)
        else:
            await send_bytes(send, 200, file.content, [*headers, (b"content-type", file.kind.encode())])
