"""Model folders in Hugging Face's layout, with or without an OpenVINO graph: what they say of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hotprefix.base.errors import BrokenModelFile, UnsupportedModel
from hotprefix.models.rope import Rope
from hotprefix.models.rope_config import config_ropes

_FALLBACK_CONTEXT = 2048


def is_openvino(folder: Path) -> bool:
    """Whether the folder holds an OpenVINO graph."""
    return (folder / "openvino_model.xml").is_file()


def is_hugging_face(folder: Path) -> bool:
    """Whether the folder holds transformers weights."""
    return (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))


def require_complete(folder: Path) -> None:
    """Raise unless an OpenVINO folder has its weights and a tokenizer that can be read."""
    if not (folder / "openvino_model.bin").is_file():
        raise BrokenModelFile(f"{folder} has openvino_model.xml but not openvino_model.bin; copy both.")
    if not (folder / "tokenizer.json").is_file():
        raise UnsupportedModel(
            f"{folder} has no tokenizer.json. Save the model's fast tokenizer there: "
            "AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)."
        )


class FolderFacts:
    """Reads config.json, generation_config.json, tokenizer_config.json and the chat template.

    Missing files are empty; broken ones raise `BrokenModelFile`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._config = _read_json(folder / "config.json")
        self._generation = _read_json(folder / "generation_config.json")
        self._tokenizer_config = _read_json(folder / "tokenizer_config.json")
        self._tokenizer = _read_json(folder / "tokenizer.json")

    @property
    def family(self) -> str:
        return str(self._config.get("model_type") or "unknown")

    @property
    def ropes(self) -> tuple[Rope, ...]:
        """What config.json says of rotary embeddings. Raises `UnsupportedModel` for unknown scaling."""
        return config_ropes(self._config, str(self._folder / "config.json"))

    @property
    def context_length(self) -> int:
        """In tokens: what was trained, or what the model's own scaling extends it to."""
        if self.ropes:
            return max(rope.context_length for rope in self.ropes)
        inner = self._config.get("text_config")
        for source in (self._config, inner if isinstance(inner, dict) else {}):
            value = source.get("max_position_embeddings")
            if isinstance(value, int) and value > 0:
                return value
        return _FALLBACK_CONTEXT

    @property
    def bos_id(self) -> int | None:
        named = self._token_id(self._tokenizer_config.get("bos_token"))
        return named if named is not None else next(iter(self._ids("bos_token_id")), None)

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Those of the generation config, the config and the tokenizer, in this order."""
        named = self._token_id(self._tokenizer_config.get("eos_token"))
        return tuple(dict.fromkeys([*self._ids("eos_token_id"), *([] if named is None else [named])]))

    @property
    def add_bos(self) -> bool:
        """Whether a raw prompt starts with BOS: as configured, else as the post-processor does."""
        if self.bos_id is None:
            return False
        explicit = self._tokenizer_config.get("add_bos_token")
        if isinstance(explicit, bool):
            return explicit
        text = next((t["content"] for t in self._added() if t.get("id") == self.bos_id), None)
        return text is not None and _starts_with_special(self._tokenizer.get("post_processor"), text)

    @property
    def chat_template(self) -> str:
        """The template's source, empty if there is none."""
        file = self._folder / "chat_template.jinja"
        if file.is_file():
            return file.read_text(encoding="utf-8")
        for source in (self._tokenizer_config, _read_json(self._folder / "chat_template.json")):
            found = source.get("chat_template")
            if isinstance(found, list):
                named = {str(t.get("name")): t.get("template") for t in found if isinstance(t, dict)}
                found = named.get("default") or next(iter(named.values()), None)
            if isinstance(found, str):
                return found
        return ""

    def _ids(self, key: str) -> list[int]:
        for source in (self._generation, self._config):
            value = source.get(key)
            if isinstance(value, int):
                return [value]
            if isinstance(value, list) and all(isinstance(item, int) for item in value) and value:
                return value
        return []

    def _token_id(self, token: Any) -> int | None:
        text = token.get("content") if isinstance(token, dict) else token
        return next((t["id"] for t in self._added() if text is not None and t.get("content") == text), None)

    def _added(self) -> list[dict[str, Any]]:
        added = self._tokenizer.get("added_tokens")
        return [t for t in added if isinstance(t, dict)] if isinstance(added, list) else []


def _starts_with_special(processor: Any, text: str) -> bool:
    if not isinstance(processor, dict):
        return False
    inner = processor.get("processors")
    if isinstance(inner, list):
        return any(_starts_with_special(part, text) for part in inner)
    single = processor.get("single")
    first = single[0] if isinstance(single, list) and single else {}
    special = first.get("SpecialToken") if isinstance(first, dict) else None
    return isinstance(special, dict) and special.get("id") == text


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise BrokenModelFile(f"{path} is not readable JSON: {error}.") from error
    if not isinstance(found, dict):
        raise BrokenModelFile(f"{path} does not hold a JSON object.")
    return found
