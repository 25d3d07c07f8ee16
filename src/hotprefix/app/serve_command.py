"""The command line of `hotprefix serve`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from hotprefix.app.config_file import ConfigFile
from hotprefix.app.limits import raise_open_files
from hotprefix.app.logs import configure_logs
from hotprefix.app.model_commands import user_store
from hotprefix.app.settings import CachePolicy, KvPrecision, LogFormat, LogLevel, ServeSettings
from hotprefix.app.sizes import parse_size
from hotprefix.app.state import default_state_dir
from hotprefix.app.strategy_options import (
    KvKeys,
    KvLongest,
    KvRecent,
    KvScorer,
    KvSinks,
    KvStrategyName,
    KvWindow,
)
from hotprefix.app.tier_options import KvCodec, KvDisk, KvDiskKey, KvRam, KvRedis, RedisUrl
from hotprefix.engine.settings import DecodeMode
from hotprefix.engine.strategy.choice import StrategyName
from hotprefix.engine.strategy.settings import LONGEST, StrategySettings
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.rope_wish import RopeWish
from hotprefix.modes.named_cache import NamedLimits
from hotprefix.profiles.loader import DEFAULT_PROFILE
from hotprefix.prompt.preprocess.catalogue import StepName, parse_steps
from hotprefix.tiers.settings import DEFAULT_REDIS

SERVE_EPILOG = """
[bold]Examples[/]

Serve the default model on http://127.0.0.1:8080, fetching it the first time:
[cyan]hotprefix serve[/]

Serve a GGUF file under a name of your choice, to the whole network:
[cyan]hotprefix serve --model ./qwen2.5-0.5b-instruct-q8_0.gguf --served-name qwen --host 0.0.0.0[/]

Keep more prefixes, in half the bytes per token:
[cyan]hotprefix serve --kv-arena 8G --kv-precision u8[/]

Keep prefixes across restarts, in memory first and on disk behind it:
[cyan]hotprefix serve --kv-ram 4G --kv-disk 20G[/]

Serve with the options that were found to fit this machine:
[cyan]hotprefix tune --out hotprefix.toml && hotprefix serve --config hotprefix.toml[/]

See what the cache saves by switching it off:
[cyan]hotprefix serve --no-cache --port 8081[/]

SIGTERM or Ctrl-C finishes what is running, for at most --drain-timeout seconds; a second one ends it at once.
"""

_NAMED = NamedLimits()
_ADDRESS = "Address"
_MODEL = "Model"
_CACHE = "KV cache"
_LOAD = "Load"
_OPERATION = "Operation"


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _steps(text: str) -> tuple[StepName, ...]:
    try:
        return parse_steps(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--preprocess") from None


def _wish(text: str) -> RopeWish:
    try:
        return RopeWish.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _option(panel: str, text: str, **more: Any) -> Any:
    return typer.Option(rich_help_panel=panel, help=text, **more)


Host = Annotated[str, _option(_ADDRESS, "Address to listen on; 0.0.0.0 is every network.")]
Port = Annotated[int, _option(_ADDRESS, "Port; 0 takes a free one.", min=0, max=65535)]
Model = Annotated[
    str, _option(_MODEL, "A name from 'hotprefix models list', or the path of a GGUF file or model folder.")
]
ServedName = Annotated[str | None, _option(_MODEL, "Name that requests use. Default: the model's own.")]
MaxContext = Annotated[
    int | None, _option(_MODEL, "Most tokens of prompt and answer. Default: what the model has.", min=16)
]
Threads = Annotated[int | None, _option(_MODEL, "Threads that compute. Default: one per core.", min=1)]
KvArena = Annotated[int, _option(_CACHE, "Most memory for keys and values.", parser=_size, metavar="SIZE")]
Precision = Annotated[
    KvPrecision,
    _option(
        _CACHE,
        "Type of keys and values. auto: the CPU's fastest; u8, u4 hold more; layered-: first layers 16-bit.",
    ),
]
SixteenBitLayers = Annotated[
    int, _option(_CACHE, "How many of the first layers stay 16-bit in a layered precision.", min=1)
]
RopeScaling = Annotated[
    RopeWish | None,
    _option(
        _MODEL,
        "Serve texts longer than the model was trained on: linear:2, ntk:2, yarn:4.",
        parser=_wish,
        metavar="KIND:FACTOR",
    ),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", rich_help_panel=_CACHE, help="Compute every prompt in full.")
]
Policy = Annotated[CachePolicy, _option(_CACHE, "Which prefixes go first when room is needed.")]
ShortestKept = Annotated[
    int | None,
    _option(
        _CACHE,
        "Tokens; shorter text is kept only if it comes again. 0 keeps all. Default: 128, or what --profile "
        "counts if that is less.",
        min=0,
    ),
]
Decode = Annotated[
    DecodeMode,
    _option(_CACHE, "exact: what is cached of an answer equals a prefill bit for bit; fast: speed."),
]
MaxRunning = Annotated[int | None, _option(_LOAD, "Most requests that decode together.", min=1)]
MaxWaiting = Annotated[int | None, _option(_LOAD, "Most requests in line; beyond it 429.", min=1)]
PrefillChunk = Annotated[int | None, _option(_LOAD, "Most prompt tokens of one step.", min=32)]
BodyLimit = Annotated[
    int, _option(_LOAD, "Largest request body; beyond it 413.", parser=_size, metavar="SIZE")
]
DrainTimeout = Annotated[
    float, _option(_OPERATION, "Seconds that running requests get to finish when stopping.", min=0)
]
ProfileName = Annotated[
    str, _option(_CACHE, "Whose caching rules are followed: minimum sizes, lifetimes, markers, prices.")
]
ProfilesDir = Annotated[Path | None, _option(_CACHE, "Folder with profile files of your own.")]
StateDir = Annotated[
    Path | None,
    _option(_OPERATION, "Folder for the ledger, sessions and keys. Default: ~/.local/state/hotprefix."),
]
Redact = Annotated[
    bool,
    typer.Option(
        "--redact",
        rich_help_panel=_OPERATION,
        help="Keep lengths instead of the prompts' words where the ledger shows a difference.",
    ),
]
TraceFile = Annotated[
    Path | None,
    _option(
        _OPERATION,
        "Record requests for 'hotprefix replay': lengths and digests of prompt blocks, no text.",
    ),
]
NoDashboard = Annotated[
    bool, typer.Option("--no-dashboard", rich_help_panel=_OPERATION, help="Serve no page at /dashboard.")
]
RequireKeys = Annotated[
    bool,
    typer.Option(
        "--require-keys",
        rich_help_panel=_OPERATION,
        help="Refuse requests without an API key even while none exists; see 'hotprefix keys'.",
    ),
]
LedgerUrl = Annotated[
    str | None,
    _option(
        _OPERATION,
        "PostgreSQL for the ledger, postgresql://…; default: a file in the state folder.",
        envvar="HOTPREFIX_LEDGER_URL",
    ),
]
IsolateScenes = Annotated[
    bool,
    typer.Option(
        "--isolate-scenes", rich_help_panel=_CACHE, help="Scenes (name@version) of a client share no prefix."
    ),
]
Preprocess = Annotated[
    str,
    _option(_CACHE, "Steps that prompts go through, between commas; 'none' leaves them as they are."),
]
NamedMost = Annotated[int, _option(_CACHE, "Most named caches in the server.", min=0)]
NamedPerTenant = Annotated[int, _option(_CACHE, "Most named caches of a tenant.", min=0)]
NamedTokens = Annotated[int, _option(_CACHE, "Most tokens in the named caches of a tenant.", min=0)]
NamedTtl = Annotated[float, _option(_CACHE, "Longest lifetime of a named cache, in seconds.", min=1)]
Warm = Annotated[
    list[Path] | None, _option(_CACHE, "File of prefixes to compute before the server is ready; repeatable.")
]
WarmKey = Annotated[
    str | None, _option(_CACHE, "API key that --warm files belong to.", envvar="HOTPREFIX_API_KEY")
]
Format = Annotated[LogFormat, _option(_OPERATION, "auto: console on a terminal, else JSON.")]
Level = Annotated[LogLevel, _option(_OPERATION, "The least that is logged.")]


def serve_command(
    *,
    config: ConfigFile = None,  # first: it sets the defaults of the others
    host: Host = "127.0.0.1",
    port: Port = 8080,
    model: Model = DEFAULT_MODEL,
    served_name: ServedName = None,
    max_context: MaxContext = None,
    threads: Threads = None,
    kv_arena: KvArena = "2G",  # type: ignore[assignment]  # parsed like an argument
    kv_precision: Precision = KvPrecision.AUTO,
    kv_16bit_layers: SixteenBitLayers = 3,
    rope_scaling: RopeScaling = None,
    kv_strategy: KvStrategyName = StrategyName.DYNAMIC,
    kv_window: KvWindow = None,
    kv_sinks: KvSinks = 4,
    kv_keys: KvKeys = None,
    kv_recent: KvRecent = 64,
    kv_scorer: KvScorer = "auto",
    kv_longest: KvLongest = LONGEST,
    kv_ram: KvRam = "0",  # type: ignore[assignment]  # parsed like an argument
    kv_disk: KvDisk = "0",  # type: ignore[assignment]  # parsed like an argument
    kv_redis: KvRedis = "0",  # type: ignore[assignment]  # parsed like an argument
    redis_url: RedisUrl = DEFAULT_REDIS,
    kv_codec: KvCodec = "raw",
    kv_disk_key: KvDiskKey = None,
    no_cache: NoCache = False,
    policy: Policy = CachePolicy.ADAPTIVE,
    shortest_kept: ShortestKept = None,
    decode: Decode = DecodeMode.FAST,
    profile: ProfileName = DEFAULT_PROFILE,
    profiles_dir: ProfilesDir = None,
    max_running: MaxRunning = None,
    max_waiting: MaxWaiting = None,
    prefill_chunk: PrefillChunk = None,
    body_limit: BodyLimit = "16M",  # type: ignore[assignment]  # parsed like an argument
    drain_timeout: DrainTimeout = 30.0,
    log_format: Format = LogFormat.AUTO,
    log_level: Level = LogLevel.INFO,
    state_dir: StateDir = None,
    ledger_url: LedgerUrl = None,
    require_keys: RequireKeys = False,
    redact: Redact = False,
    trace: TraceFile = None,
    no_dashboard: NoDashboard = False,
    isolate_scenes: IsolateScenes = False,
    preprocess: Preprocess = "none",
    named_caches: NamedMost = _NAMED.caches,
    named_caches_per_tenant: NamedPerTenant = _NAMED.per_tenant,
    named_tokens_per_tenant: NamedTokens = _NAMED.tokens_per_tenant,
    named_longest_ttl: NamedTtl = _NAMED.longest_ttl,
    warm: Warm = None,
    warm_key: WarmKey = None,
) -> None:
    """Serve a model over the APIs of OpenAI, DashScope and Anthropic; shared prefixes are computed once."""
    from hotprefix.app.serve import serve  # brings OpenVINO, which the other commands don't wait for

    settings = ServeSettings(
        host=host,
        port=port,
        model=model,
        served_name=served_name,
        max_context=max_context,
        threads=threads,
        kv_arena=kv_arena,
        kv_precision=kv_precision,
        kv_16bit_layers=kv_16bit_layers,
        rope_scaling=rope_scaling,
        strategy=StrategySettings(
            kv_strategy, kv_window, kv_sinks, kv_keys, kv_recent, kv_longest, kv_scorer
        ),
        kv_ram=kv_ram,
        kv_disk=kv_disk,
        kv_redis=kv_redis,
        redis_url=redis_url,
        kv_codec=kv_codec,
        kv_disk_key=kv_disk_key,
        cache=not no_cache,
        policy=policy,
        shortest_kept=shortest_kept,
        decode=decode,
        max_running=max_running,
        max_waiting=max_waiting,
        prefill_chunk=prefill_chunk,
        body_limit=body_limit,
        drain_timeout=drain_timeout,
        log_format=log_format,
        log_level=log_level,
        state_dir=state_dir or default_state_dir(os.environ),
        ledger_url=ledger_url,
        require_keys=require_keys,
        redact=redact,
        trace=trace,
        dashboard=not no_dashboard,
        isolate_scenes=isolate_scenes,
        preprocess=_steps(preprocess),
        named=NamedLimits(named_caches, named_caches_per_tenant, named_tokens_per_tenant, named_longest_ttl),
        warm=tuple(warm or ()),
        warm_key=warm_key,
        profile=profile,
        profiles_dir=profiles_dir,
    )
    raise_open_files()
    log = configure_logs(log_level, log_format, sys.stderr)
    serve(settings, user_store(None), log, out=Console(), progress=Console(stderr=True))
