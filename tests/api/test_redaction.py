"""What the ledger keeps of prompts' words."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hotprefix.api.settings import ApiSettings
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.store import open_store
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import in_process

pytestmark = pytest.mark.anyio
RULES = " and the rules of the house, which never change" * 9


@pytest.mark.parametrize("redact", [False, True])
async def test_the_first_difference_is_kept_in_words_or_in_lengths(tmp_path: Path, redact: bool) -> None:
    ledger = Ledger(open_store(tmp_path / "ledger.sqlite3"))
    settings = ApiSettings(redact=redact)
    async with in_process(ScriptedEngine(), settings, profile="hotprefix", ledger=ledger) as server:
        for secret in ("tulip", "dahlia"):
            messages = [{"role": "system", "content": secret + RULES}, {"role": "user", "content": "Well?"}]
            assert (await server.chat(messages=messages)).status_code == 200
    ledger.close()
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as database:
        rows = database.execute("SELECT divergence FROM ledger_request ORDER BY at").fetchall()
    text = str(rows)
    assert ("dahlia" in text) is not redact
    assert ("characters>" in text) is redact
