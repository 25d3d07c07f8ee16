"""A model folder and settings → an engine."""

from __future__ import annotations

import functools
from dataclasses import replace

import openvino as ov

from hotprefix.base.clock import Clock
from hotprefix.base.errors import UnsupportedModel
from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.cache.base import KvCache
from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.pins import PinBoard
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.regulars import Regulars
from hotprefix.cache.rules import ReuseRules
from hotprefix.cache.tiering import Tiering
from hotprefix.cache.uncached import UncachedCache
from hotprefix.engine.engine import Engine, EngineLimits
from hotprefix.engine.front import ServedModel
from hotprefix.engine.grammar import GrammarCompiler
from hotprefix.engine.graph import Told, kv_format, read_paged_model
from hotprefix.engine.observer import EngineObserver
from hotprefix.engine.rotary_of import rotary_of
from hotprefix.engine.runner import PagedRunner
from hotprefix.engine.sampler import Sampler
from hotprefix.engine.scheduler import Scheduler
from hotprefix.engine.settings import DecodeMode, EngineSettings
from hotprefix.engine.shares import floor_reserve
from hotprefix.engine.stages import LAYERED, compile_network
from hotprefix.engine.stepper import Parts, Stepper
from hotprefix.engine.strategy.kit import strategy_kit
from hotprefix.engine.strategy.watch import AttentionWatch
from hotprefix.engine.tiers import CodecFacts, open_tiers
from hotprefix.keys.scope import CacheScope
from hotprefix.kv.accounts import Accounts
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.policy.quota import QuotaPolicy
from hotprefix.kv.pool import BlockPool
from hotprefix.kv.tree import BlockTree
from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.codecs.calibrations import find_calibration
from hotprefix.pages.format import KvFormat
from hotprefix.prompt.answers import AnswerMemory

TIER_SCOPE = "@tiers"
"""Salt of the scope that records in tiers carry. Salts of tenants are digests in hexadecimal."""


def load_engine(
    manifest: ModelManifest,
    model: ServedModel,
    answers: AnswerMemory,
    settings: EngineSettings,
    observer: EngineObserver,
    clock: Clock,
    sampler: Sampler | None = None,
) -> Engine:
    """Compile the model and put an engine, not yet started, around it.

    Raises `ModelError` if the model can't be compiled or the arena is too small for it.
    """
    core = ov.Core()
    graph = read_paged_model(core, manifest.graph, manifest.ropes, told(settings))
    network = compile_network(core, graph, settings)
    kv = kv_format(*network)
    model = replace(model, kv_precision=kv.precision, kv_bytes_per_token=kv.bytes_per_token)
    arena = BlockArena(kv, _block_count(kv, settings))
    runner = PagedRunner(network[0], arena, BlockId(arena.blocks - 1), *network[1:])
    context = manifest.context_length
    if settings.max_context is not None:
        context = min(context, settings.max_context)
    cache = build_cache(arena, settings, context)
    scopes = _Scopes(manifest.fingerprint, kv.describe(), settings.secret)
    arena_tokens = cache.usable_blocks * cache.block_size
    # Keys of integers have their scales in rows of their own, values in longer rows.
    head_size = next(cache.block_shape[-1] for cache in kv.inputs if cache.name.startswith("key_cache"))
    rotary = functools.cache(lambda: rotary_of(core, graph, head_size))
    kit = strategy_kit(settings.strategy, context, arena, cache, rotary)
    pins = PinBoard(cache, cache.pool.size // 2) if isinstance(cache, PrefixCache) else None
    tiering = None
    if pins is not None and settings.tiers.is_any:
        taught = functools.partial(find_calibration, manifest, settings.tiers.calibrations)
        facts = CodecFacts(rotary, taught)
        stack = open_tiers(settings.tiers, kv, facts, scopes.root(TIER_SCOPE), clock)
        tiering = Tiering(pins.cache, arena, stack, clock, pins)
    parts = Parts(
        cache=cache,
        runner=runner,
        scheduler=Scheduler(cache, settings, kit.compactor),
        tokenizer=model.tokenizer,
        grammars=GrammarCompiler(model.tokenizer, manifest.eos_ids, runner.vocab_size),
        eos_ids=manifest.eos_ids,
        vocab_size=runner.vocab_size,
        block_bytes=kv.block_bytes,
        strategies=kit.strategies,
        root_for=scopes.root,
        answers=answers,
        pins=pins,
        tiering=tiering,
        watch=AttentionWatch(runner) if told(settings) is Told.ATTENTION else None,
        sampler=Sampler() if sampler is None else sampler,
    )
    limits = EngineLimits(context, arena_tokens, settings.max_waiting)
    stepper = Stepper(parts, clock, observer)
    stepper.grant(settings.quotas)
    return Engine(model, stepper, limits, clock, kv.describe())


def told(settings: EngineSettings) -> Told:
    """Attention is told only where it judges tokens: it costs time in every step."""
    if settings.strategy.judge != "attention":
        return Told.LOGITS
    if settings.kv_precision in LAYERED:
        if settings.strategy.name.cuts:
            return Told.LOGITS  # is refused for its integers, whoever judges
        raise UnsupportedModel(
            f"attention can't judge tokens with --kv-precision {settings.kv_precision}: the network is cut "
            "in two; choose another --kv-scorer or one precision for all layers"
        )
    return Told.ATTENTION


def build_cache(arena: BlockArena, settings: EngineSettings, context: int) -> KvCache:
    """The cache that `settings` ask for, over all blocks of `arena` but the last, the runner's scratch.

    `context` is the most tokens of a request.
    """
    kv, pool = arena.format, BlockPool(arena.blocks - 1)
    rules = reuse_rules(kv, settings.decode)
    if settings.policy is None:
        return UncachedCache(pool, rules)
    logits, make = LogitsStore(settings.logits_bytes), POLICIES[settings.policy]
    wanted = sum(quota.blocks(kv.block_size).floor for quota in settings.quotas)
    accounts = Accounts(floor_reserve(pool.size, -(-context // kv.block_size), wanted))
    quotas = QuotaPolicy(lambda: make(pool.size), accounts)
    tree = BlockTree(kv.block_size, quotas.in_force, accounts)
    return PrefixCache(pool, tree, rules, logits, arena, quotas, Regulars(settings.shortest_kept))


def reuse_rules(kv: KvFormat, decode: DecodeMode) -> ReuseRules:
    """Which splits of a prompt leave its bits unchanged in this format.

    Quantised blocks depend on when their tokens came: only whole ones may be reused, and in exact
    mode none that decoding wrote.
    """
    if not kv.is_quantised:
        return ReuseRules(kv.block_size)
    return ReuseRules(kv.block_size, kv.block_size, keep_decoded=decode is DecodeMode.FAST)


class _Scopes:
    """Roots of the tenants' scopes in one engine."""

    def __init__(self, fingerprint: str, kv_format: str, secret: bytes) -> None:
        self._fingerprint = fingerprint
        self._kv_format = kv_format
        self._secret = secret

    def root(self, tenant: str) -> BlockKey:
        return CacheScope(self._fingerprint, self._kv_format, tenant=tenant).root(self._secret)


def _block_count(kv: KvFormat, settings: EngineSettings) -> int:
    blocks = settings.arena_bytes // kv.block_bytes
    if blocks < 4:
        raise UnsupportedModel(
            f"an arena of {settings.arena_bytes:,} bytes holds {blocks} blocks of this model; "
            f"give it at least {4 * kv.block_bytes:,} bytes (--kv-arena)"
        )
    return int(blocks)
