"""Configs of some models by name, as their makers publish them. Data only; a `config.json` goes before."""

from __future__ import annotations

from typing import Any

_FIELDS = (
    "model_type",
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
    "tie_word_embeddings",
)


def _config(*values: object) -> dict[str, Any]:
    return dict(zip(_FIELDS, values, strict=True)) | {"torch_dtype": "bfloat16"}


KNOWN = {
    "Qwen/Qwen2.5-0.5B-Instruct": _config("qwen2", 24, 896, 4864, 14, 2, 64, 151936, 32768, True),
    "Qwen/Qwen2.5-7B-Instruct": _config("qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768, False),
    "Qwen/Qwen2.5-14B-Instruct": _config("qwen2", 48, 5120, 13824, 40, 8, 128, 152064, 32768, False),
    "Qwen/Qwen2.5-32B-Instruct": _config("qwen2", 64, 5120, 27648, 40, 8, 128, 152064, 32768, False),
    "Qwen/Qwen2.5-72B-Instruct": _config("qwen2", 80, 8192, 29568, 64, 8, 128, 152064, 32768, False),
    "Qwen/Qwen3-8B": _config("qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 40960, False),
    "meta-llama/Llama-3.1-8B-Instruct": _config("llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, False),
    "meta-llama/Meta-Llama-3-70B-Instruct": _config(
        "llama", 80, 8192, 28672, 64, 8, 128, 128256, 8192, False
    ),
}
