"""A model's shape from a `config.json` in Hugging Face's format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotprefix.base.errors import BrokenModelFile, UnknownModel, UnsupportedModel
from hotprefix.tune.vllm.known_models import KNOWN
from hotprefix.tune.vllm.parameters import parameters, weight_bytes
from hotprefix.tune.vllm.shape import DTYPE_BYTES, HALVED, HfModel

_INDEX = "model.safetensors.index.json"
_OTHER_STATE = ("kv_lora_rank", "ssm_cfg", "mamba_d_state", "linear_num_key_heads", "attn_layer_period")
"""Fields of models whose layers don't all keep a key and a value for each token and head."""


def read_hf_model(name_or_path: str, hub: Path | None = None) -> HfModel:
    """From a `config.json`, its folder, a name in the local Hugging Face cache `hub`, or a known name.

    Raises `UnknownModel`, `BrokenModelFile` or `UnsupportedModel`.
    """
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        path /= "config.json"
    if path.is_file():
        return _from_file(path.parent.name if path.name == "config.json" else path.stem, path)
    if hub is not None and (cached := _cached(hub, name_or_path)) is not None:
        return _from_file(name_or_path, cached)
    for known, config in KNOWN.items():
        if name_or_path.lower() in (known.lower(), known.partition("/")[2].lower()):
            return _model(known, config, None)
    raise UnknownModel(
        f"{name_or_path!r} is no config.json, no folder with one, and not in the local Hugging Face cache. "
        f"Fetch the model's config.json and give its path, or one of {', '.join(KNOWN)}."
    )


def _cached(hub: Path, name: str) -> Path | None:
    """The newest snapshot of a model that `huggingface_hub` has fetched."""
    folder = hub / f"models--{name.replace('/', '--')}" / "snapshots"
    configs = sorted(folder.glob("*/config.json"), key=lambda path: path.stat().st_mtime)
    return configs[-1] if configs else None


def _from_file(name: str, path: Path) -> HfModel:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("it is no JSON object")
    except (OSError, ValueError) as error:
        raise BrokenModelFile(f"{path} can't be read: {error}") from None
    return _model(str(config.get("_name_or_path") or name), config, path)


def _model(name: str, config: Mapping[str, Any], path: Path | None) -> HfModel:
    text = config.get("text_config")
    parts: Mapping[str, Any] = {**config, **text} if isinstance(text, dict) else config
    fields = _Fields(name, parts)
    for field in _OTHER_STATE:
        if parts.get(field):
            raise UnsupportedModel(
                f"{name} does not keep plain keys and values in every layer ({field} in its config): "
                "its memory can't be worked out here"
            )
    heads, hidden = fields.number("num_attention_heads"), fields.number("hidden_size")
    model_type = str(parts.get("model_type", ""))
    dtype = str(parts.get("dtype") or parts.get("torch_dtype") or "bfloat16").removeprefix("torch.")
    if dtype not in DTYPE_BYTES:
        raise UnsupportedModel(f"{name} is in {dtype}; known are {', '.join(DTYPE_BYTES)}")
    inner = fields.number("intermediate_size")
    experts = next((int(parts[key]) for key in _EXPERTS if parts.get(key)), 0)
    shape = HfModel(
        name=name,
        layers=fields.number("num_hidden_layers"),
        hidden=hidden,
        inner=inner,
        heads=heads,
        kv_heads=fields.number("num_key_value_heads", heads),
        head_size=fields.number("head_dim", hidden // heads),
        vocabulary=fields.number("vocab_size"),
        context=fields.number("max_position_embeddings"),
        dtype=dtype,
        tied=bool(parts.get("tie_word_embeddings", False)),
        attention_bias=bool(parts.get("attention_bias", model_type in _BIASED)),
        head_norms=model_type in _NORMED,
        experts=experts,
        expert_inner=fields.number("moe_intermediate_size", inner) if experts else 0,
        weights=0,
        weights_from="",
    )
    return _weighed(shape, parts, path)


_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
_BIASED = ("qwen2", "qwen2_moe")
_NORMED = ("qwen3", "qwen3_moe")


class _Fields:
    """Numbers of a config. Raises `BrokenModelFile` that names what is missing."""

    def __init__(self, name: str, config: Mapping[str, Any]) -> None:
        self._name = name
        self._config = config

    def number(self, key: str, default: int | None = None) -> int:
        value = self._config.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise BrokenModelFile(f"the config of {self._name} has no {key} above 0: {value!r}")
        return value


def _weighed(model: HfModel, config: Mapping[str, Any], path: Path | None) -> HfModel:
    """With the bytes of its weights: from the files beside the config, else from the shape."""
    if path is not None and (found := _size_of_files(path.parent)) is not None:
        size, told = found
        if model.dtype == HALVED:
            size, told = size // 2, f"half of {told}: vLLM takes {HALVED} in 16 bits"
        return replace(model, weights=size, weights_from=told)
    size, told = weight_bytes(model, config.get("quantization_config"))
    told = f"{parameters(model) / 1e9:.2f} billion parameters by the config, {told}"
    return replace(model, weights=size, weights_from=told)


def _size_of_files(folder: Path) -> tuple[int, str] | None:
    index = folder / _INDEX
    if index.is_file():
        try:
            return int(json.loads(index.read_text(encoding="utf-8"))["metadata"]["total_size"]), _INDEX
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BrokenModelFile(f"{index} does not say how large the weights are: {error}") from None
    files = sorted(folder.glob("*.safetensors"))
    return (sum(file.stat().st_size for file in files), "*.safetensors") if files else None
