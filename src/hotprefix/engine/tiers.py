"""The tiers that the operator asked for, around the KV format of a compiled model."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import structlog

from hotprefix.base.clock import Clock
from hotprefix.base.errors import UnsupportedModel
from hotprefix.pages.codecs.base import BlockCodec
from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.codecs.catalogue import build_codec
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary
from hotprefix.tiers.base import BlockStore
from hotprefix.tiers.cipher import read_cipher
from hotprefix.tiers.disk import DiskStore
from hotprefix.tiers.guard import GuardedStore
from hotprefix.tiers.placement import Costs, Placement
from hotprefix.tiers.ram import RamStore
from hotprefix.tiers.redis import RedisStore
from hotprefix.tiers.settings import TierSettings
from hotprefix.tiers.stack import TierStack
from hotprefix.tiers.storage import BlockStorage

RAW, MIXED = "raw", "mixed"
_LEAST_BLOCKS = 5
_RECORD_BYTES = 1024
"""More than any tier counts for a record besides its block."""
_log = structlog.get_logger("hotprefix.tiers")


class CodecFacts(NamedTuple):
    """What codecs need to know of the model, worked out when one asks."""

    rotary: Callable[[], Rotary | None]
    calibration: Callable[[], Calibration | None]


def open_tiers(
    settings: TierSettings,
    kv: KvFormat,
    facts: CodecFacts,
    scope: bytes,
    clock: Clock,
) -> TierStack:
    """The stack for `settings`, fastest tier first. `scope` names model, KV format and deployment.

    Raises `UnsupportedModel` for a codec that does not exist or fit and for a tier that is too small for
    the model's blocks, and `StoreError` if the disk folder can't be used. A Redis that is not there is a
    tier without hits until it comes.
    """
    raw = build_codec(RAW, kv, None)
    try:
        codec = raw if settings.codec == RAW else _codec(settings.codec, kv, facts)
    except ValueError as error:
        raise UnsupportedModel(f"--kv-codec: {error}") from None
    _require_room(settings, raw.block_bytes)
    storage = BlockStorage(scope, kv.block_bytes, codec, {RAW: raw})
    placement = Placement(Costs(block_bytes=codec.block_bytes))
    tiers = [
        GuardedStore(store, clock, complain=lambda problem: _log.warning("tier", problem=problem))
        for store in _stores(settings, scope, clock)
    ]
    return TierStack(tiers, storage, clock, placement)


def _require_room(settings: TierSettings, block_bytes: int) -> None:
    """A tier that takes no block would be an option without effect."""
    # A disk tier takes nothing larger than a quarter of it; codecs keep some blocks as they are.
    least = _LEAST_BLOCKS * (block_bytes + _RECORD_BYTES)
    sizes = {
        "--kv-ram": settings.ram_bytes,
        "--kv-disk": settings.disk_bytes,
        "--kv-redis": settings.redis_bytes,
    }
    for option, size in sizes.items():
        if 0 < size < least:
            raise UnsupportedModel(
                f"{option} of {size:,} bytes is too small for this model, whose blocks take {block_bytes:,}; "
                f"give it at least {least:,} bytes, or leave it out"
            )


def _codec(text: str, kv: KvFormat, facts: CodecFacts) -> BlockCodec:
    if text.partition(":")[0] == MIXED:
        return build_codec(text, kv, facts.rotary(), calibration=facts.calibration())
    return build_codec(text, kv, facts.rotary())


def _stores(settings: TierSettings, scope: bytes, clock: Clock) -> list[BlockStore]:
    cipher = None if settings.disk_key is None else read_cipher(settings.disk_key)
    stores: list[BlockStore] = []
    if settings.ram_bytes:
        stores.append(RamStore(settings.ram_bytes, scope, clock))
    if settings.disk_bytes and settings.disk_folder is not None:
        stores.append(DiskStore(settings.disk_folder, settings.disk_bytes, scope, clock, cipher))
    if settings.redis_bytes:
        stores.append(RedisStore(settings.redis_url, settings.redis_bytes, scope, clock, cipher))
    return stores
