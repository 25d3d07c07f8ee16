"""Service times from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from hotprefix.doctor.plan.errors import PlanError
from hotprefix.doctor.plan.service import Measured, read_measured, service_times

TUNE = {
    "speeds": {
        "by_precision": {"u8": {"prefill": 500.0, "decode": 25.0}},
        "bytes_per_token": {"u8": 12_000.0},
    },
    "chosen": "u8",
}


def bench(fixed: float, computed: float, found: float, prompt: int, known: int) -> dict[str, Any]:
    """What the scenario 'prefix' of a benchmark finds on a server of these times."""
    hit = fixed + (prompt - known) * computed + known * found
    medians = {"miss": fixed + prompt * computed, "hit: known prefix, new end": hit, "exact repeat": fixed}
    return {
        "findings": [
            {
                "name": "prefix",
                "measures": [{"name": name, "unit": "s", "median": value} for name, value in medians.items()],
                "facts": {f"tokens from the cache, hit (median of {prompt})": known, "other": 1},
            }
        ]
    }


def written(path: Path, document: Any) -> Path:
    path.write_bytes(orjson.dumps(document))
    return path


def test_from_tune(tmp_path: Path) -> None:
    measured = read_measured(written(tmp_path / "tune.json", TUNE))
    times = service_times(Measured(), measured)
    assert (times.prompt.computed, times.answer, measured.bytes_per_token) == (0.002, 0.04, 12_000)
    assert times.sources["computed"] == "tune.json, u8"
    assert times.sources["fixed"] == "assumed"
    assert times.per_second == 500


def test_from_a_benchmark_the_times_that_it_was_made_with(tmp_path: Path) -> None:
    document = bench(0.012, 0.0015, 0.00002, 2_112, 2_048)
    times = service_times(Measured(), read_measured(written(tmp_path / "bench.json", document)))
    assert times.prompt.fixed == pytest.approx(0.012)
    assert times.prompt.computed == pytest.approx(0.0015)
    assert times.prompt.found == pytest.approx(0.00002)
    assert times.answer == pytest.approx(0.0015)  # not measured there


def test_options_go_first(tmp_path: Path) -> None:
    measured = read_measured(written(tmp_path / "tune.json", TUNE))
    times = service_times(Measured(computed=0.5, answer=0.1), measured)
    assert (times.prompt.computed, times.answer) == (0.5, 0.1)
    assert times.sources["computed"] == "given"


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"a": 1}, "neither from"),
        ([], "neither from"),
        ({"findings": []}, "lacks the scenario 'prefix'"),
        ({"findings": [{"name": "prefix", "measures": []}]}, "is not as"),
        (TUNE | {"chosen": "bf16"}, "no measured speeds"),
    ],
)
def test_files_that_tell_nothing(tmp_path: Path, document: Any, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        read_measured(written(tmp_path / "x.json", document))
    (tmp_path / "y.json").write_text("{")
    with pytest.raises(PlanError, match="is no JSON"):
        read_measured(tmp_path / "y.json")
    with pytest.raises(PlanError, match="give --computed"):
        service_times(Measured(), None)
