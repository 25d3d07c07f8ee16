"""The customer-service scene, as its script runs it against a real server with the default profile.

Tokens and money are certain and checked; times depend on the machine and are only shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hotprefix.app.wiring import texts
from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import serving

pytestmark = [pytest.mark.model, pytest.mark.slow]

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "customer_service"
REQUESTS = 12


@pytest.fixture(scope="module")
def facts(default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with serving(tmp_path_factory.mktemp("service")) as server:
        command = [sys.executable, str(FOLDER / "compare.py"), "--url", server.url, "--json"]
        done = subprocess.run(
            [*command, "--requests", str(REQUESTS)],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env={name: value for name, value in os.environ.items() if name != "HOTPREFIX_API_KEY"}
            | {"NO_PROXY": "*", "no_proxy": "*"},
        )
        assert (done.returncode, done.stderr) == (0, "")
        yield json.loads(done.stdout)


def test_the_prompt_has_1200_tokens_and_the_questions_50(default_model: ModelManifest) -> None:
    tokenizer = texts(default_model).tokenizer
    system = (FOLDER / "system_prompt.txt").read_text(encoding="utf-8")
    questions = (FOLDER / "questions.txt").read_text(encoding="utf-8").splitlines()
    assert 1195 <= len(tokenizer.encode(system)) <= 1215
    lengths = [len(tokenizer.encode(question)) for question in questions]
    assert len(lengths) == REQUESTS
    assert 45 <= sum(lengths) / REQUESTS <= 55
    assert all(40 <= length <= 60 for length in lengths)


def test_tokens(facts: dict[str, Any], default_model: ModelManifest) -> None:
    spoiled, fixed, marked = facts["ways"]
    fixed_tokens = len(
        texts(default_model).tokenizer.encode((FOLDER / "system_prompt.txt").read_text(encoding="utf-8"))
    )
    assert (spoiled["read"], spoiled["written"], spoiled["computed"]) == (0, 0, spoiled["prompt"])
    # All requests but the first one find the system prompt and the few tokens around it.
    warm = REQUESTS - 1
    assert warm * fixed_tokens < fixed["read"] < warm * (fixed_tokens + 20)
    assert (fixed["computed"], fixed["written"]) == (fixed["prompt"] - fixed["read"], 0)
    assert fixed_tokens <= marked["written"] < fixed_tokens + 10
    assert marked["read"] == warm * marked["written"]
    assert marked["computed"] == marked["prompt"] - marked["read"] - marked["written"]
    assert fixed["prompt"] == marked["prompt"]


def test_money(facts: dict[str, Any]) -> None:
    """By the default profile: 0.8 in, 2.0 out for a million; reads at 20 and 10 per cent, writes at 125."""
    spoiled, fixed, marked = facts["ways"]

    def money(way: dict[str, Any], read: str) -> Decimal:
        tokens = way["computed"] + way["read"] * Decimal(read) + way["written"] * Decimal("1.25")
        return (tokens * Decimal("0.8") + way["output"] * Decimal(2)) / 1_000_000

    assert Decimal(spoiled["money"]) == money(spoiled, "0")
    assert Decimal(fixed["money"]) == money(fixed, "0.2")
    assert Decimal(marked["money"]) == money(marked, "0.1")
    assert all(reduction >= 60 for reduction in facts["cost_reduction"].values()), facts["cost_reduction"]


def test_time_is_shown(
    facts: dict[str, Any], record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for way, less in facts["first_token_reduction"].items():
        record_property(way, less)
    with capsys.disabled():
        print(f"\nfirst token, per cent less than with a stamp in front: {facts['first_token_reduction']}")
    assert all(len(way["first_tokens"]) == REQUESTS and min(way["first_tokens"]) > 0 for way in facts["ways"])
