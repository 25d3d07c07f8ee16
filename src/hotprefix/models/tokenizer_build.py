"""GGUF tokenizer metadata → a tokenizer in Hugging Face's format."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from hotprefix.base.errors import BrokenModelFile, UnsupportedModel
from hotprefix.models.gguf_file import GgufFile

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_QWEN2 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
_DIGIT = r"\p{N}"


@dataclass(frozen=True, slots=True)
class _Pre:
    """How text is cut before merging: `splits` in order; `nfc` composes characters first."""

    splits: tuple[str, ...]
    nfc: bool = False
    ignore_merges: bool = False
    add_bos: bool = False


_PRE_TOKENIZERS = {
    "gpt-2": _Pre((_GPT2,)),
    "smollm": _Pre((_DIGIT, _GPT2)),
    "starcoder": _Pre((_DIGIT, _GPT2)),
    "refact": _Pre((_DIGIT, _GPT2)),
    "command-r": _Pre((_DIGIT, _GPT2), nfc=True),
    "qwen2": _Pre((_QWEN2,), nfc=True),
    "deepseek-r1-qwen": _Pre((_QWEN2,), nfc=True),
    "stablelm2": _Pre((_QWEN2,)),
    "llama-bpe": _Pre((_LLAMA3,), ignore_merges=True, add_bos=True),
    "llama3": _Pre((_LLAMA3,), ignore_merges=True, add_bos=True),
    "llama-v3": _Pre((_LLAMA3,), ignore_merges=True, add_bos=True),
    "dbrx": _Pre((_LLAMA3,)),
    "smaug-bpe": _Pre((_LLAMA3,)),
}
_PRE_TOKENIZERS |= {"default": _PRE_TOKENIZERS["gpt-2"], "": _PRE_TOKENIZERS["gpt-2"]}

_END_TEXTS = frozenset(
    (
        *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>"),
        *("</s>", "<EOT>", "<end_of_turn>", "<|end▁of▁sentence|>", "<｜end▁of▁sentence｜>"),
    )
)
"""Control tokens that end an answer wherever they exist, as in llama.cpp."""


def build_tokenizer(file: GgufFile) -> Tokenizer:
    """The tokenizer described by the file's metadata.

    Raises `UnsupportedModel` for an unknown kind and `BrokenModelFile` for inconsistent lists.
    """
    kind = file.text("tokenizer.ggml.model")
    tokens, types = _vocabulary(file)
    if kind == "gpt2":
        tokenizer = _byte_level(file, tokens)
    elif kind == "llama":
        tokenizer = _sentence_piece(file, tokens, types)
    else:
        raise UnsupportedModel(
            f"{file.path}: tokenizer {kind or 'missing'!r} is not served; 'gpt2' (byte-level BPE) and "
            "'llama' (SentencePiece BPE) are."
        )
    _add_special_tokens(tokenizer, tokens, types)
    return tokenizer


def add_bos(file: GgufFile) -> bool:
    """Whether a raw prompt starts with the BOS token."""
    if file.text("tokenizer.ggml.model") == "llama":
        default = True
    else:
        pre = _PRE_TOKENIZERS.get(file.text("tokenizer.ggml.pre"))
        default = pre is not None and pre.add_bos
    return file.number("tokenizer.ggml.bos_token_id") is not None and file.flag(
        "tokenizer.ggml.add_bos_token", default
    )


def end_ids(file: GgufFile) -> tuple[int, ...]:
    """Tokens that end an answer: the file's own first, then control tokens known to mean it."""
    tokens, types = _vocabulary(file)
    own = [file.number(f"tokenizer.ggml.{key}_token_id") for key in ("eos", "eot", "eom")]
    known = [i for i, text in enumerate(tokens) if types[i] == _CONTROL and text in _END_TEXTS]
    return tuple(dict.fromkeys(i for i in (*own, *known) if i is not None and 0 <= i < len(tokens)))


def token_text(file: GgufFile, key: str) -> str | None:
    """Text of the token that metadata `tokenizer.ggml.<key>_token_id` names, or None."""
    tokens = file.items("tokenizer.ggml.tokens")
    index = file.number(f"tokenizer.ggml.{key}_token_id")
    return str(tokens[index]) if index is not None and 0 <= index < len(tokens) else None


def _vocabulary(file: GgufFile) -> tuple[list[str], list[int]]:
    tokens = file.items("tokenizer.ggml.tokens")
    types = file.items("tokenizer.ggml.token_type") or [_NORMAL] * len(tokens)
    if not tokens or len(types) != len(tokens) or not isinstance(tokens[0], str):
        raise BrokenModelFile(f"{file.path}: the token list is missing or does not fit its token types.")
    return tokens, types


def _index(file: GgufFile, tokens: list[str]) -> dict[str, int]:
    index = {text: i for i, text in enumerate(tokens)}
    if len(index) != len(tokens):
        raise BrokenModelFile(f"{file.path}: the token list holds the same token twice.")
    return index


def _byte_level(file: GgufFile, tokens: list[str]) -> Tokenizer:
    name = file.text("tokenizer.ggml.pre")
    pre = _PRE_TOKENIZERS.get(name)
    if pre is None:
        known = ", ".join(sorted(key for key in _PRE_TOKENIZERS if key))
        raise UnsupportedModel(f"{file.path}: pre-tokenizer {name!r} is not known; known are {known}.")
    vocabulary = _index(file, tokens)
    merges = []
    for line in file.items("tokenizer.ggml.merges"):
        left, space, right = str(line).partition(" ")
        if not space or not {left, right, left + right} <= vocabulary.keys():
            raise BrokenModelFile(f"{file.path}: merge {line!r} names a token that is not in the vocabulary.")
        merges.append((left, right))
    tokenizer = Tokenizer(BPE(vocabulary, merges, ignore_merges=pre.ignore_merges))
    if pre.nfc:
        tokenizer.normalizer = normalizers.NFC()
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in pre.splits]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentence_piece(file: GgufFile, tokens: list[str], types: list[int]) -> Tokenizer:
    vocabulary = _index(file, tokens)
    scores = file.items("tokenizer.ggml.scores")
    if len(scores) != len(tokens):
        raise BrokenModelFile(f"{file.path}: the token list does not fit its scores.")
    unknown = token_text(file, "unknown") or next(
        (t for t, kind in zip(tokens, types, strict=True) if kind == _UNKNOWN), None
    )
    merges = _merges_from_scores(vocabulary, scores, types)
    model = BPE(vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    prefix = file.flag("tokenizer.ggml.add_space_prefix", True)
    steps: list[normalizers.Normalizer] = [normalizers.Prepend("▁")] if prefix else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    back = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)] if prefix else back)
    return tokenizer


def _merges_from_scores(
    vocabulary: dict[str, int], scores: list[float], types: list[int]
) -> list[tuple[str, str]]:
    """Every way to make a token of two others, the best-scored token first, as SentencePiece merges."""
    found = []
    for text, index in vocabulary.items():
        if types[index] not in (_NORMAL, _USER_DEFINED) or len(text) < 2:
            continue
        pairs = []
        for cut in range(1, len(text)):
            left, right = vocabulary.get(text[:cut]), vocabulary.get(text[cut:])
            if left is not None and right is not None:
                pairs.append((left, right, text[:cut], text[cut:]))
        found += [(-scores[index], index, left, right, a, b) for left, right, a, b in sorted(pairs)]
    return [(a, b) for *_, a, b in sorted(found)]


def _add_special_tokens(tokenizer: Tokenizer, tokens: list[str], types: list[int]) -> None:
    pairs = list(zip(tokens, types, strict=True))
    # Special ones in one call each: `tokenizers` marks specials by the call, not by the token.
    tokenizer.add_special_tokens(
        [
            AddedToken(text, special=True, normalized=False)
            for text, kind in pairs
            if kind == _CONTROL and text
        ]
    )
    tokenizer.add_tokens(
        [AddedToken(text, normalized=False) for text, kind in pairs if kind == _USER_DEFINED and text]
    )
