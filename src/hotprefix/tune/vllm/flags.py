"""The options of `vllm serve` that are written, in one place.

Names, defaults and meanings were read in the wheel of the version below (`vllm/engine/arg_utils.py`,
`vllm/config/cache.py`, `vllm/config/scheduler.py`, `vllm/config/parallel.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

CHECKED_VERSION = "0.33.0"
GONE = {"--swap-space": "--kv-offloading-size"}
"""Options that guides still name, and what has taken their place. `--swap-space` went with 0.18.0."""


@dataclass(frozen=True, slots=True)
class Flag:
    """`name` as on the command line; `meaning` in a few words."""

    name: str
    meaning: str


TENSOR_PARALLEL = Flag("--tensor-parallel-size", "GPUs that share every layer")
MODEL_LENGTH = Flag("--max-model-len", "most tokens of prompt and answer")
BLOCK_SIZE = Flag("--block-size", "tokens of a block, the unit of allocation and reuse")
MEMORY_SHARE = Flag("--gpu-memory-utilization", "share of each GPU that vLLM may take")
CACHE_TYPE = Flag("--kv-cache-dtype", "type of keys and values")
BATCHED_TOKENS = Flag("--max-num-batched-tokens", "most tokens of a step")
SEQUENCES = Flag("--max-num-seqs", "most requests of a step")
PREFIX_CACHING = Flag("--enable-prefix-caching", "shared prefixes are computed once")
OFFLOADING_SIZE = Flag(
    "--kv-offloading-size", "GiB of host memory, over all GPUs, for blocks that leave them"
)
OFFLOADING_BACKEND = Flag("--kv-offloading-backend", "who moves them")

FLAGS = (
    TENSOR_PARALLEL,
    MODEL_LENGTH,
    BLOCK_SIZE,
    MEMORY_SHARE,
    CACHE_TYPE,
    BATCHED_TOKENS,
    SEQUENCES,
    PREFIX_CACHING,
    OFFLOADING_SIZE,
    OFFLOADING_BACKEND,
)
