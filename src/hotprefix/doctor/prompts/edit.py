"""Changes of a registry: what is there stays as it was written, comments included."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Table

from hotprefix.doctor.prompts.errors import BrokenRegistry, EditedRelease, PromptError
from hotprefix.doctor.prompts.prompt import Prompt
from hotprefix.doctor.prompts.registry import REGISTRY_FILE, Registry, open_registry, read_registry
from hotprefix.doctor.prompts.version import NAME, SUFFIXES, VERSION, Status, Version, digest_of

_ATTRIBUTES = "# Prompts are pinned to the byte: git must not change line ends.\n* -text\n"
_NUMBERED = re.compile(r"(.*?)(\d+)")


@dataclass(frozen=True, slots=True)
class Facts:
    """What can be said of a prompt; None leaves what stands there."""

    owner: str | None = None
    scene: str | None = None
    model: str | None = None
    profile: str | None = None
    mode: str | None = None

    def given(self) -> dict[str, str]:
        """What is to be written."""
        every = {"owner": self.owner, "scene": self.scene, "model": self.model, "profile": self.profile}
        return {name: value for name, value in (every | {"mode": self.mode}).items() if value is not None}


class RegistryEditor:
    """Adds, releases, retires and reviews versions. Every change is written at once, or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / REGISTRY_FILE

    def add(self, name: str, data: bytes, suffix: str, version: str | None, facts: Facts) -> Version:
        """A new draft with this text; `version` None counts on from the last. Raises `PromptError`."""
        if not NAME.fullmatch(name):
            raise PromptError(
                f"{name!r} is no name: up to 64 letters, digits, '_', '.' and '-', a letter or digit first."
            )
        if suffix not in SUFFIXES:
            raise PromptError(f"A prompt's file ends with one of {', '.join(SUFFIXES)}, not {suffix!r}.")
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise PromptError(f"The text is no UTF-8: byte {error.start} is wrong.") from error
        self._begin()
        known = open_registry(self.folder).prompts.get(name)
        chosen = version or _next_name(known)
        if not VERSION.fullmatch(chosen):
            raise PromptError(
                f"{chosen!r} is no name of a version: up to 32 letters, digits, '_', '.' and '-', a letter "
                "or digit first."
            )
        if known is not None and chosen in known.versions:
            raise PromptError(f"{name}@{chosen} is there already. Choose another --version.")
        file = self.folder / name / f"{chosen}{suffix}"
        document = self._document()
        entry = _table(document, "prompts", name)
        for key, value in facts.given().items():
            entry[key] = value
        _table(entry, "versions", chosen)["status"] = Status.DRAFT.value
        with _new_file(file, data):
            self._write(document)
        return self._registry().prompt(name).version(chosen)

    def release(self, label: str, today: date) -> Version:
        """Pin a draft: from now on its text is fixed. What was retired is released again."""
        registry = self._registry()
        version = registry.find(label)
        data = version.file.read_bytes()
        if version.digest is not None and version.digest != digest_of(data):
            raise EditedRelease(
                f"{version.file} is not the text that {version.label} had. Add it as a new version."
            )
        return self._set(
            version, {"status": Status.RELEASED.value, "digest": digest_of(data), "reviewed": today}
        )

    def retire(self, label: str) -> Version:
        """Take a released version out of use. Raises `PromptError` if an experiment still needs it."""
        version = self._registry().find(label)
        experiment = self._registry().prompt(version.prompt).experiment
        if experiment is not None and version.name in experiment.arms:
            raise PromptError(f"{version.label} is an arm of an experiment. End that first.")
        if version.status is Status.DRAFT:
            raise PromptError(f"{version.label} is a draft. Delete its file {version.file}, and its entry.")
        return self._set(version, {"status": Status.RETIRED.value})

    def reviewed(self, label: str, today: date) -> Version:
        """Note that somebody has read it."""
        return self._set(self._registry().find(label), {"reviewed": today})

    def split(self, name: str, arms: Mapping[str, float], today: date) -> Prompt:
        """Begin an experiment, or change its weights. Raises `BrokenRegistry` for arms that can't be."""
        before = self._registry().prompt(name)
        document = self._document()
        experiment = _table(document, "prompts", name, "experiment")
        weights = tomlkit.inline_table()
        weights.update(
            {arm: int(weight) if weight == int(weight) else weight for arm, weight in arms.items()}
        )
        experiment["arms"] = weights
        if before.experiment is None:
            experiment["salt"] = f"{name} {today.isoformat()}"
            experiment["since"] = today
        elif "salt" not in experiment:
            experiment["salt"] = before.experiment.salt
        self._write(document)
        return self._registry().prompt(name)

    def end(self, name: str) -> Prompt:
        """End the experiment on a prompt; from now on its newest released version is sent."""
        document = self._document()
        entry = _table(document, "prompts", name)
        if "experiment" not in entry:
            raise PromptError(f"There is no experiment on {name!r}.")
        del entry["experiment"]
        self._write(document)
        return self._registry().prompt(name)

    def _registry(self) -> Registry:
        return open_registry(self.folder)

    def _begin(self) -> None:
        """A folder with a registry in it."""
        if not self._file.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            attributes = self.folder / ".gitattributes"
            if not attributes.exists():
                attributes.write_text(_ATTRIBUTES, encoding="utf-8")
            self._file.write_text("# See docs/PROMPTS.md of Hotprefix.\n", encoding="utf-8")

    def _set(self, version: Version, values: Mapping[str, Any]) -> Version:
        document = self._document()
        entry = _table(document, "prompts", version.prompt, "versions", version.name)
        for key, value in values.items():
            entry[key] = value
        self._write(document)
        return self._registry().prompt(version.prompt).version(version.name)

    def _document(self) -> tomlkit.TOMLDocument:
        return (
            tomlkit.parse(self._file.read_text(encoding="utf-8"))
            if self._file.exists()
            else tomlkit.document()
        )

    def _write(self, document: tomlkit.TOMLDocument) -> None:
        """Only if the registry can still be read with it."""
        before = self._file.read_bytes() if self._file.exists() else None
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".prompts-", suffix=".toml")
        written = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(tomlkit.dumps(document))
            try:
                read_registry(written)
            except BrokenRegistry as error:
                raise BrokenRegistry(str(error).replace(str(written), str(self._file))) from error
            written.chmod(0o644)
            written.replace(self._file)
        finally:
            written.unlink(missing_ok=True)
        try:
            self._registry()
        except BrokenRegistry:
            if before is not None:
                self._file.write_bytes(before)
            raise


@contextmanager
def _new_file(file: Path, data: bytes) -> Iterator[None]:
    """A file that goes again if what has to be written with it can't be."""
    is_new = not file.parent.exists()
    file.parent.mkdir(exist_ok=True)
    with file.open("xb") as stream:
        stream.write(data)
    try:
        yield
    except BaseException:
        file.unlink()
        if is_new:
            file.parent.rmdir()
        raise


def _table(holder: Any, *path: str) -> Table:
    """The table at `path`, made if it is missing. Tables in between are not written out as headings."""
    for number, key in enumerate(path):
        if key not in holder:
            holder[key] = tomlkit.table(is_super_table=number < len(path) - 1)
        holder = holder[key]
    found: Table = holder
    return found


def _next_name(prompt: Prompt | None) -> str:
    if prompt is None or not prompt.versions:
        return "v1"
    last = list(prompt.versions)[-1]
    match = _NUMBERED.fullmatch(last)
    if match is None:
        raise PromptError(f"After {last!r} comes no number. Name the new version with --version.")
    name = f"{match[1]}{int(match[2]) + 1:0{len(match[2])}d}"
    while name in prompt.versions:
        match = _NUMBERED.fullmatch(name)
        assert match is not None
        name = f"{match[1]}{int(match[2]) + 1:0{len(match[2])}d}"
    return name
