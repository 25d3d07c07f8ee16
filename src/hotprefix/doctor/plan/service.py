"""How long a server works on a request, as it was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from hotprefix.doctor.plan.errors import PlanError
from hotprefix.traces.latency import SpeedModel

_MEDIAN_OF = re.compile(r"median of ([\d,]+)")
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """`prompt` gives the seconds of a prompt by kinds of tokens; `answer` is what a token of an answer takes
    of a server's time. `sources` say where each figure is from."""

    prompt: SpeedModel
    answer: float
    sources: Mapping[str, str]

    @property
    def per_second(self) -> float:
        """Tokens that a server computes in a second."""
        return 1 / max(self.prompt.computed, _LEAST)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a file or the options tell, in seconds and bytes; None where they don't."""

    fixed: float | None = None
    computed: float | None = None
    found: float | None = None
    answer: float | None = None
    bytes_per_token: float | None = None
    source: str = ""


def read_measured(file: Path) -> Measured:
    """What `hotprefix tune --json` or `hotprefix bench` wrote. Raises `PlanError`."""
    try:
        document = orjson.loads(file.read_bytes())
    except orjson.JSONDecodeError as error:
        raise PlanError(f"{file} is no JSON: {error}.") from error
    except OSError as error:
        raise PlanError(f"{file} can't be read: {error.strerror or error}.") from error
    if isinstance(document, dict) and isinstance(document.get("speeds"), dict):
        return _of_tune(document, file)
    if isinstance(document, dict) and isinstance(document.get("findings"), list):
        return _of_bench(document, file)
    raise PlanError(f"{file} is neither from 'hotprefix tune --json' nor from 'hotprefix bench'.")


def service_times(given: Measured, measured: Measured | None) -> ServiceTimes:
    """Options before the file, the file before defaults. Raises `PlanError` without the time of a token."""
    default, other = SpeedModel(), measured or Measured()
    sources = {}
    values: dict[str, float] = {}
    for name, usual in (("fixed", default.fixed), ("found", default.found)):
        values[name], sources[name] = _first(name, given, other, usual)
    computed, sources["computed"] = _first("computed", given, other, None)
    values["answer"], sources["answer"] = _first("answer", given, other, computed)
    prompt = SpeedModel(values["fixed"], computed, default.restored, values["found"])
    return ServiceTimes(prompt, values["answer"], sources)


def _first(name: str, given: Measured, measured: Measured, usual: float | None) -> tuple[float, str]:
    option, told = getattr(given, name), getattr(measured, name)
    if option is not None:
        return float(option), "given"
    if told is not None:
        return float(told), measured.source
    if usual is None:
        raise PlanError(
            "A plan needs to know how long a server takes for a token: give --computed 2ms, or --measured "
            "with the JSON of 'hotprefix tune --json' or 'hotprefix bench'."
        )
    return usual, "assumed"


def _of_tune(document: Mapping[str, Any], file: Path) -> Measured:
    chosen, speeds = str(document.get("chosen", "")), document["speeds"]
    by_precision = speeds.get("by_precision") or {}
    if chosen not in by_precision:
        raise PlanError(f"{file} has no measured speeds; run 'hotprefix tune --json' without --no-measure.")
    speed = by_precision[chosen]
    size = (speeds.get("bytes_per_token") or {}).get(chosen)
    return Measured(
        computed=1 / max(float(speed["prefill"]), _LEAST),
        answer=1 / max(float(speed["decode"]), _LEAST),
        bytes_per_token=None if size is None else float(size),
        source=f"{file.name}, {chosen}",
    )


def _of_bench(document: Mapping[str, Any], file: Path) -> Measured:
    """Its scenario of prefixes has three times, from which three others follow:
    miss = fixed + P · computed, repeat = fixed, hit = fixed + (P - k) · computed + k · found."""
    found = next((one for one in document["findings"] if one.get("name") == "prefix"), None)
    if found is None:
        raise PlanError(f"{file} lacks the scenario 'prefix'; run 'hotprefix bench --only prefix'.")
    try:
        miss, hit, repeat = (float(one["median"]) for one in found["measures"][:3])
        facts = {name: value for name, value in found["facts"].items() if _MEDIAN_OF.search(name)}
        name = next(fact for fact in facts if "hit" in fact)
        match = _MEDIAN_OF.search(name)
        assert match is not None
        prompt, known = int(match[1].replace(",", "")), float(facts[name])
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise PlanError(f"{file}: its scenario 'prefix' is not as 'hotprefix bench' writes it.") from error
    computed = max((miss - repeat) / prompt, _LEAST)
    rest = hit - repeat - (prompt - known) * computed
    return Measured(
        fixed=max(repeat, 0.0),
        computed=computed,
        found=max(rest / known, 0.0) if known else None,
        source=file.name,
    )
