"""Options of `hotprefix serve` for the tiers behind the arena."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hotprefix.app.sizes import parse_size

_PANEL = "KV tiers"


def _size(text: str) -> int:
    try:
        return 0 if text == "0" else parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _option(text: str, **more: Any) -> Any:
    return typer.Option(rich_help_panel=_PANEL, help=text, **more)


KvRam = Annotated[
    int, _option("Memory for prefixes that leave the arena; 0: none.", parser=_size, metavar="SIZE")
]
KvDisk = Annotated[
    int,
    _option(
        "Disk space in the state folder for prefixes, which then survive a restart; 0: none.",
        parser=_size,
        metavar="SIZE",
    ),
]
KvRedis = Annotated[
    int,
    _option("Space in Redis or Valkey for prefixes; 0: none.", parser=_size, metavar="SIZE"),
]
RedisUrl = Annotated[str, _option("Where Redis or Valkey is.", envvar="HOTPREFIX_REDIS_URL")]
KvCodec = Annotated[
    str,
    _option(
        "Form of prefixes outside the arena: raw (exact), int8, layered, int4, fp8, mixed (docs/CODECS.md)."
    ),
]
KvDiskKey = Annotated[
    Path | None,
    _option("File with 32 bytes that encrypt the disk and Redis tiers (extra: hotprefix[crypt])."),
]
