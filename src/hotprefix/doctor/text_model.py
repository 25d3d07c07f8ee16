"""How the doctor renders and tokenises: by a model's own files, or by estimate."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotprefix.base.errors import UnknownModel
from hotprefix.doctor.estimate import EstimatedPrompts, Layout, PieceIds, Prompts, pieces, plain_template
from hotprefix.models.folders import FolderFacts
from hotprefix.models.gguf_file import read_gguf
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import ModelStore
from hotprefix.models.tokenizer_build import build_tokenizer, token_text
from hotprefix.prompt.builder import PromptBuilder
from hotprefix.prompt.chat import ChatTemplate
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.segments import SegmentedTokenizer
from hotprefix.prompt.template import JinjaTemplate
from hotprefix.prompt.tokenizer import Tokenizer

_SEGMENT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class TextModel:
    """`tokenizer` None: token counts are estimates. `template` None: a plain layout in its place."""

    name: str = ""
    tokenizer: Tokenizer | None = None
    template: ChatTemplate | None = None

    @property
    def is_estimate(self) -> bool:
        """Whether token counts are estimates."""
        return self.tokenizer is None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of figures has to know of them."""
        told = []
        if self.tokenizer is None:
            told.append("Token counts are estimates: name a tokenizer with --model or --tokenizer.")
        if self.template is None:
            told.append("The layout is a plain one: name the model's template with --model or --template.")
        return tuple(told)

    def prompts(self, layout: Layout) -> Prompts:
        """A renderer; `layout` counts only without a template."""
        template = self.template or plain_template(layout)
        if self.tokenizer is None:
            return EstimatedPrompts(template)
        return PromptBuilder(self.tokenizer, template)

    def token_ids(self, text: str) -> tuple[int, ...]:
        """A text's tokens, or its pieces. Raises `InvalidRequest`."""
        if self.tokenizer is None:
            return PieceIds().of(pieces(text))
        return tuple(self.tokenizer.encode(text))


def open_text_model(
    store: ModelStore,
    model: str | None = None,
    tokenizer: Path | None = None,
    template: Path | None = None,
) -> TextModel:
    """The model's tokenizer and template; files that are named go before its own. Fetches nothing.

    `model` is a prepared model, a GGUF file or a folder with `tokenizer.json`. Raises `UnknownModel`,
    `BrokenModelFile` or `UnsupportedModel`.
    """
    base = TextModel() if model is None else _named(store, model)
    own_tokenizer = base.tokenizer if tokenizer is None else _segmented(tokenizer)
    own_template = base.template if template is None else JinjaTemplate(_text(template))
    return TextModel(base.name, own_tokenizer, own_template)


def _named(store: ModelStore, model: str) -> TextModel:
    for stored in store.list():
        if stored.manifest.name == model:
            return _of_manifest(stored.manifest)
    path = Path(model).expanduser()
    if path.is_dir() and (path / "tokenizer.json").is_file():
        return _of_folder(path)
    if path.is_file():
        return _of_gguf(path)
    known = ", ".join(stored.manifest.name for stored in store.list()) or "none"
    raise UnknownModel(
        f"No prepared model {model!r}, and no folder with a tokenizer.json or GGUF file of that name. "
        f"Prepared models: {known}. See 'hotprefix models pull'."
    )


def _of_manifest(manifest: ModelManifest) -> TextModel:
    tokenizer = _segmented(manifest.tokenizer)
    bos = "" if manifest.bos_id is None else tokenizer.token_bytes(manifest.bos_id).decode()
    eos = tokenizer.token_bytes(manifest.eos_ids[0]).decode() if manifest.eos_ids else ""
    template = JinjaTemplate(manifest.chat_template, bos_token=bos, eos_token=eos)
    return TextModel(manifest.name, tokenizer, template)


def _of_folder(folder: Path) -> TextModel:
    tokenizer = _segmented(folder / "tokenizer.json")
    facts = FolderFacts(folder)
    if not facts.chat_template:
        return TextModel(folder.name, tokenizer)
    bos = "" if facts.bos_id is None else tokenizer.token_bytes(facts.bos_id).decode()
    eos = tokenizer.token_bytes(facts.eos_ids[0]).decode() if facts.eos_ids else ""
    return TextModel(folder.name, tokenizer, JinjaTemplate(facts.chat_template, bos_token=bos, eos_token=eos))


def _of_gguf(path: Path) -> TextModel:
    file = read_gguf(path)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "tokenizer.json"
        build_tokenizer(file).save(str(saved), pretty=False)
        tokenizer = _segmented(saved)
    source = file.text("tokenizer.chat_template")
    if not source:
        return TextModel(path.stem, tokenizer)
    bos, eos = (token_text(file, key) or "" for key in ("bos", "eos"))
    return TextModel(path.stem, tokenizer, JinjaTemplate(source, bos_token=bos, eos_token=eos))


def _segmented(path: Path) -> SegmentedTokenizer:
    return SegmentedTokenizer(HfTokenizer(path), _SEGMENT_BYTES)


def _text(path: Path) -> str:
    """A template file: Jinja, or a `tokenizer_config.json` that has it."""
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if path.suffix == ".json" else text
    except ValueError as error:
        raise UnknownModel(f"{path} can't be read as a template: {error}.") from error
    if isinstance(found, dict):
        found = found.get("chat_template")
    if isinstance(found, list):  # several, each with its name
        found = next((one.get("template") for one in found if _is_default(one)), None)
    if not isinstance(found, str):
        raise UnknownModel(f"{path} has no chat_template.")
    return found


def _is_default(template: Any) -> bool:
    return isinstance(template, dict) and template.get("name") == "default"
