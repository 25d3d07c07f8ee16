"""From logs to the requests of a prompt."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from hotprefix.doctor.prompts.errors import ExperimentError
from hotprefix.doctor.prompts.experiment.log import Unit, all_calls, prompt_calls, read_scores
from hotprefix.doctor.report.table import Choice
from hotprefix.ledger.store import open_store
from hotprefix.profiles.loader import load_profiles
from tests.ledger.rows import ROW, row

BOOK = load_profiles()
BODY = {"model": "qwen-plus", "messages": [{"role": "user", "content": "x"}]}


def answered(number: int, version: str, **more: Any) -> dict[str, Any]:
    return {
        "timestamp": 1_764_000_000 + number,
        "ttft_ms": 100 + number,
        "headers": {"x-hotprefix-prompt": f"greeting@{version}"},
        "request": BODY,
        "response": {
            "id": f"r{number}",
            "object": "chat.completion",
            "model": "qwen-plus",
            "choices": [{"finish_reason": more.pop("finish", "stop"), "index": 0, "message": {}}],
            "usage": {
                "prompt_tokens": 2_000,
                "completion_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 1_000},
            },
        },
        **more,
    }


def written(path: Path, documents: list[dict[str, Any]]) -> str:
    path.write_bytes(b"\n".join(map(orjson.dumps, documents)))
    return str(path)


def test_answers_failures_and_cuts(tmp_path: Path) -> None:
    failed = {key: value for key, value in answered(3, "v2").items() if key != "response"}
    log = written(
        tmp_path / "calls.jsonl",
        [
            answered(1, "v1"),
            answered(2, "v2", finish="length"),
            failed | {"error": {"message": "overloaded"}},
            failed | {"status_code": 503, "timestamp": 1_764_000_009},
            answered(4, "v1", headers={"x-hotprefix-prompt": "farewell@v1"}),
            {key: value for key, value in answered(5, "v1").items() if key != "headers"},
        ],
    )
    found = prompt_calls(all_calls([log], BOOK, Choice()), "greeting", Unit.AUTO)
    rows = found.table.sort("at").select("prompt_version", "failed", "cut", "finish").rows()
    assert rows == [
        ("v1", False, False, "stop"),
        ("v2", False, True, "length"),
        ("v2", True, None, "error"),
        ("v2", True, None, "error"),
    ]
    assert found.unit is Unit.REQUEST
    assert found.table["unit"].n_unique() == 4
    first = found.table.sort("at").row(0, named=True)
    assert (first["first_token"], first["read"], first["currency"]) == (0.101, 1_000, "CNY")
    # 1,000 at 0.8 and 1,000 read at a fifth of it, 10 at 2 CNY a million.
    assert first["money"] == pytest.approx((1_000 * 0.8 + 1_000 * 0.16 + 10 * 2) * 1e-6)


def test_a_failed_response_counts_once_with_or_without_usage(tmp_path: Path) -> None:
    """What comes back with its usage is a call of the report's already."""
    answer = {"id": "r", "object": "response", "status": "failed", "error": {"code": "server_error"}}
    usage = {"input_tokens": 5, "output_tokens": 0}
    documents = [
        answered(n, "v1") | {"request": {"model": "gpt-5-mini", "input": "x"}, "response": answer | more}
        for n, more in enumerate([{"usage": None}, {"usage": usage}])
    ]
    calls = all_calls([written(tmp_path / "calls.jsonl", documents)], BOOK, Choice())
    found = prompt_calls(calls, "greeting", Unit.REQUEST).table.sort("at")
    assert found.select("failed", "prompt").rows() == [(True, None), (True, 5)]


def test_units_are_sessions_where_they_are_known(tmp_path: Path) -> None:
    documents = [answered(n, "v1", session=f"s{n // 4}") for n in range(40)]
    log = written(tmp_path / "calls.jsonl", documents)
    calls = all_calls([log], BOOK, Choice())
    found = prompt_calls(calls, "greeting", Unit.AUTO)
    assert (found.unit, found.table["unit"].n_unique()) == (Unit.SESSION, 10)
    assert prompt_calls(calls, "greeting", Unit.REQUEST).table["unit"].n_unique() == 40


def test_the_ledger_of_a_server(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    with closing(open_store(file)) as store:
        store.append([row(n, tenant=f"t{n % 3}") for n in range(6)])
        store.append([replace(ROW, request_id="a", finish="aborted"), row(9, prompt_name="")])
    found = prompt_calls(all_calls([str(file)], BOOK, Choice()), "greeting", Unit.TENANT)
    assert found.table.height == 7
    assert found.table["unit"].n_unique() == 4
    assert found.table["failed"].sum() == 1
    assert found.table["money"][0] == pytest.approx(0.0000752)


def test_a_prompt_that_no_log_names(tmp_path: Path) -> None:
    log = written(tmp_path / "calls.jsonl", [answered(1, "v1")])
    with pytest.raises(ExperimentError, match="Send 'x-hotprefix-prompt: farewell@VERSION'"):
        prompt_calls(all_calls([log], BOOK, Choice()), "farewell", Unit.AUTO)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".json", ".parquet"])
def test_scores_by_request_and_by_session(tmp_path: Path, ending: str) -> None:
    documents = [answered(n, "v1", session=f"s{n // 2}") for n in range(4)]
    calls = all_calls([written(tmp_path / "calls.jsonl", documents)], BOOK, Choice())

    def scored(table: pl.DataFrame) -> list[float | None]:
        file = tmp_path / f"scores{ending}"
        {
            ".csv": table.write_csv,
            ".jsonl": table.write_ndjson,
            ".json": table.write_json,
            ".parquet": table.write_parquet,
        }[ending](file)
        found = prompt_calls(calls, "greeting", Unit.AUTO, read_scores(file))
        return found.table.sort("at")["score"].to_list()

    assert scored(pl.DataFrame({"request_id": ["r3", "r0"], "score": [1, 5]})) == [5.0, None, None, 1.0]
    by_session = scored(pl.DataFrame({"session": ["s0", "s1"], "score": [2.5, 4.0]}))
    assert sorted(score for score in by_session if score is not None) == [2.5, 4.0]
    assert [score is None for score in by_session].count(True) == 2
    with pytest.raises(ExperimentError, match="that is in the logs"):
        scored(pl.DataFrame({"request_id": ["nobody"], "score": [1]}))


@pytest.mark.parametrize(
    ("text", "told"),
    [("a,b\n1,2\n", "it needs request_id or session, and score"), ("session,score\ns1,good\n", "no number")],
)
def test_scores_that_are_none(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(text)
    with pytest.raises(ExperimentError, match=told):
        read_scores(file)
