"""What `hotprefix replay` is asked to try: lists on the command line become one run for each combination."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from hotprefix.app.sizes import parse_size, show_size
from hotprefix.pages.codecs.catalogue import build_codec
from hotprefix.pages.format import CacheInput, KvFormat
from hotprefix.traces.errors import BadReplay
from hotprefix.traces.latency import SpeedModel
from hotprefix.traces.provider_rules import ProviderRules
from hotprefix.traces.routing import Routing
from hotprefix.traces.settings import ReplaySettings
from hotprefix.traces.survey import Survey

MOST_RUNS = 200
_CODEC_BLOCK = 32
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
_BLOCKS = re.compile(r"\d+")
_SHAPE = re.compile(r"(\d{1,4})x(\d{1,4})x(\d{1,4})")


def parts(text: str) -> list[str]:
    """The entries of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


@dataclass(frozen=True, slots=True)
class KvShape:
    """Keys and values of a model at 16 bits: layers, heads of keys and values, and their size."""

    layers: int
    heads: int
    size: int

    @classmethod
    def parse(cls, text: str) -> KvShape:
        """`30x3x64`. Raises `BadReplay`."""
        match = _SHAPE.fullmatch(text.strip())
        if match is None or not all(map(int, match.groups())):
            raise BadReplay(
                f"{text!r} is no shape; write layers, heads of keys and values, and head size: 30x3x64."
            )
        return cls(*map(int, match.groups()))

    @property
    def token_bytes(self) -> int:
        """Bytes of a token at 16 bits."""
        return self.format.block_bytes // _CODEC_BLOCK

    @property
    def format(self) -> KvFormat:
        """The format of an arena of bf16 blocks."""
        shape = (self.heads, _CODEC_BLOCK, self.size)
        inputs = (
            CacheInput(f"{what}_cache.{layer}", "bf16", 16, shape)
            for layer in range(self.layers)
            for what in ("key", "value")
        )
        return KvFormat(_CODEC_BLOCK, tuple(inputs))

    def share_of(self, codec: str) -> float:
        """What a block takes in a storage codec, against 16 bits. Raises `BadReplay`."""
        if codec == "raw":
            return 1.0
        kv_format = self.format
        try:
            return build_codec(codec, kv_format, None).block_bytes / kv_format.block_bytes
        except ValueError as error:
            raise BadReplay(f"{str(error)[:1].upper()}{str(error)[1:]}.") from error


class _Choice(NamedTuple):
    """One entry of every list."""

    capacity: str
    policy: str
    codec: str
    block: int
    lifetime: float | None
    replicas: int
    routing: Routing


@dataclass(frozen=True, slots=True)
class Sweep:
    """The lists as they were written, and what holds for all runs."""

    capacities: Sequence[str]
    policies: Sequence[str]
    codecs: Sequence[str]
    blocks: Sequence[str]
    lifetimes: Sequence[str]
    replicas: Sequence[str]
    routings: Sequence[str]
    tier: str | None
    shape: KvShape
    speed: SpeedModel
    rules: ProviderRules | None

    @property
    def needs_survey(self) -> bool:
        """Whether a capacity is a share of what the trace holds."""
        return any(_SHARE.fullmatch(text) for text in (*self.capacities, self.tier or ""))

    def runs(self, survey: Survey | None, trace_block: int) -> list[ReplaySettings]:
        """One run for each combination; without shares no survey is needed. Raises `BadReplay`."""
        lists = (
            self.capacities,
            self.policies,
            self.codecs,
            [_number("--block", text, trace_block) for text in self.blocks] or [trace_block],
            [None if text == "none" else _seconds(text) for text in self.lifetimes] or [None],
            [_number("--replicas", text, 1) for text in self.replicas],
            [_routing(text) for text in self.routings],
        )
        if any(not entries for entries in lists):
            raise BadReplay("A list is empty. Give at least one entry to each.")
        runs = [self._run(survey, trace_block, _Choice(*chosen)) for chosen in product(*lists)]
        if len(runs) > MOST_RUNS:
            raise BadReplay(f"That makes {len(runs)} runs, more than {MOST_RUNS}. Try fewer values at once.")
        # With one replica all routings are the same.
        return list({tuple(run.labels.items()): run for run in runs}.values())

    def _run(self, survey: Survey | None, trace_block: int, chosen: _Choice) -> ReplaySettings:
        capacity, policy, codec, block, lifetime, replicas, routing = chosen
        block_bytes = self.shape.token_bytes * block
        whole = -(-survey.unique * trace_block // block) if survey is not None else 0
        share = self.shape.share_of(codec)
        arena, tier = _blocks(capacity, whole, block_bytes), 0
        # The arena computes at 16 bits: a codec is for what lies behind it, or for a store that is alone.
        if self.tier is not None:
            tier = int(_blocks(self.tier, whole, block_bytes) / share)
            held = arena
        else:
            held = max(1, int(arena / share))
        labels = {
            "capacity": f"{capacity} ({show_size(arena * block_bytes)})"
            if not _is_size(capacity)
            else capacity,
            "policy": policy,
            "codec": codec,
            "block": str(block),
            "ttl": "none" if lifetime is None else f"{lifetime:g} s",
            "replicas": str(replicas),
            "routing": routing.value if replicas > 1 else "–",
        }
        return ReplaySettings(
            capacity=held,
            policy=policy,
            merged=block // trace_block,
            lifetime=lifetime,
            tier=tier,
            replicas=replicas,
            routing=routing,
            rules=self.rules,
            speed=self.speed,
            labels=labels,
        )


def varied(runs: Sequence[ReplaySettings]) -> list[str]:
    """The labels in which the runs differ, in their order; the capacity is always told."""
    names = runs[0].labels if runs else {}
    return [name for name in names if name == "capacity" or len({run.labels[name] for run in runs}) > 1]


def _is_size(text: str) -> bool:
    return not _SHARE.fullmatch(text) and not _BLOCKS.fullmatch(text)


def _blocks(text: str, whole: int, block_bytes: int) -> int:
    """`5%` of the trace's blocks, `2G` of memory, or a number of blocks."""
    if match := _SHARE.fullmatch(text):
        return max(1, int(whole * float(match[1]) / 100))
    if _BLOCKS.fullmatch(text):
        return max(1, int(text))
    try:
        blocks = parse_size(text) // block_bytes
    except ValueError as error:
        raise BadReplay(
            f"{text!r} is no capacity; write 5% of the trace's blocks, 2G, or a number of blocks."
        ) from error
    if not blocks:
        raise BadReplay(f"{text} does not hold a single block of {show_size(block_bytes)}.")
    return blocks


def _number(option: str, text: str, step: int) -> int:
    if not _BLOCKS.fullmatch(text) or int(text) < 1 or int(text) % step:
        wanted = f"a multiple of the trace's {step} tokens" if step > 1 else "a number from 1 on"
        raise BadReplay(f"{option} is {text!r}; it has to be {wanted}.")
    return int(text)


def _seconds(text: str) -> float:
    for unit, factor in (("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)):
        if text.endswith(unit):
            try:
                seconds = float(text.removesuffix(unit)) * factor
            except ValueError:
                continue
            if seconds > 0:
                return seconds
    raise BadReplay(f"{text!r} is no lifetime; write 300, 5m, 1h or none.")


def _routing(text: str) -> Routing:
    try:
        return Routing(text)
    except ValueError:
        raise BadReplay(f"There is no routing {text!r}. Choose one of: {', '.join(Routing)}.") from None
