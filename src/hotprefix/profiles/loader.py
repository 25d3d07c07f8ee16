"""From files to profiles: those that ship with Hotprefix and an operator's own."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hotprefix.profiles.errors import BrokenProfile, UnknownProfile
from hotprefix.profiles.profile import Profile
from hotprefix.profiles.schema import ProfileFile

DEFAULT_PROFILE = "dashscope-2026-03"
_SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class ProfileBook:
    """Profiles by name."""

    profiles: dict[str, Profile]

    @property
    def default(self) -> Profile:
        """The profile of a server that was not told another."""
        return self.get(DEFAULT_PROFILE)

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self.profiles))

    def get(self, name: str) -> Profile:
        """The profile `name`; UnknownProfile lists what there is."""
        if name not in self.profiles:
            raise UnknownProfile(f"There is no profile {name!r}. Choose one of: {', '.join(self.names())}.")
        return self.profiles[name]


def load_profiles(extra_folder: Path | None = None) -> ProfileBook:
    """The shipped profiles and those in `extra_folder`; a file there replaces the shipped one of its name."""
    shipped = resources.files("hotprefix.profiles") / "data"
    profiles = {profile.name: profile for profile in _folder(shipped)}
    if extra_folder is not None:
        if not extra_folder.is_dir():
            raise BrokenProfile(
                f"{extra_folder} is no folder. Name the folder that holds your profile files."
            )
        profiles |= {profile.name: profile for profile in _folder(extra_folder)}
    return ProfileBook(profiles)


def read_profile(file: Traversable) -> Profile:
    """One file; BrokenProfile names the file, the keys and what is allowed."""
    try:
        content = tomllib.loads(file.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BrokenProfile(f"{file} is no TOML: {error}") from error
    try:
        return ProfileFile.model_validate(content).to_profile(file.name.removesuffix(_SUFFIX))
    except ValidationError as error:
        told = "\n".join(f"  {_tell(problem)}" for problem in error.errors())
        raise BrokenProfile(f"{file} is no profile:\n{told}") from error


def _folder(folder: Traversable) -> Iterator[Profile]:
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(_SUFFIX) and not file.name.startswith("."):
            yield read_profile(file)


def _tell(problem: ErrorDetails) -> str:
    place = _path(problem["loc"])
    match problem["type"]:
        case "missing":
            return f"{place} is missing."
        case "extra_forbidden":
            allowed = ", ".join(sorted(_section(problem["loc"][:-1]).model_fields))
            return f"{place} is no known key. Allowed: {allowed}."
        case "value_error":
            return f"{problem['msg'].removeprefix('Value error, ')}."
        case _:
            return f"{place} is {problem['input']!r}. {problem['msg']}."


def _path(loc: tuple[int | str, ...]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _section(loc: tuple[int | str, ...]) -> type[BaseModel]:
    """The model of the table at `loc`."""
    section: type[BaseModel] = ProfileFile
    for part in loc:
        if isinstance(part, str):
            section = _model_in(section.model_fields[part].annotation) or section
    return section


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
