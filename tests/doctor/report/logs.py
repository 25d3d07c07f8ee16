"""Reports of sample logs and of calls made up for a test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from hotprefix.doctor.report.call import Call, Source
from hotprefix.doctor.report.columns import frame_of
from hotprefix.doctor.report.figures import Report
from hotprefix.doctor.report.make import Wishes, make_report
from hotprefix.profiles.loader import load_profiles

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "report"
NOW = 1_795_000_000.0
BOOK = load_profiles()


def report_of(*logs: Path | str, **wishes: Any) -> Report:
    return make_report([str(log) for log in logs], BOOK, Wishes(**wishes), NOW)


def table_of(*calls: Call) -> pl.LazyFrame:
    return frame_of(calls).lazy()


def call(**fields: Any) -> Call:
    return replace(Call(Source.OPENAI_CHAT), **fields)


def write_lines(path: Path, documents: Iterable[Any]) -> Path:
    text = "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
    path.write_text(text, encoding="utf-8")
    return path


def chat_answer(number: int, prompt: int, read: int | None, output: int = 10, **more: Any) -> dict[str, Any]:
    """What OpenAI Chat answers; without `read` it does not report what it read."""
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
    }
    if read is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": read}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_790_000_000 + number,
        "model": "gpt-5-mini",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}
        ],
        "usage": usage,
    } | more
