"""What the documents say is so: options, links, routes, fields, metrics and errors."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
import typer
from prometheus_client import CollectorRegistry
from pydantic import BaseModel

import hotprefix
from hotprefix.api.anthropic.request import MessagesRequest
from hotprefix.api.chat_request import ChatRequest
from hotprefix.api.completion_request import CompletionRequest
from hotprefix.api.dashscope.request import NativeParameters, NativeRequest
from hotprefix.api.errors import problem_of
from hotprefix.api.metrics import ServerMetrics
from hotprefix.api.responses.request import ResponsesRequest
from hotprefix.api.tier_metrics import TierCollector
from hotprefix.app.cli import build_app
from hotprefix.base.errors import HotprefixError, RequestError, Unavailable
from hotprefix.engine.settings import EngineSettings
from hotprefix.tune.vllm.flags import FLAGS, GONE

ROOT = Path(__file__).resolve().parent.parent
READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")
PAGES = sorted([*READMES, ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.md"), *ROOT.glob("[!.]*/README.md")])
OTHERS = {"--only-matching", "--no-deps", "--merge", *(flag.name for flag in FLAGS), *GONE}
"""Options of other programs that a page may name."""


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def code_of(text: str) -> list[str]:
    """Fenced blocks, then everything between backticks."""
    fenced = re.findall(r"^```.*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [*fenced, *re.findall(r"`([^`\n]+)`", rest)]


def table_rows(text: str) -> list[list[str]]:
    """Cells of every table row, without the lines under the headings."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]


@cache
def commands() -> dict[str, set[str]]:
    """`serve`, `models add`, … → its options."""

    def walk(command: click.Command, path: str) -> Iterator[tuple[str, set[str]]]:
        yield (
            path,
            {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)},
        )
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, f"{path} {name}".strip())

    return dict(walk(typer.main.get_command(build_app()), ""))


def options_in(code: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", code))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_exist(page: Path) -> None:
    known = set().union(*commands().values()) | OTHERS | {"--help"}
    for code in code_of(page.read_text(encoding="utf-8")):
        for line in code.splitlines():
            called = re.search(r"\bhotprefix ((?:models |keys public |keys |prompts )?[a-z]+)", line)
            if called and called[1] in commands():
                allowed = commands()[called[1]] | OTHERS | {"--help"}
                forwarded = "--server-option" in line
                assert options_in(line) <= (known if forwarded else allowed), line
            elif called and options_in(line):
                raise AssertionError(f"no such command: {line}")
            else:
                assert options_in(line) <= known, line


def test_every_option_of_serve_is_explained_with_its_default() -> None:
    rows = {
        row[0].strip("`"): row
        for row in table_rows(text_of("docs/OPERATIONS.md"))
        if row[0].startswith("`--")
    }
    command = getattr(typer.main.get_command(build_app()), "commands")["serve"]  # noqa: B009
    parameters = {
        parameter.opts[0]: parameter for parameter in command.params if parameter.opts[0] != "--help"
    }
    assert set(rows) == set(parameters)
    engine = EngineSettings()
    for name, row in rows.items():
        default = parameters[name].default
        if default is None:
            default = getattr(engine, name.removeprefix("--").replace("-", "_"), None)
        if default not in (None, False):
            shown = row[1].strip("`").replace(",", "")
            assert shown == str(default), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert ROOT in target.parents, link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, link


def test_both_readmes_have_the_same_parts() -> None:
    english, chinese = (readme.read_text(encoding="utf-8") for readme in READMES)
    for part in (r"^(#+) ", r"^```.*?^```", r"\]\(((?!README)[^)]+)\)", r"^<!-- bench:\w+ -->$"):
        found = [re.findall(part, text, re.MULTILINE | re.DOTALL) for text in (english, chinese)]
        assert found[0] == found[1]
        assert found[0]
    assert [len(row) for row in table_rows(english)] == [len(row) for row in table_rows(chinese)]
    assert english.count("\n- ") == chinese.count("\n- ")


def test_every_document_is_listed() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{page.name})" in text_of("README.md"), page.name


def test_every_route_is_listed() -> None:
    source = text_of("src/hotprefix/api/application.py")
    routes = re.findall(r'Route\(f?"([^"]+)", .*methods=\["(\w+)"\]', source)
    assert len(routes) >= 8
    rows = {row[0] for page in ROOT.glob("docs/*.md") for row in table_rows(page.read_text(encoding="utf-8"))}
    for path, method in routes:
        shown = path.replace("{prefix}", "/v1").replace("{root}", "").replace("{{name:path}}", "{name}")
        assert f"`{method} {shown}`" in rows


@pytest.mark.parametrize("body", [ChatRequest, CompletionRequest])
def test_every_field_is_listed(body: type[ChatRequest | CompletionRequest]) -> None:
    named = set(re.findall(r"`(\w+)`", text_of("docs/openai.md")))
    assert set(body.model_fields) <= named


@pytest.mark.parametrize(
    ("page", "body"),
    [
        ("docs/dashscope.md", NativeParameters),
        ("docs/dashscope.md", NativeRequest),
        ("docs/anthropic.md", MessagesRequest),
        ("docs/responses.md", ResponsesRequest),
    ],
)
def test_every_field_of_other_dialects_is_listed(page: str, body: type[BaseModel]) -> None:
    assert set(body.model_fields) <= set(re.findall(r"`(\w+)[`.]", text_of(page)))


def test_every_metric_is_listed() -> None:
    registry = CollectorRegistry()
    ServerMetrics(registry, version="1", model="m")
    registry.register(TierCollector(dict, int, int))
    real = {
        (family.name + ("_total" if family.type == "counter" else ""), family.type)
        for family in registry.collect()
    }
    rows = table_rows(text_of("docs/OPERATIONS.md"))
    named = {
        (name, row[1]) for row in rows for name in re.findall(r"^`hotprefix_\w+`|, `hotprefix_\w+`", row[0])
    }
    assert {(name.strip(", `"), kind) for name, kind in named} == real
    for name in re.findall(r"\bhotprefix_\w+", text_of("docs/OPERATIONS.md")):
        assert any(name.startswith(known) for known, _ in real), name


@cache
def error_classes() -> list[type[HotprefixError]]:
    """All classes in the tree, wherever they are defined."""
    for module in pkgutil.walk_packages(hotprefix.__path__, "hotprefix."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

    def below(parent: type[HotprefixError]) -> Iterator[type[HotprefixError]]:
        for child in parent.__subclasses__():
            if child.__module__.startswith("hotprefix."):
                yield child
                yield from below(child)

    return list(below(HotprefixError))


def test_every_error_class_is_explained() -> None:
    first_cells = {row[0].strip("`") for row in table_rows(text_of("docs/ERRORS.md"))}
    assert {child.__name__ for child in error_classes()} <= first_cells


def test_every_code_is_explained_with_its_status_and_type() -> None:
    rows = {row[0].strip("`"): row for row in table_rows(text_of("docs/ERRORS.md")) if len(row) == 5}
    del rows["code"]
    told = {}
    for child in error_classes():
        if issubclass(child, RequestError | Unavailable) and child.code is not None:
            problem = problem_of(child("Why."), "id")
            told[child.code] = (str(problem.status), f"`{problem.kind}`")
    assert len(told) >= 8
    for code, shown in told.items():
        assert (rows[code][1], rows[code][2]) == shown, code
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/hotprefix/api").glob("*.py"))
    codes = r'\bcode ?= ?"(\w+)"|Problem\(\s*\d+,\s*\S+,\s*"(\w+)"|code = .* else "(\w+)"'
    said = {code for found in re.findall(codes, source) for code in found if code}
    assert {"unknown_url", "internal_error", "invalid_json", "invalid_type"} <= said
    assert said <= set(rows)
    # And nothing is explained that is never told.
    source += "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").glob("**/errors.py"))
    assert all(f'"{code}"' in source for code in rows)
