"""A plain NumPy forward pass of the tiny models: what a conversion must reproduce."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tests.tiny_gguf import Shape

Array = np.ndarray


def logits(
    path: Path, ids: list[int], shape: Shape, frequencies: Array | None = None, attention_factor: float = 1.0
) -> Array:
    """Logits [tokens, vocabulary] in float64; `frequencies` None are the plain rotary ones."""
    reader = gguf.GGUFReader(path)
    family = bytes(reader.fields["general.architecture"].parts[-1]).decode()
    weights = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}
    half = shape.head_dim // 2
    if frequencies is None:
        factors = weights.get("rope_freqs.weight", np.ones(half))
        frequencies = 10_000.0 ** (-np.arange(half) / half) / factors
    turns = np.arange(len(ids))[:, None] * frequencies
    rotation = attention_factor * np.exp(1j * turns)
    hidden = weights["token_embd.weight"][ids]
    for layer in range(shape.layers):
        part = {k.split(".", 2)[2]: v for k, v in weights.items() if k.startswith(f"blk.{layer}.")}
        hidden = hidden + _attention(_norm(hidden, part["attn_norm.weight"]), part, shape, family, rotation)
        x = _norm(hidden, part["ffn_norm.weight"])
        gate = x @ part["ffn_gate.weight"].T
        hidden = (
            hidden + (gate / (1 + np.exp(-gate)) * (x @ part["ffn_up.weight"].T)) @ part["ffn_down.weight"].T
        )
    return _norm(hidden, weights["output_norm.weight"]) @ weights["token_embd.weight"].T


def _norm(x: Array, weight: Array) -> Array:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weight


def _attention(x: Array, part: dict[str, Array], shape: Shape, family: str, rotation: Array) -> Array:
    heads = {}
    for name, count in (("q", shape.heads), ("k", shape.kv_heads), ("v", shape.kv_heads)):
        flat = x @ part[f"attn_{name}.weight"].T + part.get(f"attn_{name}.bias", 0.0)
        head = flat.reshape(len(x), count, shape.head_dim).transpose(1, 0, 2)
        if f"attn_{name}_norm.weight" in part:
            head = _norm(head, part[f"attn_{name}_norm.weight"])
        if name != "v":
            head = rotate(head, rotation, interleaved=family == "llama")
        heads[name] = head.repeat(shape.heads // count, axis=0)
    scores = heads["q"] @ heads["k"].transpose(0, 2, 1) / np.sqrt(shape.head_dim)
    scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (weights / weights.sum(-1, keepdims=True)) @ heads["v"]
    return mixed.transpose(1, 0, 2).reshape(len(x), -1) @ part["attn_output.weight"].T


def rotate(head: Array, rotation: Array, *, interleaved: bool) -> Array:
    """Turn pairs by complex numbers [tokens, pairs].

    GGUF keeps llama's pairs side by side and Qwen's half a head apart.
    """
    half = head.shape[-1] // 2
    first, second = (head[..., ::2], head[..., 1::2]) if interleaved else (head[..., :half], head[..., half:])
    turned = (first + 1j * second) * rotation
    parts = (turned.real, turned.imag)
    return np.stack(parts, -1).reshape(head.shape) if interleaved else np.concatenate(parts, -1)
