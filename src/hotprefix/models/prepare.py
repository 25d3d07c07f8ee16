"""Turns a GGUF file or a model folder into a folder that is ready to be served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer

from hotprefix.base.errors import BrokenModelFile, UnknownModel, UnsupportedModel
from hotprefix.models import convert, folders
from hotprefix.models.files import sha256_file, sha256_of
from hotprefix.models.gguf_file import check_convertible, read_gguf
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.rope import Rope
from hotprefix.models.rope_config import gguf_rope
from hotprefix.models.tokenizer_build import add_bos, build_tokenizer, end_ids

_FACT_FILES = (
    "openvino_model.xml",
    "openvino_model.bin",
    "tokenizer.json",
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "chat_template.json",
)

Stamp = dict[str, tuple[int, int]]
"""File name → (size in bytes, mtime in ns): equal stamps mean that nothing has changed."""


def source_stamp(source: Path) -> Stamp:
    """The stamp of every file of `source` that its preparation reads."""
    if source.is_file():
        return {source.name: _stamp(source)}
    names = [*_FACT_FILES, *sorted(path.name for path in source.glob("*.safetensors"))]
    return {name: _stamp(source / name) for name in names if (source / name).is_file()}


def source_digest(source: Path) -> str:
    """SHA-256 of a file, or over the files of a folder that `source_stamp` names; reads everything."""
    if source.is_file():
        return sha256_file(source)
    return sha256_of((name, sha256_file(source / name)) for name in source_stamp(source))


def prepare(source: Path, out: Path, name: str, origin: str, now: Callable[[], float]) -> ModelManifest:
    """Prepare `source` for serving; `out` is an empty folder for what has to be written.

    An OpenVINO folder stays where it is and leaves `out` empty. Raises `UnknownModel`,
    `BrokenModelFile`, `UnsupportedModel` or `MissingExtra`.
    """
    if source.is_file():
        return _prepare_gguf(source, out, name, origin, int(now()))
    if folders.is_openvino(source):
        return _describe_folder(source, name, origin, int(now()))
    if folders.is_hugging_face(source):
        convert.convert_hugging_face(source, out)
        return _describe_folder(out, name, origin, int(now()))
    if not source.exists():
        raise UnknownModel(f"{source} does not exist.")
    raise UnsupportedModel(
        f"{source} is no model folder: it has neither openvino_model.xml nor config.json with *.safetensors."
    )


def _prepare_gguf(source: Path, out: Path, name: str, origin: str, created: int) -> ModelManifest:
    file = read_gguf(source)
    check_convertible(file)
    rope = gguf_rope(file)
    tokenizer = build_tokenizer(file)
    template = file.text("tokenizer.chat_template")
    convert.convert_gguf(file, out)
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    return ModelManifest(
        name=name,
        family=file.architecture,
        source=origin,
        folder=out,
        fingerprint=_fingerprint(out, template, (rope,)),
        context_length=rope.context_length,
        bos_id=file.number("tokenizer.ggml.bos_token_id"),
        eos_ids=end_ids(file),
        add_bos=add_bos(file),
        chat_template=template,
        created=created,
        ropes=(rope,),
    )


def _describe_folder(folder: Path, name: str, origin: str, created: int) -> ModelManifest:
    folders.require_complete(folder)
    try:
        Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library raises bare Exception for bad files
        raise BrokenModelFile(f"{folder / 'tokenizer.json'} can't be read: {error}.") from error
    facts = folders.FolderFacts(folder)
    ropes = facts.ropes
    convert.check_graph(folder / "openvino_model.xml", ropes)
    return ModelManifest(
        name=name,
        family=facts.family,
        source=origin,
        folder=folder,
        fingerprint=_fingerprint(folder, facts.chat_template, ropes),
        context_length=facts.context_length,
        bos_id=facts.bos_id,
        eos_ids=facts.eos_ids,
        add_bos=facts.add_bos,
        chat_template=facts.chat_template,
        created=created,
        ropes=ropes,
    )


def _fingerprint(folder: Path, template: str, ropes: tuple[Rope, ...]) -> str:
    names = ("openvino_model.xml", "openvino_model.bin", "tokenizer.json")
    files = [(name, sha256_file(folder / name)) for name in names]
    # What the graph lacks is put right when it is loaded: the files alone don't tell the model.
    scalings = [("rope", text) for rope in ropes if (text := rope.describe())]
    return sha256_of([*files, ("chat_template", template), *scalings])


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
