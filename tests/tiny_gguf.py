"""Writes tiny GGUF models with random weights, so that tests convert and run real files in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = (
    "Ġ t", "Ġ a", "h e", "i n", "r e", "o n", "Ġt he", "e r", "Ġ s", "a t", "e n", "Ġ o", "o r", "l l",
    "in g", "Ġa n", "Ġan d", "e d", "Ġ w", "Ġ b", "o u", "Ġ c", "i s", "e s", "l o", "Ġ h", "he ll", "hell o",
)  # fmt: skip
_FILE_TYPES = {
    gguf.GGMLQuantizationType.F32: gguf.LlamaFileType.ALL_F32,
    gguf.GGMLQuantizationType.F16: gguf.LlamaFileType.MOSTLY_F16,
    gguf.GGMLQuantizationType.BF16: gguf.LlamaFileType.MOSTLY_BF16,
    gguf.GGMLQuantizationType.Q8_0: gguf.LlamaFileType.MOSTLY_Q8_0,
    gguf.GGMLQuantizationType.Q4_0: gguf.LlamaFileType.MOSTLY_Q4_0,
    gguf.GGMLQuantizationType.Q4_1: gguf.LlamaFileType.MOSTLY_Q4_1,
    gguf.GGMLQuantizationType.Q5_0: gguf.LlamaFileType.MOSTLY_Q5_0,
}
_PRE = {"llama": "smollm", "qwen2": "qwen2", "qwen3": "qwen2"}


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of a tiny model; `head_dim` times `heads` need not be `hidden` (qwen3)."""

    hidden: int = 128
    layers: int = 2
    heads: int = 2
    kv_heads: int = 1
    head_dim: int = 64
    ffn: int = 256
    context: int = 2048


def byte_alphabet() -> list[str]:
    """The 256 printable characters that stand for bytes in a byte-level vocabulary, in byte order."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = iter(range(256, 512))
    return [chr(byte) if byte in kept else chr(next(moved)) for byte in range(256)]


def tiny_vocabulary() -> tuple[list[str], list[int]]:
    """Tokens and their GGUF token types; specials come first, as in SmolLM2."""
    tokens = [*SPECIALS, *byte_alphabet(), *(merge.replace(" ", "") for merge in MERGES)]
    types = [int(gguf.TokenType.CONTROL)] * len(SPECIALS)
    return tokens, types + [int(gguf.TokenType.NORMAL)] * (len(tokens) - len(SPECIALS))


def write_tiny_gguf(
    path: Path,
    family: str = "llama",
    seed: int = 0,
    *,
    shape: Shape | None = None,
    quant: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F16,
    pre: str | None = None,
    chat_template: str | None = CHATML,
    rope_factors: np.ndarray | None = None,
    more: Mapping[str, str | float | int] | None = None,
) -> Path:
    """Write a model of `family` (llama, qwen2, qwen3) with random weights to `path` and return it.

    `more` is metadata under the family's prefix.
    """
    shape = shape or Shape()
    writer = gguf.GGUFWriter(path, family)
    writer.add_file_type(int(_FILE_TYPES[quant]))
    _write_hyperparameters(writer, shape)
    for key, value in (more or {}).items():
        add = {str: writer.add_string, float: writer.add_float32, int: writer.add_uint32}[type(value)]
        add(f"{family}.{key}", value)
    _write_tokenizer(writer, pre or _PRE[family], chat_template)
    _write_tensors(writer, family, shape, np.random.default_rng(seed), quant, len(tiny_vocabulary()[0]))
    if rope_factors is not None:
        writer.add_tensor("rope_freqs.weight", rope_factors.astype(np.float32))
    _finish(writer)
    return path


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_hyperparameters(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_name("Tiny")
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)


def _write_tokenizer(writer: gguf.GGUFWriter, pre: str, chat_template: str | None) -> None:
    tokens, types = tiny_vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    if chat_template is not None:
        writer.add_chat_template(chat_template)


def _write_tensors(
    writer: gguf.GGUFWriter,
    family: str,
    shape: Shape,
    random: np.random.Generator,
    quant: gguf.GGMLQuantizationType,
    vocabulary: int,
) -> None:
    def matrix(name: str, rows: int, columns: int, spread: float = 1.0) -> None:
        weight = (random.standard_normal((rows, columns)) * spread / np.sqrt(columns)).astype(np.float32)
        if quant == gguf.GGMLQuantizationType.F16:
            writer.add_tensor(name, weight.astype(np.float16))
        else:
            writer.add_tensor(name, gguf.quants.quantize(weight, quant), raw_dtype=quant)

    def vector(name: str, size: int, base: float = 1.0) -> None:
        writer.add_tensor(name, (base + 0.1 * random.standard_normal(size)).astype(np.float32))

    wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    matrix("token_embd.weight", vocabulary, shape.hidden, spread=np.sqrt(shape.hidden) / 4)
    vector("output_norm.weight", shape.hidden)
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        vector(f"{block}.attn_norm.weight", shape.hidden)
        vector(f"{block}.ffn_norm.weight", shape.hidden)
        for part, size in (("q", wide), ("k", narrow), ("v", narrow)):
            matrix(f"{block}.attn_{part}.weight", size, shape.hidden, spread=2.0)
            if family == "qwen2":
                vector(f"{block}.attn_{part}.bias", size, base=0.0)
        if family == "qwen3":
            vector(f"{block}.attn_q_norm.weight", shape.head_dim)
            vector(f"{block}.attn_k_norm.weight", shape.head_dim)
        matrix(f"{block}.attn_output.weight", shape.hidden, wide)
        matrix(f"{block}.ffn_gate.weight", shape.ffn, shape.hidden)
        matrix(f"{block}.ffn_up.weight", shape.ffn, shape.hidden)
        matrix(f"{block}.ffn_down.weight", shape.hidden, shape.ffn)


def write_tiny_spm_gguf(path: Path, seed: int = 0, *, shape: Shape | None = None) -> Path:
    """Write a llama whose tokenizer is a SentencePiece BPE with byte fallback."""
    shape = shape or Shape()
    words = [
        "▁hello",
        "▁the",
        "hello",
        "llo",
        "he",
        "ll",
        "th",
        "the",
        "▁t",
        "▁h",
        "▁he",
        "▁th",
        "▁hell",
        "lo",
    ]
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyz"]
    specials = ["<unk>", "<s>", "</s>"]
    tokens = [*specials, *(f"<0x{byte:02X}>" for byte in range(256)), *words, *letters]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * (len(words) + len(letters))
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_file_type(int(gguf.LlamaFileType.MOSTLY_F16))
    _write_hyperparameters(writer, shape)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_types([int(kind) for kind in kinds])
    writer.add_token_scores([-float(i) for i in range(len(tokens))])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    _write_tensors(
        writer, "llama", shape, np.random.default_rng(seed), gguf.GGMLQuantizationType.F16, len(tokens)
    )
    _finish(writer)
    return path
