"""The KV format that a compiled model wants: read from it, never assumed."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class CacheInput:
    """One cache tensor of the model: its name, element type (`bf16`, `u8`, `u4`, …) and the
    shape of one block, for instance [kv heads, 32, head size]."""

    name: str
    element_type: str
    bits: int
    block_shape: tuple[int, ...]

    @property
    def block_bytes(self) -> int:
        """Bytes of one block of this tensor. Sub-byte types are packed."""
        return prod(self.block_shape) * self.bits // 8


@dataclass(frozen=True, slots=True)
class KvFormat:
    """All cache tensors of a model, in order, and the tokens in a block.

    `describe()` goes into the cache's scope: KV of one format is never read as another.
    """

    block_size: int
    inputs: tuple[CacheInput, ...]

    @property
    def block_bytes(self) -> int:
        """Bytes of one block over all layers, keys and values."""
        return sum(cache.block_bytes for cache in self.inputs)

    @property
    def bytes_per_token(self) -> float:
        """Bytes that a token takes over all layers, scales included."""
        return self.block_bytes / self.block_size

    @property
    def precision(self) -> str:
        """The element types in a word: `u8`, or `bf16+u8` where layers differ."""
        return "+".join(dict.fromkeys(cache.element_type for cache in self.inputs))

    @property
    def element_type(self) -> str:
        """Element type of the keys of the first layer."""
        return self.inputs[0].element_type

    @property
    def is_quantised(self) -> bool:
        """Whether a block's bytes depend on when its tokens were written.

        Integer formats carry scales over the whole block, renewed as it fills.
        """
        return any(cache.bits <= 8 for cache in self.inputs)

    def describe(self) -> str:
        """A stable text that differs whenever the bytes would be laid out differently."""
        parts = [f"{cache.name}:{cache.element_type}{list(cache.block_shape)}" for cache in self.inputs]
        return f"paged/{self.block_size}/" + ";".join(parts)
