"""A transformer's shape, as far as memory depends on it."""

from __future__ import annotations

from dataclasses import dataclass

DTYPE_BYTES = {"float32": 2.0, "float16": 2.0, "bfloat16": 2.0, "float8_e4m3fn": 1.0}
"""Of an element in vLLM, which computes models of 32 bits in 16 (`--dtype auto`)."""
HALVED = "float32"


@dataclass(frozen=True, slots=True)
class HfModel:
    """Sizes in elements; `weights` in bytes, and `weights_from` where they are known from.

    `experts` is 0 for a dense model; `expert_inner` is the inner size of one expert.
    """

    name: str
    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context: int
    dtype: str
    tied: bool
    attention_bias: bool
    head_norms: bool
    experts: int
    expert_inner: int
    weights: int
    weights_from: str

    @property
    def bytes_per_element(self) -> float:
        """Of keys and values with `--kv-cache-dtype auto`."""
        return DTYPE_BYTES[self.dtype]
