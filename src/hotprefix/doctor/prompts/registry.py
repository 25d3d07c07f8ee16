"""A folder of prompts: `NAME/VERSION.{txt,md,jinja,json}`, and `prompts.toml` that says what they are."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from pydantic import ValidationError

from hotprefix.doctor.prompts.cautions import cautions_of
from hotprefix.doctor.prompts.errors import (
    ArmsPartEarly,
    BrokenRegistry,
    EditedRelease,
    PromptError,
    UnknownPrompt,
)
from hotprefix.doctor.prompts.prompt import Experiment, Prompt
from hotprefix.doctor.prompts.schema import PromptEntry, RegistryFile, VersionEntry
from hotprefix.doctor.prompts.split import arm_of
from hotprefix.doctor.prompts.version import NAME, SUFFIXES, VERSION, Status, Version, digest_of

REGISTRY_FILE = "prompts.toml"
_STACK = 3


@dataclass(frozen=True, slots=True)
class PromptText:
    """What a version says, to the byte. `text` is `data` as UTF-8, line ends and all."""

    version: Version
    data: bytes

    @property
    def text(self) -> str:
        """As text."""
        return self.data.decode()

    @property
    def header(self) -> str:
        """For `x-hotprefix-prompt`, or wherever else logs shall name the version."""
        return self.version.label


@dataclass(frozen=True)
class Registry:
    """All prompts of a folder as they were when it was opened; texts are read when asked for."""

    folder: Path
    prompts: Mapping[str, Prompt]
    retired_models: Mapping[str, date] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set, repr=False, compare=False)

    def prompt(self, name: str) -> Prompt:
        """The prompt `name`. Raises `UnknownPrompt`."""
        if name not in self.prompts:
            known = ", ".join(self.prompts) or "none"
            raise UnknownPrompt(f"There is no prompt {name!r} in {self.folder}. Prompts: {known}.")
        return self.prompts[name]

    def find(self, label: str) -> Version:
        """`name@version`, or the released version of `name`. Raises `UnknownPrompt`."""
        name, at, version = label.partition("@")
        prompt = self.prompt(name)
        if at:
            return prompt.version(version)
        if prompt.released is None:
            raise UnknownPrompt(f"Prompt {name!r} has no released version. Name one as {name}@VERSION.")
        return prompt.released

    def read(self, version: Version) -> PromptText:
        """Its text. Raises `EditedRelease` if a pinned one was changed, `BrokenRegistry` if it is no text."""
        try:
            data = version.file.read_bytes()
            data.decode()
        except UnicodeDecodeError as error:
            raise BrokenRegistry(f"{version.file} is no UTF-8 text: byte {error.start} is wrong.") from error
        if version.digest is not None and digest_of(data) != version.digest:
            raise EditedRelease(
                f"{version.file} was edited after {version.label} was {version.status.value}: it has "
                f"{digest_of(data)}, pinned is {version.digest}. Restore the file, and add the new text as a "
                "new version."
            )
        return PromptText(version, data)

    def text(self, label: str) -> PromptText:
        """The text of `name@version`, or of the released version of `name`."""
        return self.read(self.find(label))

    def choose(self, name: str, unit: str) -> PromptText:
        """The version for a unit: a user, a session, whatever keeps its version over several requests.

        The arm that the experiment's split gives it, else the released version. Warns with
        `ArmsPartEarly`, once for each prompt, if the arms share no prefix that could be cached.
        """
        prompt = self.prompt(name)
        experiment = prompt.experiment
        if experiment is None:
            return self.text(name)
        if name not in self._warned:
            self._warned.add(name)
            for caution in self.cautions(name):
                warnings.warn(caution, ArmsPartEarly, stacklevel=_STACK - 1)
        return self.read(prompt.versions[arm_of(unit, experiment.arms, experiment.salt)])

    def cautions(self, name: str) -> tuple[str, ...]:
        """What is wrong with the arms of an experiment, as sentences."""
        prompt = self.prompt(name)
        if prompt.experiment is None:
            return ()
        return cautions_of(prompt, {version.name: self.read(version).text for version in prompt.live})

    def verify(self) -> tuple[PromptError, ...]:
        """Everything that reading all versions raises."""
        found: list[PromptError] = []
        for prompt in self.prompts.values():
            for version in prompt.versions.values():
                try:
                    self.read(version)
                except PromptError as error:
                    found.append(error)
        return tuple(found)


def open_registry(folder: Path | str) -> Registry:
    """Read a folder of prompts. Raises `BrokenRegistry`."""
    folder = Path(folder)
    file = folder / REGISTRY_FILE
    if not folder.is_dir():
        raise BrokenRegistry(f"There is no folder {folder}. Make one with 'hotprefix prompts add'.")
    content = read_registry(file) if file.exists() else RegistryFile()
    names = sorted({*content.prompts, *(path.name for path in _folders(folder))})
    return Registry(
        folder,
        {name: _prompt(folder, name, content.prompts.get(name, PromptEntry())) for name in names},
        content.retired_models,
    )


def read_registry(file: Path) -> RegistryFile:
    """`prompts.toml`. Raises `BrokenRegistry` with the file, the key and what is wrong."""
    try:
        return RegistryFile.model_validate(tomllib.loads(file.read_bytes().decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BrokenRegistry(f"{file} is no TOML: {error}") from error
    except ValidationError as error:
        told = "\n".join(
            f"  {'.'.join(map(str, problem['loc']))}: {problem['msg'].removeprefix('Value error, ')}."
            for problem in error.errors()
        )
        raise BrokenRegistry(f"{file} is no registry of prompts:\n{told}") from error


def _folders(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not path.name.startswith((".", "__")):
            if not NAME.fullmatch(path.name):
                raise BrokenRegistry(
                    f"{path}: names of prompts have up to 64 letters, digits, '_', '.' and '-', a letter or "
                    "digit first."
                )
            yield path


def _prompt(folder: Path, name: str, entry: PromptEntry) -> Prompt:
    files = _files(folder / name)
    lost = [version for version in entry.versions if version not in files]
    if lost:
        raise BrokenRegistry(
            f"{folder / REGISTRY_FILE} names {name}@{lost[0]}, but there is no file "
            f"{folder / name / lost[0]} with one of {', '.join(SUFFIXES)}. Restore it, or take the entry out."
        )
    order = [
        *entry.versions,
        *sorted((found for found in files if found not in entry.versions), key=_natural),
    ]
    versions = {
        version: _version(name, version, files[version], entry.versions.get(version, VersionEntry()))
        for version in order
    }
    return Prompt(
        name,
        versions,
        owner=entry.owner,
        scene=entry.scene,
        model=entry.model,
        profile=entry.profile,
        mode=entry.mode,
        experiment=_experiment(folder, name, entry, versions),
        notes=entry.notes,
    )


def _version(prompt: str, name: str, file: Path, entry: VersionEntry) -> Version:
    pinned = None if entry.status is Status.DRAFT else entry.digest
    return Version(prompt, name, file, entry.status, pinned, entry.reviewed)


def _files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if file.suffix not in SUFFIXES or file.name.startswith("."):
            continue
        if not VERSION.fullmatch(file.stem):
            raise BrokenRegistry(
                f"{file}: names of versions have up to 32 letters, digits, '_', '.' and '-', a letter or "
                "digit first."
            )
        if file.stem in found:
            raise BrokenRegistry(f"{file} and {found[file.stem].name} are one version. Rename one of them.")
        found[file.stem] = file
    return found


def _experiment(
    folder: Path, name: str, entry: PromptEntry, versions: Mapping[str, Version]
) -> Experiment | None:
    if entry.experiment is None:
        return None
    for arm in entry.experiment.arms:
        if arm not in versions or versions[arm].status is not Status.RELEASED:
            state = f"is {versions[arm].status.value}" if arm in versions else "does not exist"
            raise BrokenRegistry(
                f"{folder / REGISTRY_FILE}: an arm of the experiment on {name!r} is {arm!r}, which {state}. "
                f"Arms are released versions: see 'hotprefix prompts release {name}@{arm}'."
            )
    return Experiment(entry.experiment.salt or name, entry.experiment.arms, entry.experiment.since)


def _natural(name: str) -> list[tuple[int, str]]:
    """v2 before v10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]
