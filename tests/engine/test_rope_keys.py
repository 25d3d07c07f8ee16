"""The keys in the arena are turned as the scaling says: compared with NumPy, beyond the trained length."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import openvino as ov
import pytest

from hotprefix.base.errors import ContextLengthExceeded
from hotprefix.base.ids import BlockId, RequestId
from hotprefix.engine.graph import compile_paged_model, kv_format, read_paged_model
from hotprefix.engine.request import GenerationRequest, Sampling
from hotprefix.engine.runner import PagedRunner, Row
from hotprefix.engine.settings import MIB, EngineSettings
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.rope_wish import RopeWish
from hotprefix.models.store import ModelStore
from hotprefix.pages.arena import BlockArena
from tests.engine.bits import Bench
from tests.models.reference import rotate
from tests.tiny_gguf import write_tiny_gguf

TOKENS = [5 + 7 * step % 250 for step in range(96)]
PLACES = (0, 2016, 7904)
"""Where a run of `TOKENS` begins: the model was trained on 2,048 positions."""
PLAIN = 10_000.0 ** (-np.arange(32) / 32)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("rope") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(source: Path) -> ModelManifest:
    return ModelStore(source.parent / "store").resolve(str(source))


def cached_keys(model: ModelManifest, precision: str, place: int) -> np.ndarray:
    """Keys of the first layer that the engine's graph writes for `TOKENS` at `place`, [tokens, head size]."""
    core = ov.Core()
    compiled = compile_paged_model(
        core, read_paged_model(core, model.graph, model.ropes), precision, threads=None
    )
    kv = kv_format(compiled)
    arena = BlockArena(kv, 256)
    table = [BlockId(block) for block in range(255)]
    PagedRunner(compiled, arena, BlockId(255)).run([Row(TOKENS, place, table, True)])
    first = place // kv.block_size
    raw = np.ascontiguousarray(arena.buffers[0][first : first + 3])
    kinds = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}
    values = raw.view(kinds[kv.inputs[0].element_type])
    if values.dtype == np.uint16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.reshape(len(TOKENS), 64).astype(np.float64)


def expected_keys(source: Path, place: int, frequencies: np.ndarray, factor: float) -> np.ndarray:
    """The same by the weights of the file: norm, projection, rotation."""
    weights = {
        tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
        for tensor in gguf.GGUFReader(source).tensors
    }
    hidden = weights["token_embd.weight"][TOKENS]
    hidden = hidden / np.sqrt((hidden**2).mean(-1, keepdims=True) + 1e-5) * weights["blk.0.attn_norm.weight"]
    keys = hidden @ weights["blk.0.attn_k.weight"].T
    # The converter puts the pairs of a llama half a head apart.
    keys = np.concatenate([keys[:, ::2], keys[:, 1::2]], -1)
    turns = (place + np.arange(len(TOKENS)))[:, None] * frequencies
    return rotate(keys, factor * np.exp(1j * turns), interleaved=False)


def scaled(kind: str) -> tuple[np.ndarray, float]:
    """Frequencies and factor of a scaling by four, written down anew."""
    if kind == "linear":
        return PLAIN / 4, 1.0
    if kind == "ntk":
        return (10_000.0 * 4 ** (64 / 62)) ** (-np.arange(32) / 32), 1.0
    turned = 2048 * PLAIN / (2 * np.pi)  # turns within the trained length
    first, last = int((turned > 32).sum()) - 1, int((turned > 1).sum())
    share = [min(max((pair - first) / (last - first), 0), 1) for pair in range(32)]
    return PLAIN * (1 - np.array(share)) + PLAIN / 4 * np.array(share), 1 + np.log(4) / 10


@pytest.mark.parametrize("kind", ["linear", "ntk", "yarn"])
@pytest.mark.parametrize("precision", ["f32", "auto"])
def test_keys_are_turned_by_the_scaled_frequencies(
    model: ModelManifest, source: Path, kind: str, precision: str
) -> None:
    """In the processor's own precision, too: angles must not be rounded to 16 bits."""
    stretched = RopeWish.parse(f"{kind}:4").applied_to(model)
    tolerance = 2e-3 if precision == "f32" else 0.03
    for place in PLACES:
        expected = expected_keys(source, place, *scaled(kind))
        found = cached_keys(stretched, precision, place)
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    plain = expected_keys(source, PLACES[-1], PLAIN, 1.0)
    assert np.abs(plain - expected).max() > 0.3 * np.abs(plain).max(), "the scaling changes little: no test"


def test_the_trained_length_and_the_scaled_one_are_enforced(model: ModelManifest) -> None:
    """What was trained is served; more only with scaling, and then so much more."""
    for manifest, most in ((model, 2048), (RopeWish.parse("yarn:2").applied_to(model), 4096)):
        bench = Bench(manifest, EngineSettings(arena_bytes=16 * MIB))
        assert bench.engine.model.context_length == most
        for tokens, fits in ((most - 1, True), (most, False), (2 * most, False)):
            request = GenerationRequest(RequestId("r"), [7] * tokens, Sampling(max_tokens=1))
            if fits:
                bench.engine.check(request)
            else:
                with pytest.raises(ContextLengthExceeded, match=f"context is {most} tokens"):
                    bench.engine.check(request)


def test_scalings_share_no_keys(model: ModelManifest) -> None:
    wishes = ["linear:2", "linear:4", "ntk:2", "yarn:2"]
    manifests = [model, *(RopeWish.parse(wish).applied_to(model) for wish in wishes)]
    settings = EngineSettings(arena_bytes=MIB)
    roots = {Bench(manifest, settings).engine.root_for("tenant") for manifest in manifests}
    assert len(roots) == len(manifests)
