"""Other modules of the project that a program imports: where they are, and what they define."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from hotprefix.doctor.lint.python.module import Module, read_module
from hotprefix.doctor.lint.python.value import Subject, Value
from hotprefix.doctor.lint.suppress import Suppressions

_ROOTS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_MOST_LEVELS = 6
_MOST_BYTES = 400_000
_MOST_MODULES = 32
"""Modules that are looked into for one program."""
_MOST_CALLS = 80
_DEEPEST = 12


class Exporter(Protocol):
    """A program, run as far as its module's own statements go."""

    def exported(self, name: str) -> Value | None:
        """What the module has under a name."""
        ...


class SourceFiles:
    """Parsed files of the project, each read once."""

    def __init__(self) -> None:
        self._modules: dict[Path, Module | None] = {}

    def module(self, path: Path) -> Module | None:
        """None if it can't be read as Python, or is too long to be written by people."""
        if path not in self._modules:
            self._modules[path] = _read(path)
        return self._modules[path]

    def suppressions(self, file: str) -> Suppressions:
        """The comments for the linter in a file."""
        path = Path(file).absolute()
        if path.suffix.lower() != ".py":  # a template that another one includes
            return Suppressions(path.read_text("utf-8", "replace"))
        module = self.module(path)
        return Suppressions(module.text, module.tree) if module is not None else Suppressions("")


@dataclass(slots=True)
class Effort:
    """How many calls of the project's functions are still followed: from one place, and in all."""

    here: int = 0
    in_all: int = 1_500

    def begin(self) -> None:
        """At another place."""
        self.here = _MOST_CALLS

    def spend(self) -> bool:
        """Whether one more call is followed."""
        self.here, self.in_all = self.here - 1, self.in_all - 1
        return min(self.here, self.in_all) >= 0


class Library:
    """The modules that one program can import, found from where its file is. `effort` is shared by all."""

    def __init__(self, files: SourceFiles, path: Path, run: Callable[[Module, Path, Library], Exporter]):
        self._files = files
        self._is_absolute = path.is_absolute()
        self._run = run
        self.effort = Effort()
        self._programs: dict[Path, Exporter | None] = {}
        self._found: dict[tuple[Path, str], Path | None] = {}

    def find(self, importer: Path, full: str) -> Value | None:
        """What a full name stands for in the module at `importer`; None if it is not of the project."""
        names = full.lstrip(".").split(".")
        for base in _bases(importer, len(full) - len(full.lstrip("."))):
            for count in range(len(names), -1 if full.startswith(".") else 0, -1):
                path = self._path(base, ".".join(names[:count]))
                if path is not None and path != importer:
                    return self._value(path, names[count:])
        return None

    def _path(self, base: Path, dotted: str) -> Path | None:
        key = base, dotted
        if key not in self._found:
            place = base.joinpath(*dotted.split(".")) if dotted else base
            files = [place.with_name(f"{place.name}.py")] if dotted else []
            self._found[key] = next((f for f in (*files, place / "__init__.py") if f.is_file()), None)
        return self._found[key]

    def _value(self, path: Path, names: Sequence[str]) -> Value | None:
        program = self._program(path)
        if program is None:
            return None
        found: Value | None = Value(name=path.stem, subject=_Exports(program))
        for name in names:
            found = found.subject.attribute(name) if found is not None and found.subject is not None else None
        return found

    def _program(self, path: Path) -> Exporter | None:
        if path not in self._programs:
            self._programs[path] = None  # for modules that import one another
            module = self._files.module(path) if len(self._programs) <= _MOST_MODULES else None
            if module is not None:
                named = replace(module, file=self._name(path))
                self._programs[path] = self._run(named, path, self)
        return self._programs[path]

    def _name(self, path: Path) -> str:
        """As people call it who named the program's file."""
        if self._is_absolute or not path.is_relative_to(Path.cwd()):
            return str(path)
        return os.path.relpath(path)


class _Exports:
    """A module, as those see it who import it."""

    def __init__(self, program: Exporter) -> None:
        self._program = program

    def call(self, args: Sequence[Value], named: Mapping[str, Value]) -> Value | None:
        return None

    def attribute(self, name: str) -> Value | None:
        found = self._program.exported(name)
        return _abroad(found) if found is not None else None


class _Abroad:
    """A function, class or object of another module."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def call(self, args: Sequence[Value], named: Mapping[str, Value]) -> Value | None:
        found = self._subject.call(args, named)
        return _abroad(found) if found is not None else None

    def attribute(self, name: str) -> Value | None:
        found = self._subject.attribute(name)
        return _abroad(found) if found is not None else None


def _abroad(value: Value, depth: int = 0) -> Value:
    """A copy without places and fixes, which belong to another file; suspects say which."""
    subject = value.subject
    if subject is not None and not isinstance(subject, _Abroad):
        subject = _Abroad(subject)
    made = replace(
        value,
        node=None,
        subject=subject,
        suspects=tuple(replace(s, fix=None) if s.file else s for s in value.suspects),
    )
    if depth < _DEEPEST:
        if value.items is not None:
            made.items = [_abroad(item, depth + 1) for item in value.items]
        if value.members is not None:
            made.members = {name: _abroad(item, depth + 1) for name, item in value.members.items()}
    return made


def _bases(importer: Path, level: int) -> Iterator[Path]:
    """Folders that a name may be below."""
    if level:
        yield importer.parents[min(level, len(importer.parents)) - 1]
        return
    folder = importer.parent
    above = [folder, *folder.parents][:_MOST_LEVELS]
    root = next((n for n, place in enumerate(above) if any((place / name).exists() for name in _ROOTS)), None)
    if root is not None:
        yield from above[: root + 1]
        yield above[root] / "src"
        return
    yield folder
    for place in above:
        if not (place / "__init__.py").is_file():
            return
        yield place.parent


def _read(path: Path) -> Module | None:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        with path.open(encoding="utf-8-sig", newline="") as stream:
            return read_module(stream.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
