"""The page's files: all of them here, none from elsewhere, every text in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import orjson
import pytest

from hotprefix.api.dashboard import static_files
from hotprefix.api.dashboard.static_files import load_files
from hotprefix.diagnosis.reason import Evidence, Reason
from hotprefix.engine.request import FinishReason
from hotprefix.kv.accounts import Outcome
from hotprefix.modes.classes import Mode
from tests.api.dashboard.conftest import Site

FOLDER = Path(static_files.__file__).parent / "static"
FILES = sorted(FOLDER.iterdir())
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in FILES if path.suffix == ".js"}
TEXTS = {name: orjson.loads((FOLDER / f"{name}.json").read_bytes()) for name in ("en", "zh")}
SVG = "http://www.w3.org/2000/svg"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_comes_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace(SVG, "")
    assert not re.search(r"https?:|wss?:|[\"'(]//\w|@import|data:", text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_small_enough_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_the_page_runs_nothing_of_its_own() -> None:
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", page)
    for linked in re.findall(r'(?:href|src)="dashboard/static/([^"]+)"', page):
        assert (FOLDER / linked).is_file()
    for name, script in SCRIPTS.items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", script
        ), name
        for imported in re.findall(r'from "\./([^"]+)"', script):
            assert imported in SCRIPTS, f"{name} imports {imported}"


def test_all_files_are_served() -> None:
    assert set(load_files()) == {path.name for path in FILES}


def test_both_languages_have_the_same_texts() -> None:
    english, chinese = TEXTS["en"], TEXTS["zh"]
    plural = {key for key in english if key.endswith("_one")}
    assert set(english) - plural == set(chinese)
    assert all(key.removesuffix("_one") in english for key in plural)
    for key, text in chinese.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", english[key])), key
        assert text


def test_every_text_that_is_asked_for_is_there() -> None:
    known = set(TEXTS["en"])
    used: set[str] = set()
    prefixes: set[str] = set()
    for script in SCRIPTS.values():
        for key in re.findall(r'\b(?:t|maybe)\(\s*"([^"]+)"', script):
            used.add(key)
        for key in re.findall(r"\b(?:t|maybe)\(\s*`([^`$]*)\$\{", script):
            prefixes.add(key)
        used |= {key for key in re.findall(r'"([a-z][\w.-]+)"', script) if key in known}
    assert used <= known
    unused = {
        key
        for key in known - used
        if not any(key.startswith(prefix) for prefix in prefixes if prefix) and not key.endswith("_one")
    }
    assert unused == set()


def test_all_that_the_server_can_say_has_words() -> None:
    for language in TEXTS.values():
        for prefix, values in (
            ("reason", Reason),
            ("evidence", Evidence),
            ("mode", Mode),
            ("finish", FinishReason),
            ("not-kept", Outcome),
        ):
            for value in values:
                assert f"{prefix}.{value.value}" in language
        for tier in ("ram", "disk", "redis"):
            assert f"tier.{tier}" in language


@pytest.mark.anyio
async def test_the_page_may_load_nothing_else_and_nobody_may_frame_it(home: Site) -> None:
    page = await home.client.get("/dashboard")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in page.headers
    assert "set-cookie" not in page.headers


@pytest.mark.anyio
async def test_files_are_asked_for_once(home: Site) -> None:
    home.key("ops", admin=True)  # the page itself needs no key: it asks for one
    script = await home.client.get("/dashboard/static/app.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    again = await home.client.get(
        "/dashboard/static/app.js", headers={"if-none-match": script.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    for name in ("nothing.js", "..%2Froutes.py", "%2e%2e/routes.py"):
        assert (await home.client.get(f"/dashboard/static/{name}")).status_code == 404


@pytest.mark.anyio
async def test_the_address_with_a_slash_leads_to_the_page(home: Site) -> None:
    moved = await home.client.get("/dashboard/")
    assert moved.status_code == 307
    assert (
        httpx.URL("http://x/some/prefix/dashboard/").join(moved.headers["location"]).path
        == "/some/prefix/dashboard"
    )
    assert (await home.client.get("/dashboard/", follow_redirects=True)).status_code == 200


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        *((ink, ground) for ink in ("ink", "ink-2", "ink-3") for ground in ("panel", "ground", "raised")),
        *((ink, "panel") for ink in ("lost", "read", "brand", "focus")),
        ("lost", "lost-soft"),
        ("read", "read-soft"),
        ("brand", "brand-soft"),
        ("ink", "brand-soft"),
        ("on-brand", "brand"),
    ],
)
def test_texts_can_be_read_in_light_and_dark(ink: str, ground: str) -> None:
    """WCAG's contrast for text, level AA."""
    styles = (FOLDER / "colours.css").read_text(encoding="utf-8")
    colours = {name: both for name, *both in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", styles)}
    for one, other in zip(colours[ink], colours[ground], strict=True):
        darker, lighter = sorted((_luminance(one), _luminance(other)))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5
