"""Well-formed requests get no finding; each of them, spoiled in every way that it can be, is found out."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import yaml

from hotprefix.doctor.lint.run import Linter
from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import recorded_of
from tests.doctor.lint.spoiling import PAIRS, SINGLES, Document
from tests.doctor.lint.support import linter, write

CORPUS = Path(__file__).resolve().parents[2] / "data" / "lint" / "corpus"
FILES = sorted(CORPUS.iterdir())


@cache
def documents() -> tuple[Document, ...]:
    found: list[Document] = []
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        lines = yaml.safe_load_all(text) if file.suffix == ".yaml" else map(json.loads, text.splitlines())
        found += (json.loads(json.dumps(one, default=str)) for one in lines)
    return tuple(found)


@pytest.fixture(scope="module")
def lint() -> Linter:
    return linter()


def test_the_corpus_is_large_and_various() -> None:
    assert len(documents()) >= 200
    recorded = [recorded_of(one, Place("x")) for one in documents()]
    assert all(recorded)
    dialects = [one.dialect for one in recorded if one is not None]
    assert all(dialects.count(dialect) >= 40 for dialect in set(dialects))
    assert len(set(dialects)) == 4
    texts = {json.dumps(one.body, sort_keys=True, ensure_ascii=False) for one in recorded if one}
    assert len(texts) >= 200
    assert sum("是" in text for text in texts) >= 60


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_finding_in_the_files(lint: Linter, file: Path) -> None:
    assert lint.check_file(file).findings == []


def test_no_finding_in_any_request_alone(lint: Linter, tmp_path: Path) -> None:
    for document in documents():
        findings = lint.check_file(write(tmp_path, [document])).findings
        assert findings == [], (document, findings)


@pytest.mark.parametrize("name", SINGLES)
def test_a_spoiled_request_is_found(lint: Linter, tmp_path: Path, name: str) -> None:
    rule, spoil = SINGLES[name]
    spoiled = 0
    for document in documents():
        made = spoil(json.loads(json.dumps(document)))
        if made is None:
            continue
        spoiled += 1
        findings = lint.check_file(write(tmp_path, [made])).findings
        assert rule in {finding.rule.id for finding in findings}, (name, made, findings)
    assert spoiled >= 5, name


@pytest.mark.parametrize("name", PAIRS)
def test_a_change_from_one_request_to_the_next_is_found(lint: Linter, tmp_path: Path, name: str) -> None:
    rule, spoil = PAIRS[name]
    spoiled = 0
    for document in documents():
        made = spoil(json.loads(json.dumps(document)))
        if made is None:
            continue
        spoiled += 1
        findings = lint.check_file(write(tmp_path, made)).findings
        assert rule in {finding.rule.id for finding in findings if finding.is_observed}, (
            name,
            made,
            findings,
        )
    assert spoiled >= 5, name
