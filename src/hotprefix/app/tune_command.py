"""`hotprefix tune`: options that fit this machine, or a launch line for vLLM."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hotprefix import __version__
from hotprefix.app.config_file import Setting, render_config, write_new
from hotprefix.app.model_commands import user_store
from hotprefix.app.sizes import parse_size
from hotprefix.app.state import default_state_dir
from hotprefix.base.clock import Clock, SystemClock
from hotprefix.base.errors import HotprefixError
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.tune.wish import Goal, Wish

if TYPE_CHECKING:
    from hotprefix.tune.planner import Facts, Plan
    from hotprefix.tune.speed import Told

CONFIG = Path("hotprefix.toml")

TUNE_EPILOG = """
[bold]Examples[/]

Measure for a minute or two, and serve with what was found:
[cyan]hotprefix tune && hotprefix serve --config hotprefix.toml[/]

As many requests of 4,096 tokens as 16 clients have, in little memory:
[cyan]hotprefix tune --for memory --context 4096 --concurrency 16 --out small.toml[/]

A launch line for vLLM on two GPUs:
[cyan]hotprefix tune --vllm --gpu-memory 80G --gpus 2 --model-config Meta-Llama-3-70B-Instruct[/]
"""

_VLLM = "vLLM"
_RESULT = "Result"


def _size(text: str) -> int:
    try:
        return 0 if text == "0" else parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _option(text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


Model = Annotated[str, _option("Name or path of the model.")]
For = Annotated[Goal, _option("What matters most.", "--for")]
Context = Annotated[
    int | None,
    _option("Tokens of the longest request, answer included. Default: what the model has.", min=64),
]
Concurrency = Annotated[int, _option("Requests at the same time.", min=1)]
Quick = Annotated[bool, _option("Measure less: two precisions, two chunk sizes, once.", "--quick")]
NoMeasure = Annotated[bool, _option("Measure nothing: rules and arithmetic alone.", "--no-measure")]
RedisUrl = Annotated[str | None, _option("Redis or Valkey to use.", envvar="HOTPREFIX_REDIS_URL")]
StateDir = Annotated[Path | None, _option("Where the disk tier would be. Default: ~/.local/state/hotprefix.")]
Quality = Annotated[
    Path | None,
    _option("Quality card in JSON (hotprefix quality).", exists=True, dir_okay=False, panel=_RESULT),
]
Out = Annotated[
    Path | None,
    _option("Config to write, 'hotprefix.toml' by default; with --vllm a shell script.", panel=_RESULT),
]
Force = Annotated[bool, _option("Replace the file if it is there.", "--force", panel=_RESULT)]
Plot = Annotated[Path | None, _option("HTML file for a plot of the trade-off.", panel=_RESULT)]
AsJson = Annotated[bool, _option("Print JSON.", "--json", panel=_RESULT)]
Vllm = Annotated[bool, _option("Print a launch line for vLLM instead.", "--vllm", panel=_VLLM)]
GpuMemory = Annotated[int | None, _option("Memory of a GPU.", parser=_size, metavar="SIZE", panel=_VLLM)]
GpuCount = Annotated[int, _option("GPUs that share the model.", "--gpus", min=1, panel=_VLLM)]
ModelConfig = Annotated[
    str | None, _option("config.json of the model, its folder, or its name.", panel=_VLLM)
]
Offload = Annotated[
    int,
    _option(
        "Memory of the host for each GPU's keys and values; 0: none.",
        parser=_size,
        metavar="SIZE",
        panel=_VLLM,
    ),
]


def tune_command(
    *,
    model: Model = DEFAULT_MODEL,
    goal: For = Goal.BALANCED,
    context: Context = None,
    concurrency: Concurrency = 4,
    quick: Quick = False,
    no_measure: NoMeasure = False,
    redis_url: RedisUrl = None,
    state_dir: StateDir = None,
    quality: Quality = None,
    out: Out = None,
    force: Force = False,
    plot: Plot = None,
    as_json: AsJson = False,
    vllm: Vllm = False,
    gpu_memory: GpuMemory = None,
    gpus: GpuCount = 1,
    model_config: ModelConfig = None,
    offload: Offload = "16G",  # type: ignore[assignment]  # parsed like an argument
) -> None:
    """Find options that fit this machine and this model, and write them to a config.

    Looks at memory, cores, disk and processor, measures how fast the model runs with them, and says for
    each option what it rests on. With --vllm works out a launch line for vLLM instead.
    """
    result = _Result(out, force, plot, as_json)
    wish = Wish(goal, context, concurrency)
    if vllm:
        if gpu_memory is None or model_config is None:
            raise typer.BadParameter("--vllm needs --gpu-memory and --model-config, too", param_hint="--vllm")
        _launch(result, wish, gpu_memory, gpus, model_config, offload)
        return
    result.check(CONFIG)
    subject = _Subject(model, state_dir, redis_url, quality, quick=quick, measured=not no_measure)
    _tune(result, wish, subject)


@dataclass(frozen=True, slots=True)
class _Result:
    """Where results go."""

    out: Path | None
    force: bool
    plot: Path | None
    as_json: bool

    def check(self, default: Path) -> None:
        """Before anything is measured: a file that may not be replaced, a plot that can't be drawn."""
        path = self.out or default
        if path.exists() and not self.force:
            raise HotprefixError(f"{path} exists; choose another --out, or replace it with --force")
        if self.plot is not None:
            from hotprefix.tune.plot import require_plotly

            require_plotly()


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is looked at, and how closely."""

    model: str
    state_dir: Path | None
    redis_url: str | None
    quality: Path | None
    quick: bool
    measured: bool


def _tune(result: _Result, wish: Wish, subject: _Subject) -> None:
    from hotprefix.app.tune_table import show_plan
    from hotprefix.tune.document import plan_document
    from hotprefix.tune.planner import plan

    manifest = user_store(None).resolve(subject.model)
    found = plan(_facts(manifest, subject), wish)
    out = Console()
    if result.as_json:
        out.print_json(data=plan_document(found))
    else:
        show_plan(found, out)
    path = result.out or CONFIG
    write_new(
        path, config_text(found, subject.state_dir, subject.redis_url, SystemClock()), replace=result.force
    )
    said = [f"Written: {path}. Serve with it: hotprefix serve --config {shlex.quote(str(path))}"]
    if result.plot is not None:
        from hotprefix.tune.plot import write_plot

        write_plot(found, result.plot)
        said.append(f"Plot: {result.plot}")
    for line in said:
        Console(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True)


def _facts(manifest: ModelManifest, subject: _Subject) -> Facts:
    """Look and measure; a bar on stderr shows how far it is."""
    from hotprefix.tune.bandwidth import (
        disk_bandwidth,
        disk_facts,
        memory_bandwidth,
        redis_bandwidth,
        redis_facts,
    )
    from hotprefix.tune.limits import read_cores, read_memory
    from hotprefix.tune.machine import Machine
    from hotprefix.tune.model_facts import model_facts, read_model, read_processor
    from hotprefix.tune.planner import Facts
    from hotprefix.tune.programme import full_programme, quick_programme
    from hotprefix.tune.quality_notes import QualityNotes, read_card
    from hotprefix.tune.speed import Speeds, measure_speeds

    clock = SystemClock()
    notes = QualityNotes() if subject.quality is None else read_card(subject.quality)
    redis = None
    if subject.redis_url is not None:
        redis = redis_facts(subject.redis_url)
        redis = redis_bandwidth(subject.redis_url, redis, clock) if subject.measured else redis
    disk = disk_facts(subject.state_dir or default_state_dir(os.environ))
    machine = Machine(
        memory=read_memory(),
        cores=read_cores(),
        processor=read_processor(),
        disk=disk_bandwidth(disk, clock) if subject.measured else disk,
        bandwidth=memory_bandwidth(clock) if subject.measured else None,
        redis=redis,
        load=os.getloadavg()[0],
    )
    if not subject.measured:
        return Facts(machine, read_model(manifest, machine.processor), Speeds(), notes)
    chosen = quick_programme if subject.quick else full_programme
    programme = chosen(machine, manifest.context_length)
    with _bar(programme.measurements) as told:
        speeds = measure_speeds(manifest, programme, clock, told)
    assert speeds.kv is not None  # what was measured has a format
    return Facts(machine, model_facts(manifest, speeds.kv), speeds, notes)


@contextmanager
def _bar(steps: int) -> Iterator[Told]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("Loading the model", total=steps)
        started = False

        def told(what: str) -> None:
            nonlocal started
            bars.update(task, description=what, advance=1 if started else 0)
            started = True

        yield told


def config_text(plan: Plan, state_dir: Path | None, redis_url: str | None, clock: Clock) -> str:
    """The plan as a config for `hotprefix serve --config`. A password in a URL is not written down."""
    from datetime import UTC, datetime

    from hotprefix.app.tune_table import machine_lines

    facts, wish = plan.facts, plan.wish
    date = datetime.fromtimestamp(clock.wall(), UTC).strftime("%Y-%m-%d")
    measured = "measured" if facts.speeds.by_precision else "not measured"
    heading = [
        f"Written by hotprefix {__version__} tune on {date}; speeds {measured}.",
        f"For {wish.goal.value}: {plan.need.concurrency} requests of {plan.need.context:,} tokens.",
        *machine_lines(facts.machine),
        *(f"Note: {warning}" for warning in plan.warnings),
    ]
    settings = [Setting("model", facts.model.name)]
    settings += [Setting(one.key, one.value, f"{one.why} [{one.basis.value}]") for one in plan.decisions]
    if state_dir is not None:
        settings.append(Setting("state-dir", str(state_dir), "where the disk tier is"))
    if redis_url is not None and facts.machine.redis is not None:
        if facts.machine.redis.url == redis_url:
            settings.append(Setting("redis-url", redis_url))
        else:
            heading.append("Set HOTPREFIX_REDIS_URL: the URL has a password, which is not written down.")
    return render_config(settings, heading)


def _launch(result: _Result, wish: Wish, gpu_memory: int, gpus: int, model_config: str, offload: int) -> None:
    from hotprefix.tune.document import launch_document
    from hotprefix.tune.vllm.hf_config import read_hf_model
    from hotprefix.tune.vllm.launch import Gpus, LaunchPlanner

    model = read_hf_model(model_config, hub_folder(os.environ))
    planner = LaunchPlanner(model, Gpus(gpu_memory, gpus, offload), wish.goal, wish.context, wish.concurrency)
    launch = planner.plan()
    if result.as_json:
        Console().print_json(data=launch_document(launch))
    elif result.out is None:
        sys.stdout.write(launch.script)
    if result.out is not None:
        write_new(result.out, f"#!/bin/sh\n{launch.script}", replace=result.force)
        said = f"Written: {result.out}"
        Console(stderr=True).print(said, highlight=False, markup=False, soft_wrap=True)


def hub_folder(env: Mapping[str, str]) -> Path:
    """Where `huggingface_hub` keeps what it fetched: HF_HUB_CACHE, HF_HOME, else ~/.cache/huggingface."""
    if env.get("HF_HUB_CACHE"):
        return Path(env["HF_HUB_CACHE"])
    home = Path(env["HF_HOME"]) if env.get("HF_HOME") else Path("~/.cache/huggingface").expanduser()
    return home / "hub"
