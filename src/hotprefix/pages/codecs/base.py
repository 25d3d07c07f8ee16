"""The interface of a storage codec."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Block = NDArray[np.uint8]
"""A block's bytes as `BlockArena` lays them out: [format.block_bytes], tensors in the format's order."""


class BrokenPayload(ValueError):
    """A payload that this codec can't have made."""


class BlockCodec(Protocol):
    """Block ↔ bytes. Stateless after construction and safe on any thread."""

    @property
    def name(self) -> str: ...

    @property
    def is_lossless(self) -> bool:
        """Whether `decode` gives back the very bytes of the block's tokens."""
        ...

    @property
    def block_bytes(self) -> int:
        """Bytes of a full block's payload (the expected size where it varies)."""
        ...

    def encode(self, block: Block, position: int, tokens: int) -> bytes:
        """The payload of a block whose first token is at `position`; only its first `tokens` slots count.

        What lies in the slots behind is not written: it may be another request's.
        """
        ...

    def decode(self, payload: bytes, position: int, tokens: int, out: Block) -> None:
        """Fill `out` from a payload of the same position and count; unused slots become zero.

        Raises `BrokenPayload`.
        """
        ...
