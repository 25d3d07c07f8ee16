"""The precisions that could be chosen, with what each costs and gives."""

from __future__ import annotations

from dataclasses import dataclass

from hotprefix.tune.budget import Budget
from hotprefix.tune.kv_bytes import is_exact
from hotprefix.tune.machine import Processor
from hotprefix.tune.model_facts import ModelFacts
from hotprefix.tune.quality_notes import QualityNotes
from hotprefix.tune.speed import Speeds
from hotprefix.tune.wish import Need

_LAYERS = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """`tokens` fit in all the memory there is for KV, `at_once` requests of the needed length.

    Speeds in tokens/s and `seconds` of one request are None where nothing was measured. `exact` says
    whether a prefix is reused to the token; `quality` what the quality card says.
    """

    precision: str
    bytes_per_token: float
    tokens: int
    at_once: int
    exact: bool
    prefill: float | None = None
    decode: float | None = None
    seconds: float | None = None
    quality: str = ""

    def fits(self, need: Need) -> bool:
        """Whether all requests can run together."""
        return self.tokens >= need.tokens


def precisions_for(processor: Processor) -> tuple[str, ...]:
    """From the most exact to the smallest."""
    return (processor.sixteen_bit, "layered-u8", "u8", "layered-u4", "u4")


def candidates(
    processor: Processor, model: ModelFacts, speeds: Speeds, budget: Budget, need: Need, notes: QualityNotes
) -> tuple[Candidate, ...]:
    """All precisions that the model can have, from the most exact to the smallest."""
    found = []
    for precision in precisions_for(processor):
        # A network of few layers can't be cut.
        is_cut = precision.startswith("layered") and model.shape.layers <= _LAYERS
        if is_cut or precision in speeds.refused:
            continue
        kind = processor.computes_in if precision == "auto" else precision
        size = speeds.bytes_per_token.get(precision) or model.shape.bytes_per_token(kind, _LAYERS)
        speed = speeds.by_precision.get(precision)
        tokens = int(budget.kv / size)
        found.append(
            Candidate(
                precision=precision,
                bytes_per_token=size,
                tokens=tokens,
                at_once=tokens // need.context,
                exact=is_exact(precision),
                prefill=None if speed is None else speed.prefill,
                decode=None if speed is None else speed.decode,
                seconds=None if speed is None else need.seconds(speed.prefill, speed.decode),
                quality=str(notes.precision(precision) or ""),
            )
        )
    return tuple(found)
