"""A small real byte-level BPE tokenizer, trained on the spot."""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers


class ByteLevelBpe:
    """As much of a tokenizer as grammars need; `EOS` ends an answer."""

    EOS = 1

    def __init__(self) -> None:
        self.inner = tokenizers.Tokenizer(models.BPE())
        self.inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.inner.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<|endoftext|>", "<|im_end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        self.inner.train_from_iterator(['{"name": "Ann", "age": 12, "tags": ["red", "green"]}'] * 9, trainer)

    @property
    def vocab_size(self) -> int:
        return int(self.inner.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        return list(self.inner.encode(text).ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        return str(self.inner.decode(list(token_ids)))

    def to_json(self) -> str:
        return str(self.inner.to_str())
