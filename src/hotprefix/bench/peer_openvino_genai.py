"""OpenVINO GenAI's continuous batching pipeline, to be asked from another process.

Run: python -m hotprefix.bench.peer_openvino_genai MODEL.gguf
First it prints {"about": …}. Then each line {"prompts": [[token id, …], …], "out": n} on stdin is
answered by {"seconds": …}: the time for exactly n greedy tokens after each prompt, all at once.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import openvino_genai
import orjson

_CACHE_GIB = 2
_BATCH_TOKENS = 2048


class Pipeline:
    """The pipeline with prefix caching, asked in token ids."""

    def __init__(self, model: Path) -> None:
        settings = openvino_genai.SchedulerConfig()
        settings.cache_size = _CACHE_GIB
        settings.enable_prefix_caching = True
        settings.max_num_batched_tokens = _BATCH_TOKENS
        self._pipeline: Any = openvino_genai.ContinuousBatchingPipeline(str(model), settings, "CPU")

    @property
    def about(self) -> str:
        """What it is and how it is set up."""
        return (
            f"OpenVINO GenAI {version('openvino-genai')}, continuous batching, prefix caching, "
            f"{_CACHE_GIB} GiB cache of its default precision, in process"
        )

    def seconds(self, prompts: Sequence[Sequence[int]], out: int) -> float:
        """Time for exactly `out` greedy tokens after each prompt, all asked at once."""
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = out
        config.ignore_eos = True
        config.do_sample = False
        inputs = [openvino.Tensor(np.array([prompt], dtype=np.int64)) for prompt in prompts]
        start = time.perf_counter()
        self._pipeline.generate(inputs, [config] * len(inputs))
        return time.perf_counter() - start


def main() -> None:
    """Answer until stdin ends."""
    # Whatever the library prints must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    pipeline = Pipeline(Path(sys.argv[1]))
    answers.write(orjson.dumps({"about": pipeline.about}) + b"\n")
    for line in sys.stdin.buffer:
        ask = orjson.loads(line)
        answers.write(orjson.dumps({"seconds": pipeline.seconds(ask["prompts"], ask["out"])}) + b"\n")


if __name__ == "__main__":
    main()
