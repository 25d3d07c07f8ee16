"""A small real byte-level BPE tokenizer, trained on the spot."""

from __future__ import annotations

import tempfile
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from hotprefix.prompt.hf_tokenizer import HfTokenizer

EOS = 1
"""The token that ends an answer."""


def small_tokenizer() -> HfTokenizer:
    """About three hundred tokens: all bytes, two special ones and pieces of JSON."""
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator(['{"name": "Ann", "age": 12, "tags": ["red", "green"]}'] * 9, trainer)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        library.save(str(path))
        return HfTokenizer(path)
