"""What model files say of their rotary embedding: GGUF metadata and Hugging Face's config.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hotprefix.base.errors import BrokenModelFile, UnsupportedModel
from hotprefix.models.gguf_file import GgufFile, head_size, rope_base
from hotprefix.models.rope import Rope, RopeKind, RopeScaling, yarn_attention_factor

_FALLBACK_CONTEXT = 2048
_KINDS = {
    "linear": RopeKind.LINEAR,
    "dynamic": RopeKind.DYNAMIC,
    "ntk": RopeKind.NTK,
    "yarn": RopeKind.YARN,
    "llama3": RopeKind.LLAMA3,
}
_SERVED = "none, linear, ntk, dynamic, yarn and llama3"


def gguf_rope(file: GgufFile) -> Rope:
    """The rotary embedding of a GGUF file. Raises `UnsupportedModel` or `BrokenModelFile`.

    Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, and llama.cpp's `yarn_*`.
    """
    facts = _Numbers(str(file.path), file.metadata, f"{file.architecture}.rope.")
    context = file.of_family("context_length") or _FALLBACK_CONTEXT
    rope = Rope(rope_base(file), head_size(file), context, context)
    name = file.text(f"{file.architecture}.rope.scaling.type") or "none"
    if name == "none" and facts.number("scale_linear", 1.0) != 1.0:
        name = "linear"
    if file.rope_factors:
        if name != "none":
            raise UnsupportedModel(
                f"{file.path} has both rope_freqs.weight and {name!r} scaling of positions."
            )
        return _with(rope, RopeScaling(RopeKind.DIVISORS, divisors=file.rope_factors), context, context)
    if name == "none":
        return rope
    if name not in (RopeKind.LINEAR, RopeKind.YARN):
        raise UnsupportedModel(
            f"{file.path} scales its positions by {name!r}; from GGUF, linear and yarn are served."
        )
    original = file.of_family("rope.scaling.original_context_length")
    return _gguf_scaled(rope, RopeKind(name), facts, original)


def _gguf_scaled(rope: Rope, kind: RopeKind, facts: _Numbers, original: int | None) -> Rope:
    factor = facts.number("scaling.factor", facts.number("scale_linear", 1.0))
    trained = original or rope.context_length
    if kind is RopeKind.LINEAR:
        # Without the original length it is not said whether the context is already the scaled one.
        scaled = rope.context_length if original is None else round(original * factor)
        return _with(rope, RopeScaling(kind, factor), trained, scaled)
    if facts.number("scaling.yarn_ext_factor", 1.0) != 1.0:
        raise UnsupportedModel(f"{facts.path} has a 'yarn_ext_factor' other than 1, which is not served.")
    attention = facts.number("scaling.yarn_attn_factor", facts.number("scaling.attn_factor", 1.0))
    scaling = RopeScaling(
        kind,
        factor,
        attention_factor=attention * yarn_attention_factor(factor),
        beta_fast=facts.number("scaling.yarn_beta_fast", 32.0),
        beta_slow=facts.number("scaling.yarn_beta_slow", 1.0),
    )
    return _with(rope, scaling, trained, round(trained * factor))


def config_ropes(config: Mapping[str, Any], path: str) -> tuple[Rope, ...]:
    """The rotary embeddings of a `config.json`, one for each kind of layer; none if it tells of none.

    Reads `rope_scaling` (transformers 4) and `rope_parameters` (transformers 5). Raises
    `UnsupportedModel` for a scaling that is not served, `BrokenModelFile` for wrong values.
    """
    inner = config.get("text_config")
    config = {**config, **inner} if isinstance(inner, dict) else config
    stated = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(stated, dict):
        raise BrokenModelFile(f"{path}: 'rope_scaling' is no JSON object.")
    if stated and all(isinstance(value, dict) or value is None for value in stated.values()):
        return tuple(dict.fromkeys(_config_rope(config, part, path) for part in stated.values() if part))
    if "rope_theta" not in config and not stated:
        return ()
    if not _rotated(config, stated, path):
        return ()
    rope = _config_rope(config, stated, path)
    local = config.get("rope_local_base_freq")
    if local is None:
        return (rope,)
    # Gemma 3: layers with a sliding window have a base of their own, unscaled.
    return rope, _config_rope({**config, "rope_theta": local}, {}, path)


def _config_rope(config: Mapping[str, Any], stated: Mapping[str, Any], path: str) -> Rope:
    facts = _Numbers(path, stated, "")
    base = facts.number("rope_theta", _Numbers(path, config, "").number("rope_theta", 10_000.0))
    length = config.get("max_position_embeddings")
    context = length if type(length) is int and length > 0 else _FALLBACK_CONTEXT
    rope = Rope(base, _rotated(config, stated, path), context, context)
    name = stated.get("rope_type") or stated.get("type") or "default"
    if name == "default":
        return rope
    kind = _KINDS.get(str(name))
    if kind is None:
        raise UnsupportedModel(f"{path} scales its positions by {name!r}; served are {_SERVED}.")
    original = stated.get("original_max_position_embeddings") or config.get(
        "original_max_position_embeddings"
    )
    if original is not None and (type(original) is not int or original <= 0):
        raise BrokenModelFile(f"{path}: 'original_max_position_embeddings' is {original!r}.")
    return _config_scaled(rope, kind, facts, stated, original)


def _config_scaled(
    rope: Rope, kind: RopeKind, facts: _Numbers, stated: Mapping[str, Any], original: int | None
) -> Rope:
    trained, context = original or rope.trained_length, rope.context_length
    if kind is RopeKind.DYNAMIC:
        return _with(rope, RopeScaling(kind), trained, trained)
    if kind is RopeKind.YARN and stated.get("factor") is None and original:
        factor = context / original
    else:
        factor = facts.number("factor")
    if kind is RopeKind.LLAMA3:
        low, high = facts.number("low_freq_factor"), facts.number("high_freq_factor")
        if low >= high:
            raise BrokenModelFile(f"{facts.path}: 'low_freq_factor' is not below 'high_freq_factor'.")
        scaling = RopeScaling(kind, factor, low_freq_factor=low, high_freq_factor=high)
        # The stated length is what the scaled model was trained on.
        return _with(rope, scaling, trained, context)
    scaled = context if original is None else round(original * factor)
    if kind is not RopeKind.YARN:
        return _with(rope, RopeScaling(kind, factor), trained, scaled)
    scaling = RopeScaling(
        kind,
        factor,
        attention_factor=_yarn_attention(facts, stated, factor),
        beta_fast=facts.number("beta_fast", 32.0),
        beta_slow=facts.number("beta_slow", 1.0),
        truncate=stated.get("truncate") is not False,
    )
    return _with(rope, scaling, trained, round(trained * factor))


def _yarn_attention(facts: _Numbers, stated: Mapping[str, Any], factor: float) -> float:
    if stated.get("attention_factor") is not None:
        return facts.number("attention_factor")
    if stated.get("mscale") and stated.get("mscale_all_dim"):
        parts = (facts.number("mscale"), facts.number("mscale_all_dim"))
        first, second = (yarn_attention_factor(factor, part) for part in parts)
        return first / second
    return yarn_attention_factor(factor)


def _rotated(config: Mapping[str, Any], stated: Mapping[str, Any], path: str) -> int:
    """Elements of a head that are turned; 0 if the config does not say how large a head is."""
    size = config.get("qk_rope_head_dim") or config.get("head_dim")
    if size is None:
        heads, hidden = config.get("num_attention_heads"), config.get("hidden_size")
        size = hidden // heads if type(heads) is int and heads and type(hidden) is int else 0
    if type(size) is not int or size < 0:
        raise BrokenModelFile(f"{path}: the size of a head is {size!r}.")
    for source in (stated, config):
        if source.get("partial_rotary_factor") is not None:
            return int(size * _Numbers(path, source, "").number("partial_rotary_factor"))
    return size


def _with(rope: Rope, scaling: RopeScaling, trained: int, context: int) -> Rope:
    return Rope(rope.base, rope.dimensions, trained, context, scaling)


class _Numbers:
    """Positive numbers of a mapping, under a common prefix."""

    def __init__(self, path: str, values: Mapping[str, Any], prefix: str) -> None:
        self.path = path
        self._values = values
        self._prefix = prefix

    def number(self, key: str, default: float | None = None) -> float:
        """The value, or `default` if it is missing or null; `BrokenModelFile` for anything else."""
        value = self._values.get(self._prefix + key)
        if value is None:
            value = default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise BrokenModelFile(f"{self.path}: '{self._prefix}{key}' is {value!r}, not a positive number.")
        return float(value)
