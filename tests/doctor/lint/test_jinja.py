"""Templates in Jinja."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotprefix.doctor.lint.severity import Severity
from tests.doctor.lint.support import RULES, code, ids, linter, only


def found(folder: Path, text: str, name: str = "system.j2") -> list[str]:
    return ids(code(folder, text, name=name))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Now {{ now() }}", "HP101"),
        ("Now {{ current_time }}", "HP101"),
        ("Now {{ strftime_now('%H:%M') }}", "HP101"),
        ("{% set at = now() %}Now {{ at.hour }}", "HP101"),
        ("For {{ user.id }}", "HP102"),
        ("For {{ user_name|upper }}", "HP102"),
        ("Draw {{ cards|random }}", "HP102"),
        ("In {{ cwd }}", "HP103"),
        ("{% if git_status %}{{ git_status }}{% endif %}", "HP103"),
        ("{% for f in files|shuffle %}{{ f }}{% endfor %}", "HP501"),
        ("Question: {{ question }}", "HP107"),
    ],
)
def test_what_is_filled_in(tmp_path: Path, text: str, rule: str) -> None:
    assert found(tmp_path, f"{text}\n{RULES}") == [rule]


def test_place_and_words(tmp_path: Path) -> None:
    finding = only(code(tmp_path, f"You help.\nIt is {{{{ now() }}}}.\n{RULES}", name="p.jinja"), "HP101")
    assert (finding.place.line, finding.place.column) == (2, 10)
    assert int(finding.words["lost"]) > 1_900


@pytest.mark.parametrize(
    "text",
    [
        "You help {{ company }} in {{ language }}.",
        "{% for tool in tools %}{{ tool.name }}{% endfor %}",
        "{# now() #}Plain.",
        "{% set x = 3 %}{{ x }}",
        "{% for message in messages %}{{ message.role }}: {{ message.content }}{% endfor %}",
    ],
)
def test_what_is_no_fault(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, f"{text}\n{RULES}") == []


def test_only_the_day(tmp_path: Path) -> None:
    for text in ("{{ strftime_now('%d %B %Y') }}", "{{ today() }}", "{{ current_date }}"):
        assert only(code(tmp_path, f"{text}\n{RULES}", name="p.j2"), "HP101").severity is Severity.INFO


def test_a_template_of_the_users_message(tmp_path: Path) -> None:
    assert found(tmp_path, f"It is {{{{ now() }}}}.\n{RULES}", name="user_message.j2") == []


def test_comments_switch_rules_off(tmp_path: Path) -> None:
    text = f"It is {{{{ now() }}}}. {{# hotprefix: ignore[HP101] #}}\n{RULES}"
    assert found(tmp_path, text) == []
    above = f"{{#- hotprefix: ignore[volatile-time] -#}}\nIt is {{{{ now() }}}}.\n{RULES}"
    assert found(tmp_path, above) == []


def test_a_broken_template_is_told(tmp_path: Path) -> None:
    finding = only(code(tmp_path, "one\n{% if %}", name="p.j2"), "HP901")
    assert finding.place.line == 2


def test_what_a_template_includes_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "clock.j2").write_text("It is {{ now() }}.\n", encoding="utf-8")
    (tmp_path / "rules.j2").write_text(RULES, encoding="utf-8")
    text = "Help.\n{% include 'clock.j2' %}\n{% include 'rules.j2' %}{% include 'gone.j2' ignore missing %}"
    (tmp_path / "desk" / "system.j2").write_text(text, encoding="utf-8")
    finding = only(linter().check([tmp_path]).findings, "HP101")
    assert finding.place.file == str(tmp_path / "desk" / "clock.j2")
    assert (finding.place.line, finding.severity) == (1, Severity.WARNING)
    assert int(finding.words["lost"]) > 1_900
    (tmp_path / "desk" / "clock.j2").write_text("{{ now() }} {# hotprefix: ignore #}", encoding="utf-8")
    assert linter().check([tmp_path]).findings == []


def test_templates_that_include_themselves_end(tmp_path: Path) -> None:
    assert found(tmp_path, "{% include 'system.j2' %}{{ now() }}" + RULES) == ["HP101"]
