"""What Hotprefix knows of a model that lies ready to be served."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hotprefix.models.rope import Rope


@dataclass(frozen=True, slots=True)
class ModelManifest:
    """A prepared model folder: `openvino_model.xml/.bin`, `tokenizer.json` and these facts.

    `fingerprint` is the SHA-256 (hex) over weights, graph, tokenizer, template and scaling of
    positions: a changed model can never match another's cached blocks. `source` says where it came
    from. `head_tokens` are put before a raw prompt (BOS), `eos_ids` end an answer. `ropes` are the
    rotary embeddings that the graph must compute, empty if the model's files do not say.
    """

    name: str
    family: str
    source: str
    folder: Path
    fingerprint: str
    context_length: int
    bos_id: int | None
    eos_ids: tuple[int, ...]
    add_bos: bool
    chat_template: str
    created: int
    ropes: tuple[Rope, ...] = ()

    @property
    def graph(self) -> Path:
        """The OpenVINO IR."""
        return self.folder / "openvino_model.xml"

    @property
    def tokenizer(self) -> Path:
        """The tokenizer in Hugging Face's JSON format."""
        return self.folder / "tokenizer.json"
