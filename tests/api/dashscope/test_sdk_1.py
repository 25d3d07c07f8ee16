"""The real `dashscope` package, 1.x, over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.dashscope.test_native import CALL
from tests.api.remote import Remote
from tests.api.scripted_engine import ScriptedEngine, echo

SAID = "Hello, wörld!"
SCRIPT = Path(__file__).with_name("first_generation.py")


def installed(target: Path) -> str | None:
    """Install the package into `target`; returns why that did not work."""
    uv = shutil.which("uv")
    pip = [uv, "pip"] if uv else [sys.executable, "-m", "pip"]
    done = subprocess.run(
        [*pip, "install", "--quiet", "--target", str(target), "dashscope>=1.24,<2"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return None if done.returncode == 0 else done.stderr.strip()[-300:]


class Picky(ScriptedEngine):
    """Calls a tool when it is told to, or fails in the middle of an answer."""

    def __init__(self) -> None:
        super().__init__(self._answer)

    def _answer(self, prompt: str) -> str:
        said = echo(prompt)
        self.fail_after = 3 if said == "please fail" else None
        return f"Well. {CALL}" if said == "call" else said


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    target = tmp_path_factory.mktemp("dashscope1")
    fault = installed(target)
    if fault is not None:
        pytest.skip(f"dashscope 1.x can't be installed here: {fault}")
    with Remote(Picky(), profile="dashscope-2026-03") as remote:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), remote.url],
            env=os.environ | {"PYTHONPATH": str(target), "PYTHONSAFEPATH": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    yield json.loads(done.stdout)


def content(response: dict[str, Any]) -> str:
    return str(response["output"]["choices"][0]["message"]["content"])


def test_it_is_the_first_generation(seen: dict[str, Any]) -> None:
    assert seen["version"].startswith("1.")


def test_text_and_messages(seen: dict[str, Any]) -> None:
    assert seen["text"]["output"]["text"] == SAID
    assert content(seen["message"]) == SAID
    assert seen["message"]["status_code"] == 200
    assert seen["message"]["request_id"]
    assert seen["parts"]["output"]["choices"][0]["message"]["content"] == [{"text": "Hi"}]


def test_streams(seen: dict[str, Any]) -> None:
    assert "".join(map(content, seen["deltas"])) == SAID
    for kind in ("merged", "sums"):
        texts = list(map(content, seen[kind]))
        assert texts[-1] == SAID
        assert texts == sorted(texts, key=len)
        assert len(texts) > 2
    for kind in ("deltas", "merged", "sums"):
        assert seen[kind][-1]["usage"] == seen["message"]["usage"]
        assert [r["output"]["choices"][0]["finish_reason"] for r in seen[kind]][-2:] == ["null", "stop"]


def test_several_choices(seen: dict[str, Any]) -> None:
    last = seen["several"][-1]
    assert [choice["message"]["content"] for choice in last["output"]["choices"]] == [SAID] * 2
    assert last["usage"]["output_tokens"] == 2 * seen["message"]["usage"]["output_tokens"]


def test_create_then_hit(seen: dict[str, Any]) -> None:
    created = seen["create"]["usage"]["prompt_tokens_details"]
    hit = seen["hit"][0]["usage"]["prompt_tokens_details"]
    assert created["cache_creation_input_tokens"] == 1100 + len("system: ")
    assert created["cached_tokens"] == 0
    assert hit["cached_tokens"] == created["cache_creation_input_tokens"]
    assert hit["cache_creation_input_tokens"] == 0
    assert created["cache_type"] == hit["cache_type"] == "ephemeral"


def test_tools(seen: dict[str, Any]) -> None:
    for response in (seen["tools"], seen["tools_merged"][0]):
        choice = response["output"]["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        (call,) = choice["message"]["tool_calls"]
        assert call["function"] == {"name": "weather", "arguments": '{"city": "Paris"}'}


def test_errors(seen: dict[str, Any]) -> None:
    assert (seen["no_model"]["status_code"], seen["no_model"]["code"]) == (404, "Model.NotExist")
    assert (seen["bad"]["status_code"], seen["bad"]["code"]) == (400, "InvalidParameter")
    assert "parameters.top_p" in seen["bad"]["message"]
    assert seen["bad"]["request_id"]
    *before, last = seen["failing"]
    assert [response["status_code"] for response in before] == [200] * 3
    # The package knows no status of an error in a stream: it calls every one 400.
    assert (last["status_code"], last["code"]) == (400, "InternalError")
    assert last["request_id"]
    assert "secret" not in json.dumps(seen["failing"])
