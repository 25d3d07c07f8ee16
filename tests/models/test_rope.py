"""Rotary scaling as configs state it: frequencies, attention factors and lengths."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotprefix.base.errors import BrokenModelFile, UnsupportedModel
from hotprefix.models.folders import FolderFacts
from hotprefix.models.gguf_file import read_gguf
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.rope import Rope, RopeKind, RopeScaling, rope_from_json
from hotprefix.models.rope_config import config_ropes, gguf_rope
from hotprefix.models.rope_wish import RopeWish
from tests.tiny_gguf import Shape, write_tiny_gguf

REFERENCE: dict[str, Any] = json.loads(
    (Path(__file__).parent / "rope_frequencies.json").read_text(encoding="utf-8")
)
"""What the functions of `transformers.modeling_rope_utils` 5.24.0 gave for these configs, in float32."""
CONFIG = {
    "head_dim": 64,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "rope_theta": 10_000.0,
    "max_position_embeddings": 4096,
}
PLAIN = Rope(10_000.0, 64, 4096, 4096)


def only(config: dict[str, Any]) -> Rope:
    (rope,) = config_ropes(config, "config.json")
    return rope


def scaled_by(**scaling: Any) -> Rope:
    return only({**CONFIG, "rope_scaling": scaling})


@pytest.mark.parametrize("name", REFERENCE)
def test_frequencies_are_those_of_transformers(name: str) -> None:
    case = REFERENCE[name]
    rope = only(case["config"])
    np.testing.assert_allclose(rope.frequencies(), case["frequencies"], rtol=1e-6)
    assert rope.attention_factor == pytest.approx(case["attention_factor"], rel=1e-12)
    # The way transformers 5 writes the same.
    config = dict(case["config"])
    parameters = {**config.pop("rope_scaling"), "rope_theta": config.pop("rope_theta")}
    assert only({**config, "rope_parameters": parameters}) == rope


def test_ntk_keeps_the_fastest_and_divides_the_slowest() -> None:
    rope = replace(PLAIN, scaling=RopeScaling(RopeKind.NTK, 4.0))
    plain, scaled = PLAIN.frequencies(), rope.frequencies()
    assert scaled[0] == plain[0] == 1.0
    assert scaled[-1] == pytest.approx(plain[-1] / 4)
    # bloc97's own code: base * alpha ** (dim / (dim - 2)).
    base = 10_000 * 4 ** (64 / 62)
    np.testing.assert_allclose(scaled, [1 / base ** (i / 64) for i in range(0, 64, 2)])


@pytest.mark.parametrize(
    ("scaling", "trained", "context"),
    [
        ({}, 4096, 4096),
        ({"rope_type": "default"}, 4096, 4096),
        # Nobody says whether 4,096 is before or after scaling: no more than it is promised.
        ({"rope_type": "linear", "factor": 4.0}, 4096, 4096),
        ({"rope_type": "linear", "factor": 4.0, "original_max_position_embeddings": 2048}, 2048, 8192),
        ({"rope_type": "dynamic", "factor": 4.0}, 4096, 4096),
        ({"rope_type": "dynamic", "factor": 4.0, "original_max_position_embeddings": 1024}, 1024, 1024),
        ({"type": "yarn", "factor": 4.0}, 4096, 16_384),
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}, 1024, 4096),
        ({"type": "yarn", "original_max_position_embeddings": 1024}, 1024, 4096),
    ],
)
def test_lengths(scaling: dict[str, Any], trained: int, context: int, tmp_path: Path) -> None:
    config = {**CONFIG, "rope_scaling": scaling or None}
    rope = only(config)
    assert (rope.trained_length, rope.context_length) == (trained, context)
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert FolderFacts(tmp_path).context_length == context
    assert rope_from_json(json.loads(json.dumps(asdict(rope)))) == rope


def test_dynamic_scaling_leaves_the_trained_length_as_it_is() -> None:
    rope = scaled_by(rope_type="dynamic", factor=8.0)
    np.testing.assert_array_equal(rope.frequencies(), PLAIN.frequencies())


def test_llama_3_in_gguf_divides_each_frequency(tmp_path: Path) -> None:
    divisors = np.linspace(1, 8, 32)
    rope = gguf_rope(read_gguf(write_tiny_gguf(tmp_path / "m.gguf", rope_factors=divisors)))
    np.testing.assert_allclose(rope.frequencies(), PLAIN.frequencies() / divisors, rtol=1e-6)
    assert rope.context_length == 2048
    with pytest.raises(UnsupportedModel, match="3 rotary factors do not fit 32 frequencies"):
        replace(rope, scaling=RopeScaling(RopeKind.DIVISORS, divisors=(1.0, 2.0, 3.0))).frequencies()


@pytest.mark.parametrize(
    ("metadata", "trained", "context", "attention"),
    [
        ({}, 2048, 2048, 1.0),
        ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, 2048, 2048, 1.0),
        ({"rope.scale_linear": 4.0}, 2048, 2048, 1.0),
        ({"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, 2048, 2048, 1.0),
        (
            {
                "rope.scaling.type": "linear",
                "rope.scaling.factor": 4.0,
                "rope.scaling.original_context_length": 1024,
            },
            1024,
            4096,
            1.0,
        ),
        ({"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, 2048, 8192, 1 + 0.1 * np.log(4)),
        (
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 4.0,
                "rope.scaling.original_context_length": 512,
                "rope.scaling.attn_factor": 0.5,
            },
            512,
            2048,
            0.5 + 0.05 * np.log(4),
        ),
    ],
)
def test_gguf_metadata(
    tmp_path: Path, metadata: dict[str, Any], trained: int, context: int, attention: float
) -> None:
    rope = gguf_rope(read_gguf(write_tiny_gguf(tmp_path / "m.gguf", shape=Shape(layers=1), more=metadata)))
    assert (rope.trained_length, rope.context_length) == (trained, context)
    assert rope.attention_factor == pytest.approx(attention)
    slowest = PLAIN.frequencies()[-1]
    is_scaled = len(metadata) and metadata.get("rope.scaling.type") != "none"
    assert rope.frequencies()[-1] == pytest.approx(slowest / 4 if is_scaled else slowest)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"rope.scaling.type": "longrope"}, "scales its positions by 'longrope'; from GGUF, linear and yarn"),
        ({"rope.scaling.type": "yarn", "rope.scaling.factor": -1.0}, "not a positive number"),
        ({"rope.scaling.type": "yarn", "rope.scaling.yarn_ext_factor": 0.5}, "yarn_ext_factor"),
    ],
)
def test_gguf_that_is_refused(tmp_path: Path, metadata: dict[str, Any], words: str) -> None:
    file = read_gguf(write_tiny_gguf(tmp_path / "m.gguf", shape=Shape(layers=1), more=metadata))
    with pytest.raises((UnsupportedModel, BrokenModelFile), match=words):
        gguf_rope(file)


@pytest.mark.parametrize(
    ("scaling", "words"),
    [
        ({"rope_type": "longrope", "short_factor": [1.0], "long_factor": [2.0]}, "by 'longrope'; served are"),
        ({"rope_type": "yarn"}, "'factor' is None, not a positive number"),
        ({"rope_type": "yarn", "factor": "four"}, "'factor' is 'four'"),
        ({"rope_type": "yarn", "factor": True}, "'factor' is True"),
        ({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}, "not below"),
        ({"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 0.5}, "original_max"),
    ],
)
def test_configs_that_are_refused(scaling: dict[str, Any], words: str) -> None:
    with pytest.raises((UnsupportedModel, BrokenModelFile), match=words):
        scaled_by(**scaling)


def test_configs_that_say_nothing() -> None:
    assert config_ropes({}, "config.json") == ()
    assert config_ropes({"max_position_embeddings": 1024}, "config.json") == ()
    assert config_ropes({"rope_theta": 1e4}, "config.json") == ()


def test_layers_of_several_kinds() -> None:
    parts = {
        "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    config = {"text_config": {**CONFIG, "rope_parameters": parts}}
    far, near = config_ropes(config, "config.json")
    assert (far.base, near.base) == (1e6, 1e4)
    assert far.frequencies()[0] == 1 / 8 and near.scaling is None
    old = {**CONFIG, "rope_theta": 1e6, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    assert config_ropes({**old, "rope_local_base_freq": 1e4}, "config.json") == (far, near)


def manifest(*ropes: Rope) -> ModelManifest:
    return ModelManifest("m", "llama", "", Path(), "f" * 64, 4096, None, (), False, "", 0, ropes)


@pytest.mark.parametrize(("text", "context"), [("linear:2", 8192), ("ntk:2.5", 10_240), ("yarn:4", 16_384)])
def test_a_wish_makes_another_model(text: str, context: int) -> None:
    before, wish = manifest(PLAIN), RopeWish.parse(text)
    after = wish.applied_to(before)
    assert str(wish) == text
    assert after.context_length == after.ropes[0].context_length == context
    assert after.ropes[0].trained_length == 4096
    assert after.ropes[0].frequencies()[-1] == pytest.approx(PLAIN.frequencies()[-1] / wish.factor)
    assert after.ropes[0].attention_factor == (1 + 0.1 * np.log(4) if text == "yarn:4" else 1)
    assert after.fingerprint == wish.applied_to(before).fingerprint


def test_no_two_scalings_share_a_fingerprint() -> None:
    wishes = [RopeWish.parse(text) for text in ("linear:2", "linear:3", "ntk:2", "yarn:2")]
    prints = {wish.applied_to(manifest(PLAIN)).fingerprint for wish in wishes} | {"f" * 64}
    assert len(prints) == 5


@pytest.mark.parametrize(
    "text", ["yarn", "yarn:", "yarn:1", "yarn:nan", "yarn:-2", "dynamic:2", "4", "yarn:inf"]
)
def test_wishes_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"KIND:FACTOR|is no factor"):
        RopeWish.parse(text)


def test_models_that_can_not_be_scaled() -> None:
    wish = RopeWish.parse("yarn:2")
    scaled = replace(PLAIN, scaling=RopeScaling(RopeKind.LINEAR, 2.0))
    with pytest.raises(UnsupportedModel, match="scaled already, by 'linear', to 4,096 tokens"):
        wish.applied_to(manifest(scaled))
    for ropes in ((), (PLAIN, replace(PLAIN, base=1e6))):
        with pytest.raises(UnsupportedModel, match="don't tell of one rotary embedding"):
            wish.applied_to(manifest(*ropes))
