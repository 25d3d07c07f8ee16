"""Options of `hotprefix serve` in a TOML file.

A key is the long name of an option without its dashes in front. What the file says takes the place of the
option's default: the command line and environment variables go before it.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import tomlkit
import typer

from hotprefix.base.errors import HotprefixError

HINT = "--config"
_WIDTH = 100
_OWN = {"config", "help"}

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of a config, with what is said above it."""

    key: str
    value: Value
    why: str = ""


def apply_config(ctx: typer.Context, path: Path | None) -> Path | None:
    """Callback of `--config`: what the file says becomes the default of the other options.

    It has to be declared before them and not be eager: so it is called before any option that was left
    out is looked at, and `--help` before it. Raises `typer.BadParameter`.
    """
    if path is not None and not ctx.resilient_parsing:
        ctx.default_map = {**(ctx.default_map or {}), **_ConfigFile(path).read(ctx)}
    return path


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        callback=apply_config,
        exists=True,
        dir_okay=False,
        readable=True,
        rich_help_panel="Operation",
        help='TOML file with options, for instance kv-arena = "8G"; the command line goes before it.',
    ),
]


class _ConfigFile:
    """A file and what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._text = path.read_text(encoding="utf-8")
            self._found: dict[str, Any] = tomllib.loads(self._text)
        except UnicodeDecodeError:
            raise self._wrong("the file is not UTF-8 text") from None
        except tomllib.TOMLDecodeError as error:
            raise self._wrong(f'no TOML: {error}. Write lines like kv-arena = "8G"') from None

    def read(self, ctx: typer.Context) -> dict[str, Any]:
        """Name of the parameter → value, each checked as on the command line."""
        options = {
            option.removeprefix("--"): parameter
            for parameter in ctx.command.params
            for option in (*parameter.opts, *parameter.secondary_opts)
            if option.startswith("--") and option.removeprefix("--") not in _OWN
        }
        values: dict[str, Any] = {}
        for key, value in self._found.items():
            parameter = options.get(key)
            if parameter is None:
                raise self._wrong(self._unknown(key, value, options), key)
            values[str(parameter.name)] = self._checked(ctx, parameter, key, value)
        return values

    def _checked(self, ctx: typer.Context, parameter: Any, key: str, value: Any) -> Any:
        given = self._as_typed(parameter, key, value)
        try:
            # Only to see whether it can be had: the parameter is given the text and does it again.
            parameter.process_value(ctx, given)
        except typer.BadParameter as error:
            raise self._wrong(f"{key} = {_shown(value)}: {error.message}", key) from None
        return given

    def _as_typed(self, parameter: Any, key: str, value: Any) -> Any:
        """The value as it would come from the command line: text, a list of texts, or a flag."""
        if getattr(parameter, "is_flag", False):
            if not isinstance(value, bool):
                raise self._wrong(f"{key} = {_shown(value)}: write true or false, without quotes", key)
            return value
        if parameter.multiple:
            several = value if isinstance(value, list) else [value]
            return [self._text_of(key, one) for one in several]
        return self._text_of(key, value)

    def _text_of(self, key: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self._wrong(f"{key} = {_shown(value)}: write a text in quotes or a number", key)
        return str(value)

    def _unknown(self, key: str, value: Any, options: Mapping[str, Any]) -> str:
        if isinstance(value, dict):
            return f'there are no sections like [{key}]: write options at the top, as in kv-arena = "8G"'
        near = difflib.get_close_matches(key.replace("_", "-").lstrip("-"), options, n=1, cutoff=0.5)
        if near:
            return f"there is no option {key!r}; did you mean {near[0]!r}?"
        return f"there is no option {key!r}; 'hotprefix serve --help' shows them all"

    def _wrong(self, what: str, key: str | None = None) -> typer.BadParameter:
        number = None if key is None else self._line_of(key)
        place = f"{self._path}" if number is None else f"{self._path}, line {number}"
        return typer.BadParameter(f"{place}: {what}", param_hint=HINT)

    def _line_of(self, key: str) -> int | None:
        """Where a key is set; tomllib does not tell."""
        name = re.escape(key)
        pattern = re.compile(rf"""\s*(?:\[+\s*)?["']?{name}["']?\s*(?:=|\]|\.)""")
        lines = self._text.splitlines()
        return next((number for number, line in enumerate(lines, 1) if pattern.match(line)), None)


def _shown(value: Any) -> str:
    """A value as it is written in the file."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def render_config(settings: Sequence[Setting], heading: Sequence[str] = ()) -> str:
    """A config file's text: the heading, then every setting below its reason, as comments."""
    document = tomlkit.document()
    for line in heading:
        _comment(document, line)
    for setting in settings:
        document.add(tomlkit.nl())
        if setting.why:
            _comment(document, setting.why)
        document.add(setting.key, tomlkit.item(setting.value))
    return tomlkit.dumps(document).rstrip() + "\n"


def _comment(document: tomlkit.TOMLDocument, text: str) -> None:
    for line in wrap(text, _WIDTH):
        document.add(tomlkit.comment(line))


def write_new(path: Path, text: str, *, replace: bool) -> None:
    """Write a file. Raises `HotprefixError` if it is there and may not be replaced."""
    try:
        with path.open("w" if replace else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise HotprefixError(
            f"{path} exists and is left as it is; choose another --out, or replace it with --force"
        ) from None
