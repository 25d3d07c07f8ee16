"""OpenVINO GenAI's continuous batching pipeline on the same work, in a process of its own.

Run: python -m hotprefix.bench.peer_openvino_genai MODEL.gguf --out peer.json
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import openvino
import openvino_genai
import orjson
import typer

from hotprefix.bench.workload import QUICK, Sizes, Workload

_CACHE_GIB = 2
_BATCH_TOKENS = 2048


class Peer:
    """The pipeline with prefix caching, asked in token ids."""

    def __init__(self, model: Path) -> None:
        settings = openvino_genai.SchedulerConfig()
        settings.cache_size = _CACHE_GIB
        settings.enable_prefix_caching = True
        settings.max_num_batched_tokens = _BATCH_TOKENS
        self._pipeline: Any = openvino_genai.ContinuousBatchingPipeline(str(model), settings, "CPU")

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


def measure(peer: Peer, sizes: Sizes, seed: int) -> dict[str, Any]:
    """Seconds of hits on a known prefix, and of bursts on a known shared beginning."""
    work = Workload(seed, sizes.highest_id)
    each = max(1, sizes.hits // sizes.misses)
    peer.seconds([work.ids(sizes.prefix + sizes.suffix)], 1)
    found: dict[str, list[float]] = {"miss": [], "hit": [], "concurrent": []}
    for _ in range(sizes.misses):
        prefix = work.ids(sizes.prefix)
        found["miss"].append(peer.seconds([prefix + work.ids(sizes.suffix)], 1))
        found["hit"] += [peer.seconds([prefix + work.ids(sizes.suffix)], 1) for _ in range(each)]
    for _ in range(sizes.rounds):
        shared = work.ids(sizes.shared)
        peer.seconds([shared + work.ids(sizes.own)], 1)
        prompts = [shared + work.ids(sizes.own) for _ in range(sizes.clients)]
        found["concurrent"].append(peer.seconds(prompts, sizes.out))
    about = (
        f"OpenVINO GenAI {version('openvino-genai')}, continuous batching, prefix caching, "
        f"{_CACHE_GIB} GiB cache of its default precision, in process"
    )
    return {"about": about, "sizes": asdict(sizes), **found}


def main(
    model: Path,
    out: Annotated[Path, typer.Option("--out")],
    seed: Annotated[int, typer.Option("--seed")] = 1,
    quick: Annotated[bool, typer.Option("--quick")] = False,
) -> None:
    """Measure and write the figures to a JSON file."""
    out.write_bytes(orjson.dumps(measure(Peer(model), QUICK if quick else Sizes(), seed)))


if __name__ == "__main__":
    typer.run(main)
