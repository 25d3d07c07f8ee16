"""`hotprefix plan`: how many servers a load needs, and which of a vendor's caches suits it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from hotprefix.app.doctor_options import ProfilesDir, trouble_told, wide_console
from hotprefix.app.plan_tables import show_plan, show_provider, verdict
from hotprefix.app.sizes import parse_size
from hotprefix.base.clock import SystemClock
from hotprefix.doctor.plan.autoscale import Deployment, hpa, keda
from hotprefix.doctor.plan.document import plan_facts
from hotprefix.doctor.plan.errors import PlanError
from hotprefix.doctor.plan.load import Load, load_of
from hotprefix.doctor.plan.planner import plan_capacity
from hotprefix.doctor.plan.provider.compare import ProviderPlan, ProviderWish, plan_provider
from hotprefix.doctor.plan.provider.document import provider_facts
from hotprefix.doctor.plan.result import CapacityPlan
from hotprefix.doctor.plan.service import Measured, ServiceTimes, read_measured, service_times
from hotprefix.doctor.plan.wish import PlanWish, Prices
from hotprefix.doctor.plan.workers import Workers
from hotprefix.profiles.loader import load_profiles
from hotprefix.traces.lines import Advance
from hotprefix.traces.routing import Routing
from hotprefix.traces.source import TraceOptions, TraceSource

PLAN_EPILOG = """
[bold]Examples[/]

hotprefix plan trace.jsonl --qps 20 --target-p95 300ms --measured tune.json --memory 8G,16G,32G

hotprefix plan trace.jsonl --qps 20 --target-p95 2s --computed 50us --bytes-per-token 131072 --keda scale.yaml

hotprefix plan trace.jsonl --profile dashscope-2026-10 --model qwen-plus

[bold]Exit codes[/]  0: planned. 1: the target can't be met. 2: it could not be told.
"""

_MISSED = 1
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(ns|us|µs|ms|s|m|h)?\s*", re.IGNORECASE)
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PARTS = (0.05, 0.1, 0.25, 0.5, 1.0)
_SERVICE, _FLEET, _SCALING, _PROVIDER, _TRACE = "Service times", "Fleets", "Autoscaling", "Providers", "Trace"


def duration(text: str) -> float:
    """Seconds in `300ms`, `2s`, `50us`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no time; write one like 50us, 300ms or 2s")
    return float(match[1]) * _UNITS[(match[2] or "s").lower()]


def _money(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        raise typer.BadParameter(f"{text!r} is no price; write one like 0.40") from None
    if not found.is_finite() or found < 0:
        raise typer.BadParameter(f"{text!r} is no price; it has to be 0 or more")
    return found


def _sizes(texts: list[str]) -> tuple[int, ...]:
    try:
        return tuple(sorted({parse_size(part) for text in texts for part in text.split(",")}))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--memory") from None


def _option(text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


def _time(text: str, *names: str, panel: str | None = None) -> Any:
    return _option(text, *names, panel=panel, parser=duration, metavar="TIME")


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Where results go."""

    html: Path | None
    hpa: Path | None
    keda: Path | None
    deployment: Deployment

    def check(self) -> None:
        """Raises `MissingExtra` before any work is done."""
        if self.html is not None:
            from hotprefix.doctor.plan.plot import require_plotly

            require_plotly()

    def write(self, plan: CapacityPlan) -> None:
        """Whatever was asked for; rules only of a plan that holds."""
        if self.html is not None:
            from hotprefix.doctor.plan.plot import write_page

            write_page(plan, verdict(plan), self.html)
            _tell(f"Wrote {self.html}.")
        for path, make in ((self.hpa, hpa), (self.keda, keda)):
            if path is not None and plan.chosen is not None:
                path.write_text(make(plan, self.deployment), encoding="utf-8")
                _tell(f"Wrote {path}.")


@dataclass(frozen=True, slots=True)
class _Fleets:
    """Which fleets are tried; `memory` as it was written."""

    memory: list[str] | None
    routings: tuple[Routing, ...]
    servers: int
    most: int
    policy: str
    lifetime: float | None
    warmup: float
    prices: Prices

    def wish(self, load: Load, target: float, share: float, size: float | None) -> PlanWish:
        """For `size` bytes a token. Raises `PlanError`."""
        return PlanWish(
            target,
            _memories(self.memory, load, size),
            size or 0.0,
            self.routings,
            share,
            self.servers,
            self.most,
            self.policy,
            self.lifetime,
            self.warmup,
            self.prices,
        )


@dataclass(frozen=True, slots=True)
class _Vendor:
    """Whose caches are compared."""

    profile: str
    model: str
    lifetime: float
    delay: float
    folder: Path | None

    def plan(self, source: TraceSource, bar: _Bar) -> ProviderPlan:
        """By the prices of today."""
        day = datetime.fromtimestamp(SystemClock().wall(), UTC).date()
        rules = load_profiles(self.folder).get(self.profile)
        bar.begin(1)
        return plan_provider(
            source, ProviderWish(rules, self.model, day, self.lifetime, self.delay), bar.advance
        )


def plan_command(
    traces: Annotated[list[Path], typer.Argument(help="Traces of any form that 'hotprefix replay' reads.")],
    *,
    qps: Annotated[float | None, _option("Requests a second to plan for.", min=1e-6)] = None,
    target: Annotated[
        float | None, _time("Time to first token that is to be met.", "--target-p95", "--target")
    ] = None,
    share: Annotated[float, _option("Percent of the requests that have to meet it.", min=1, max=99.9)] = 95,
    measured: Annotated[
        Path | None,
        _option(
            "JSON of 'hotprefix tune --json' or 'hotprefix bench'.",
            exists=True,
            dir_okay=False,
            panel=_SERVICE,
        ),
    ] = None,
    computed: Annotated[float | None, _time("A prompt token that is computed.", panel=_SERVICE)] = None,
    found: Annotated[
        float | None, _time("A prompt token that is found in the cache.", panel=_SERVICE)
    ] = None,
    fixed: Annotated[float | None, _time("Any prompt, whatever its length.", panel=_SERVICE)] = None,
    answer: Annotated[
        float | None, _time("A token of an answer, of a server's time.", panel=_SERVICE)
    ] = None,
    servers: Annotated[int, _option("Prompts that a replica computes at once.", min=1, panel=_SERVICE)] = 1,
    memory: Annotated[
        list[str] | None,
        _option(
            "Memory of a replica for keys and values: 8G,16G. Default: parts of what the trace fills.",
            panel=_FLEET,
        ),
    ] = None,
    bytes_per_token: Annotated[
        float | None, _option("Keys and values of a token. Default: from --measured.", min=1, panel=_FLEET)
    ] = None,
    routing: Annotated[
        list[Routing] | None, _option("Default: affinity and round-robin.", panel=_FLEET)
    ] = None,
    most: Annotated[int, _option("Most replicas.", min=1, panel=_FLEET)] = 64,
    policy: Annotated[
        str, _option("Eviction policy; lru is quick to simulate, and on the safe side.", panel=_FLEET)
    ] = "lru",
    lifetime: Annotated[float | None, _time("Blocks unused for so long are dropped.", panel=_FLEET)] = None,
    warmup: Annotated[
        float, _option("Percent of the trace that fills the caches first.", min=0, max=90, panel=_FLEET)
    ] = 10,
    price_replica: Annotated[
        Decimal, _option("Money an hour of a replica.", parser=_money, metavar="MONEY", panel=_FLEET)
    ] = "1",  # type: ignore[assignment]
    price_gib: Annotated[
        Decimal,
        _option("Money an hour of a GiB of its memory.", parser=_money, metavar="MONEY", panel=_FLEET),
    ] = "0",  # type: ignore[assignment]
    currency: Annotated[str, _option("Its name.", panel=_FLEET)] = "",
    hpa_file: Annotated[
        Path | None, _option("Write a HorizontalPodAutoscaler.", "--hpa", panel=_SCALING)
    ] = None,
    keda_file: Annotated[
        Path | None, _option("Write a ScaledObject of KEDA.", "--keda", panel=_SCALING)
    ] = None,
    name: Annotated[str, _option("Name of the Deployment.", panel=_SCALING)] = "hotprefix",
    namespace: Annotated[str, _option("Its namespace.", panel=_SCALING)] = "",
    least_replicas: Annotated[int, _option("Fewest replicas of the rule.", min=1, panel=_SCALING)] = 1,
    most_replicas: Annotated[
        int | None, _option("Most. Default: twice the plan.", min=1, panel=_SCALING)
    ] = None,
    prometheus: Annotated[
        str, _option("Address of Prometheus, for KEDA.", panel=_SCALING)
    ] = Deployment().prometheus,
    profile: Annotated[
        str | None, _option("A vendor's rules: say which of its caches is cheapest.", panel=_PROVIDER)
    ] = None,
    model: Annotated[str, _option("The vendor's model.", panel=_PROVIDER)] = "",
    implicit_lifetime: Annotated[
        float, _time("How long the vendor's implicit cache is taken to last.", panel=_PROVIDER)
    ] = "5m",  # type: ignore[assignment]
    delay: Annotated[float, _time("When an entry can be read, after its request.", panel=_PROVIDER)] = "1s",  # type: ignore[assignment]
    profiles_dir: ProfilesDir = None,
    requests: Annotated[
        int, _option("Requests of the trace to use at most.", min=100, panel=_TRACE)
    ] = 10_000,
    trace_block: Annotated[
        int | None, _option("Tokens in its blocks, if it does not say.", min=1, panel=_TRACE)
    ] = None,
    shared_tokens: Annotated[
        int, _option("Of traces without hashes: tokens all prompts begin with.", min=0, panel=_TRACE)
    ] = 0,
    session_gap: Annotated[
        float, _time("Between starts of files that each begin at 0.", panel=_TRACE)
    ] = "0s",  # type: ignore[assignment]
    jobs: Annotated[int | None, _option("Processes. Default: one for each core.", min=1)] = None,
    html: Annotated[Path | None, _option("Write a page with plots.", dir_okay=False)] = None,
    as_json: Annotated[bool, _option("Print JSON.", "--json")] = False,
) -> None:
    """Plan servers for a load and a time to first token; or find the cheapest use of a vendor's caches."""
    if (qps is None or target is None) and (profile is None or qps is not None or target is not None):
        raise typer.BadParameter("give --qps and --target-p95, or --profile for a vendor's caches")
    outputs = _Outputs(
        html, hpa_file, keda_file, Deployment(name, namespace, least_replicas, most_replicas, prometheus)
    )
    given = Measured(fixed, computed, found, answer, bytes_per_token)
    routings = tuple(routing or (Routing.AFFINITY, Routing.ROUND_ROBIN))
    prices = Prices(price_replica, price_gib, currency)
    fleets = _Fleets(memory, routings, servers, most, policy, lifetime, warmup / 100, prices)
    facts: dict[str, Any] = {}
    missed = False
    with trouble_told(), _progress() as bar:
        outputs.check()
        source = TraceSource(traces, TraceOptions(trace_block, shared_tokens, session_gap, requests))
        if qps is not None and target is not None:
            file = None if measured is None else read_measured(measured)
            times = service_times(given, file)
            load = load_of(source, qps, bar.advance)
            wish = fleets.wish(
                load, target, share / 100, given.bytes_per_token or (file or given).bytes_per_token
            )
            planned = _plan(load, wish, times, bar, jobs or os.cpu_count() or 1)
            facts |= plan_facts(planned)
            missed = planned.chosen is None
            if not as_json:
                show_plan(planned, wide_console())
            outputs.write(planned)
        if profile is not None:
            bought = _Vendor(profile, model, implicit_lifetime, delay, profiles_dir).plan(source, bar)
            facts["provider"] = provider_facts(bought)
            if not as_json:
                show_provider(bought, wide_console())
    if as_json:
        sys.stdout.write(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode() + "\n")
    raise typer.Exit(_MISSED if missed else 0)


def _memories(given: list[str] | None, load: Load, size: float | None) -> tuple[int, ...]:
    """What was asked for, else parts of what all blocks of the trace take."""
    if size is None:
        raise PlanError(
            "The size of keys and values of a token is not known: give --bytes-per-token, or --measured."
        )
    if given:
        return _sizes(given)
    whole = load.survey.unique * load.source.block_size * size
    least = int(size * load.source.block_size)
    return tuple(sorted({max(least, _round(whole * part)) for part in _PARTS}))


def _round(count: float) -> int:
    """Up to whole GiB, or MiB where that is little."""
    unit = 1 << 30 if count >= 4 << 30 else 1 << 20
    return int(-(-count // unit)) * unit


def _plan(load: Load, wish: PlanWish, times: ServiceTimes, bar: _Bar, jobs: int) -> CapacityPlan:
    with Workers(jobs) as workers:
        return plan_capacity(load, wish, times, bar.advance, bar.begin, workers)


class _Bar:
    """How far it is, on standard error."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("Reading", total=None)
        self.advance: Advance = lambda count: progress.advance(self._task, count)

    def begin(self, fleets: int) -> None:
        """Another pass over the trace."""
        self._progress.reset(self._task, description=f"Simulating {fleets} fleet{'s' if fleets > 1 else ''}")


@contextmanager
def _progress() -> Iterator[_Bar]:
    err = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        yield _Bar(progress)


def _tell(text: str) -> None:
    Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)
