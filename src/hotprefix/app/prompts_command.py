"""`hotprefix prompts`: versions of prompts, their split, their comparison, their review."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from hotprefix.app.doctor_options import (
    Home,
    Model,
    ProfilesDir,
    TokenizerFile,
    text_model,
    trouble_told,
    wide_console,
)
from hotprefix.app.prompts_tables import show_prompts, show_versions
from hotprefix.base.clock import SystemClock
from hotprefix.doctor.prompts.edit import Facts, RegistryEditor
from hotprefix.doctor.prompts.errors import PromptError
from hotprefix.doctor.prompts.prompt import Prompt
from hotprefix.doctor.prompts.registry import Registry, open_registry
from hotprefix.doctor.prompts.sizes import Sizes, minimum_of
from hotprefix.doctor.prompts.split import arm_of, moved
from hotprefix.profiles.loader import load_profiles

prompts_app = typer.Typer(
    help="Prompts with versions in a folder under git: split by hash, compared by logs, reviewed in time.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_TRIAL_UNITS = 100_000

Folder = Annotated[
    Path,
    typer.Option(
        "--prompts", help="The folder with prompts.toml.", file_okay=False, envvar="HOTPREFIX_PROMPTS"
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="Name of a prompt.")]
Label = Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="Without a version, the released one.")]
FOLDER = Path("prompts")


def today() -> date:
    """The day in UTC."""
    return datetime.fromtimestamp(SystemClock().wall(), UTC).date()


def print_json(facts: Any) -> None:
    """On standard output."""
    sys.stdout.write(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode() + "\n")


def tell(text: str) -> None:
    """On standard error, for people."""
    Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)


@prompts_app.command("list")
def list_command(folder: Folder = FOLDER, as_json: AsJson = False) -> None:
    """List prompts, the versions that are sent, and who answers for them."""
    with trouble_told():
        registry = open_registry(folder)
    if as_json:
        print_json({name: _facts(prompt) for name, prompt in registry.prompts.items()})
    else:
        show_prompts(registry, wide_console())


@prompts_app.command("show")
def show_command(
    label: Label,
    folder: Folder = FOLDER,
    versions: Annotated[
        bool, typer.Option("--versions", help="List its versions in place of a text.")
    ] = False,
    as_json: AsJson = False,
    home: Home = None,
    model: Model = None,
    tokenizer: TokenizerFile = None,
) -> None:
    """Print the text of a version to the byte, or what is known of all versions."""
    with trouble_told():
        registry = open_registry(folder)
        if versions:
            sizes = Sizes(text_model(home, model, tokenizer, None))
            prompt = registry.prompt(label.partition("@")[0])
            if as_json:
                print_json(_facts(prompt) | {"tokens": _tokens(registry, prompt, sizes)})
            else:
                told = {name: sizes.told(count) for name, count in _tokens(registry, prompt, sizes).items()}
                show_versions(prompt, told, wide_console())
            return
        found = registry.text(label)
    if as_json:
        print_json({"label": found.header, "text": found.text, **_version_facts(registry, found.header)})
    else:
        sys.stdout.buffer.write(found.data)
        sys.stdout.buffer.flush()


@prompts_app.command("add")
def add_command(
    name: Name,
    file: Annotated[
        Path, typer.Argument(help="File with the text: .txt, .md, .jinja or .json; - reads standard input.")
    ],
    *,
    folder: Folder = FOLDER,
    version: Annotated[
        str | None, typer.Option("--version", help="Its name. Default: the next number.")
    ] = None,
    release: Annotated[bool, typer.Option("--release", help="Pin it at once; else it is a draft.")] = False,
    owner: Annotated[str | None, typer.Option("--owner", help="Who answers for the prompt.")] = None,
    scene: Annotated[str | None, typer.Option("--scene", help="What it is for.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="The model it is sent to.")] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="The caching rules it is sent under.")
    ] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="implicit, explicit or session.")] = None,
) -> None:
    """Add a version. Its text is copied to the byte."""
    with trouble_told():
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        suffix = ".txt" if str(file) == "-" else file.suffix
        editor = RegistryEditor(folder)
        added = editor.add(name, data, suffix, version, Facts(owner, scene, model, profile, mode))
        if release:
            added = editor.release(added.label, today())
    tell(f"Added {added.label} as {added.file}, {added.status.value}. Commit it with prompts.toml.")


@prompts_app.command("release")
def release_command(label: Label, folder: Folder = FOLDER) -> None:
    """Pin a draft: from now on its text is fixed, and an edit is an error."""
    with trouble_told():
        version = RegistryEditor(folder).release(label, today())
    tell(f"Released {version.label}: {version.digest}.")


@prompts_app.command("retire")
def retire_command(label: Label, folder: Folder = FOLDER) -> None:
    """Take a released version out of use. Its text stays."""
    with trouble_told():
        version = RegistryEditor(folder).retire(label)
    tell(f"Retired {version.label}.")


@prompts_app.command("diff")
def diff_command(
    name: Name,
    old: Annotated[str, typer.Argument(help="A version.")],
    new: Annotated[str, typer.Argument(help="Another version.")],
    *,
    folder: Folder = FOLDER,
    home: Home = None,
    model: Model = None,
    tokenizer: TokenizerFile = None,
    profiles_dir: ProfilesDir = None,
) -> None:
    """Show the difference of two versions, and how much of their beginning a cache could share."""
    with trouble_told():
        registry = open_registry(folder)
        prompt = registry.prompt(name)
        texts = [registry.read(prompt.version(version)).text for version in (old, new)]
        sizes = Sizes(text_model(home, model, tokenizer, None))
        minimum = minimum_of(prompt, load_profiles(profiles_dir))
    before, after = (text.splitlines(keepends=True) for text in texts)
    lines = difflib.unified_diff(before, after, f"{name}@{old}", f"{name}@{new}")
    for line in lines:
        sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    shared = sizes.shared(*texts)
    both = " and ".join(sizes.told(sizes.tokens(text)) for text in texts)
    fits = "a cache can share them" if shared >= minimum else f"a cached prefix needs {minimum:,}"
    tell(f"{both}; {sizes.told(shared)} in common at the beginning: {fits}.")


@prompts_app.command("split")
def split_command(
    name: Name,
    units: Annotated[list[str] | None, typer.Argument(help="Units to tell the arm of.")] = None,
    folder: Folder = FOLDER,
    weights: Annotated[
        str | None,
        typer.Option("--weights", help="Begin an experiment or change it: v1=90,v2=10; control first."),
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="End the experiment.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show which arm units get; begin, change or end an experiment."""
    with trouble_told():
        editor = RegistryEditor(folder)
        before = open_registry(folder).prompt(name)
        if end:
            after = editor.end(name)
        elif weights is not None:
            after = editor.split(name, parse_weights(weights), today())
        else:
            after = before
        registry = open_registry(folder)
        facts = _split_facts(before, after, registry, units or ())
    if as_json:
        print_json(facts)
        return
    for unit, arm in facts["units"].items():
        sys.stdout.write(f"{unit}\t{arm}\n")
    if not units:
        shares = ", ".join(f"{arm} {part:.1%}" for arm, part in facts["shares"].items())
        sys.stdout.write(f"{name}: {shares or 'no experiment'}\n")
    if facts["moved"] is not None:
        tell(f"{facts['moved']:.1%} of the units change their version.")
    for caution in facts["cautions"]:
        tell(f"! {caution}")


def parse_weights(text: str) -> dict[str, float]:
    """`v1=90,v2=10`. Raises `PromptError`."""
    arms: dict[str, float] = {}
    for part in text.split(","):
        arm, equals, weight = part.strip().partition("=")
        if arm in arms:
            raise PromptError(f"{arm!r} has two weights. Write each arm once.")
        try:
            arms[arm] = float(weight)
        except ValueError:
            equals = ""
        if not arm or not equals or not isfinite(arms[arm]) or arms[arm] < 0:
            raise PromptError(f"{part!r} is no weight. Write arms like v1=90,v2=10, the control first.")
    return arms


def _split_facts(before: Prompt, after: Prompt, registry: Registry, units: Sequence[str]) -> dict[str, Any]:
    experiment = after.experiment
    chosen: dict[str, str] = {}
    if experiment is not None:
        chosen = {unit: arm_of(unit, experiment.arms, experiment.salt) for unit in units}
    elif after.released is not None:
        chosen = dict.fromkeys(units, after.released.name)
    share = None
    if experiment is not None and before.experiment is not None and before.experiment != experiment:
        trial = [str(number) for number in range(_TRIAL_UNITS)]
        share = moved(trial, before.experiment.arms, experiment.arms, experiment.salt) / _TRIAL_UNITS
    return {
        "prompt": after.name,
        "shares": {} if experiment is None else experiment.shares,
        "units": chosen,
        "moved": share,
        "cautions": list(registry.cautions(after.name)),
    }


def _facts(prompt: Prompt) -> dict[str, Any]:
    experiment = prompt.experiment
    return {
        "name": prompt.name,
        "owner": prompt.owner,
        "scene": prompt.scene,
        "model": prompt.model,
        "profile": prompt.profile,
        "mode": prompt.mode,
        "released": None if prompt.released is None else prompt.released.name,
        "experiment": None if experiment is None else {"arms": experiment.arms, "since": experiment.since},
        "versions": {
            version.name: {
                "status": version.status.value,
                "digest": version.digest,
                "reviewed": version.reviewed,
                "file": str(version.file),
            }
            for version in prompt.versions.values()
        },
    }


def _version_facts(registry: Registry, label: str) -> dict[str, Any]:
    version = registry.find(label)
    facts: dict[str, Any] = _facts(registry.prompt(version.prompt))["versions"][version.name]
    return facts


def _tokens(registry: Registry, prompt: Prompt, sizes: Sizes) -> dict[str, int]:
    return {name: sizes.tokens(registry.read(version).text) for name, version in prompt.versions.items()}
