"""Parameters and bytes of a model, counted from its shape where its files are not at hand."""

from __future__ import annotations

from typing import Any

from hotprefix.base.errors import UnsupportedModel
from hotprefix.tune.vllm.shape import DTYPE_BYTES, HfModel

_QUANT_BITS = {"fp8": 8.0, "gptq": 4.0, "awq": 4.0, "mxfp4": 4.25}
"""Bits of an element where the quantisation does not say; 4-bit ones add 0.5 for scales of groups."""
_SCALES = 0.5


def parameters(model: HfModel) -> int:
    """Elements of all weights of a Llama-like decoder: norms, attention, gated feed-forward, embeddings."""
    return _embeddings(model) + model.layers * _layer(model) + model.hidden


def weight_bytes(model: HfModel, quantisation: Any) -> tuple[int, str]:
    """Bytes of the weights and how they were counted; embeddings stay in the model's own type.

    Raises `UnsupportedModel` for a quantisation that is not known.
    """
    each = DTYPE_BYTES[model.dtype]
    if not isinstance(quantisation, dict):
        return int(parameters(model) * each), f"{each:g} bytes each ({model.dtype})"
    method = str(quantisation.get("quant_method", ""))
    if method not in _QUANT_BITS:
        raise UnsupportedModel(
            f"{model.name} is quantised by {method or 'an unnamed method'}: the size of its weights is only "
            "known from model.safetensors.index.json; put it beside the config.json"
        )
    told = quantisation.get("bits")
    bits = float(told) if isinstance(told, int) else _QUANT_BITS[method]
    bits += _SCALES if bits <= 4 else 0
    body = parameters(model) - _embeddings(model)
    return int(body * bits / 8 + _embeddings(model) * each), f"{bits:g} bits each ({method})"


def _embeddings(model: HfModel) -> int:
    return model.vocabulary * model.hidden * (1 if model.tied else 2)


def _layer(model: HfModel) -> int:
    queries, keys = model.heads * model.head_size, model.kv_heads * model.head_size
    attention = model.hidden * (2 * queries + 2 * keys)
    attention += (queries + 2 * keys) if model.attention_bias else 0
    attention += 2 * model.head_size if model.head_norms else 0
    if model.experts:
        feed_forward = model.experts * 3 * model.hidden * model.expert_inner + model.hidden * model.experts
    else:
        feed_forward = 3 * model.hidden * model.inner
    return attention + feed_forward + 2 * model.hidden
