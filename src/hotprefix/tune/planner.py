"""Machine, model, measurements and wish → options. Pure: the same facts give the same plan."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from hotprefix.tune.budget import Budget, budget_of
from hotprefix.tune.candidate import Candidate, candidates
from hotprefix.tune.choices import PrecisionRule, choose_chunk, choose_threads
from hotprefix.tune.decision import MIB, Basis, Decision, gib
from hotprefix.tune.errors import DoesNotFit
from hotprefix.tune.kv_bytes import BLOCK
from hotprefix.tune.machine import Machine
from hotprefix.tune.model_facts import ModelFacts
from hotprefix.tune.presets import Preset, preset_for
from hotprefix.tune.quality_notes import QualityNotes
from hotprefix.tune.speed import Speeds
from hotprefix.tune.storage import Storage, StorageRule
from hotprefix.tune.wish import Goal, Need, Wish

_WINDOW = 2048
_LEAST_WINDOW = 4 * BLOCK
_ROOMY = 2


@dataclass(frozen=True, slots=True)
class Facts:
    """What a plan starts from."""

    machine: Machine
    model: ModelFacts
    speeds: Speeds
    notes: QualityNotes


@dataclass(frozen=True, slots=True)
class Plan:
    """`decisions` are the options, in the order of a config; `warnings` what they can't give."""

    facts: Facts
    wish: Wish
    need: Need
    preset: Preset
    budget: Budget
    candidates: tuple[Candidate, ...]
    chosen: Candidate
    decisions: tuple[Decision, ...]
    warnings: tuple[str, ...]


def plan(facts: Facts, wish: Wish) -> Plan:
    """Raises `DoesNotFit` if the model leaves no memory for KV, or too little for a window."""
    machine, model, speeds = facts.machine, facts.model, facts.speeds
    notes = facts.notes if facts.notes.model in ("", model.name) else QualityNotes()
    budget = budget_of(machine, model, speeds)
    long = wish.context is not None and wish.context > model.context
    need = Need(min(wish.context or model.context, model.context), wish.concurrency)
    found = candidates(machine.processor, model, speeds, budget, need, notes)
    preset = preset_for(machine)
    chosen, precision = PrecisionRule(found, preset, need, wish.goal, notes, machine).choose(movable=long)
    window = _window(model, chosen, budget) if long else 0
    held = Need(window or need.context, need.concurrency)
    least = _arena_of_windows(window, need.concurrency, chosen) if long else 0
    rule = StorageRule(chosen, budget, held, wish.goal, notes, least)
    storage = rule.fill(machine.disk, machine.redis)
    at_once = int(storage.arena / chosen.bytes_per_token) // held.context
    decisions = [
        precision,
        choose_chunk(speeds.prefill_by_chunk, preset, wish.goal, need, machine),
        choose_threads(speeds.by_threads, machine, need),
        *storage.decisions,
        *_strategy(wish, model, window, at_once),
        *_length(wish, model),
    ]
    return Plan(
        facts=facts,
        wish=wish,
        need=need,
        preset=preset,
        budget=budget,
        candidates=found,
        chosen=chosen,
        decisions=tuple(decisions),
        warnings=(
            *_other_model(facts),
            *_busy(machine, speeds),
            *_warnings(chosen, held, at_once, storage, budget),
        ),
    )


def _window(model: ModelFacts, chosen: Candidate, budget: Budget) -> int:
    """Half of the model's context, as far as half of an arena can hold it: a cut needs room for copies."""
    # Sizes are written in whole MiB, and one block is the server's own.
    blocks = int(budget.kv // MIB * MIB / (BLOCK * chosen.bytes_per_token)) - 1
    window = min(_WINDOW, model.context // 2 // BLOCK * BLOCK, blocks // 2 * BLOCK)
    if window < _LEAST_WINDOW:
        raise DoesNotFit(
            f"Requests longer than the model's context need a window of at least {_LEAST_WINDOW} tokens, "
            f"which is half of context and arena at most. {model.name} has a context of {model.context:,} "
            f"tokens, and {gib(budget.kv)} are free for keys and values: {max(0, blocks) * BLOCK:,} tokens. "
            "Ask for less with --context, or free some memory."
        )
    return window


def _arena_of_windows(window: int, concurrency: int, chosen: Candidate) -> int:
    """Bytes in which so many windows are cut at the same time, in whole MiB."""
    tokens = 2 * window * concurrency + BLOCK
    return ceil(tokens * chosen.bytes_per_token / MIB) * MIB


def _strategy(wish: Wish, model: ModelFacts, window: int, at_once: int) -> list[Decision]:
    if not window and wish.goal is Goal.LATENCY and at_once >= _ROOMY * wish.concurrency:
        why = f"room for {at_once} requests of full length: none is ever set back for want of blocks"
        return [Decision("kv-strategy", "static", why, Basis.ASKED)]
    if not window:
        why = f"the model's context of {model.context:,} tokens holds every request"
        return [Decision("kv-strategy", "dynamic", why, Basis.MACHINE)]
    why = f"{wish.context:,} tokens are more than the model's context of {model.context:,}"
    return [
        Decision("kv-strategy", "window", why, Basis.ASKED),
        Decision("kv-window", window, "tokens of a request that stay in the arena", Basis.ASKED),
        Decision("kv-longest", int(wish.context or 0), "the length that was asked for", Basis.ASKED),
    ]


def _length(wish: Wish, model: ModelFacts) -> list[Decision]:
    if wish.context is None or wish.context >= model.context:
        return []
    return [Decision("max-context", wish.context, "longer requests are refused", Basis.ASKED)]


def _other_model(facts: Facts) -> list[str]:
    told = facts.notes.model
    return (
        [f"the quality card is of {told}, not of {facts.model.name}: nothing rests on it"]
        if told not in ("", facts.model.name)
        else []
    )


def _busy(machine: Machine, speeds: Speeds) -> list[str]:
    if not speeds.by_precision or not machine.is_busy:
        return []
    return [
        f"the machine was busy (load {machine.load:.1f} on {machine.cores.usable} cores): speeds are of what "
        "others left. Measure again when it is idle."
    ]


def _warnings(chosen: Candidate, held: Need, at_once: int, storage: Storage, budget: Budget) -> list[str]:
    warnings = []
    if at_once < 1:
        warnings.append(
            f"not even one request of {held.context:,} tokens fits in the {gib(budget.kv)} that are free for "
            "keys and values: longer ones are refused. Ask for less with --context."
        )
    elif at_once < held.concurrency:
        warnings.append(
            f"only {at_once} of {held.concurrency} requests of {held.context:,} tokens run at once; "
            "the others wait."
        )
    if not chosen.exact:
        warnings.append(
            f"{chosen.precision} is quantised: prefixes are reused in whole blocks, and answers can differ "
            "from those of 16 bits (docs/PRECISION.md)."
        )
    if storage.codec != "raw" and any(one.key == "kv-codec" for one in storage.decisions):
        warnings.append(
            f"prefixes that come back from a tier were kept in {storage.codec}: answers behind them can "
            "differ a little from those without a cache (docs/CODECS.md)."
        )
    return warnings
