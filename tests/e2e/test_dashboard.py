"""The dashboard in a real Chromium, beside a real server: what it shows is what was used."""

from __future__ import annotations

import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from hotprefix.base.clock import SystemClock
from hotprefix.models.manifest import ModelManifest
from hotprefix.tenants.api_key import KeyWish
from hotprefix.tenants.tenancy import open_tenancy
from tests.e2e.chromium import Window, chromium, window
from tests.e2e.server import Server, serving

pytestmark = pytest.mark.model

RULES = " ".join(f"Rule {number}: answer in one short sentence." for number in range(60))
TABS = ("overview", "requests", "prefixes", "scenes", "caches")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@dataclass
class Traffic:
    """What was sent under a scene of its own, and what the answers said of it."""

    scene: str
    secret: str
    prompt: int = 0
    read: int = 0
    requests: int = 0

    def add(self, answer: dict[str, Any]) -> None:
        usage = answer["usage"]
        self.prompt += usage["prompt_tokens"]
        self.read += usage["prompt_tokens_details"]["cached_tokens"]
        self.requests += 1

    @property
    def place(self) -> str:
        return f"last=all&scene={self.scene}"


def ask(server: Server, traffic: Traffic, system: Any, question: str) -> None:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    traffic.add(server.ask(messages=messages, max_tokens=3, session_id=traffic.scene))


@pytest.fixture(scope="module")
def traffic(long_lived: Server) -> Traffic:
    """Two hits, a clock that breaks the prefix, and an explicit entry that is written and read."""
    name = uuid.uuid4().hex[:10]
    traffic = Traffic(f"shop-{name}@1", f"pass{name}")
    for question in ("What is a bridge for?", "What is a harbour for?", "What is a harbour for?"):
        ask(long_lived, traffic, f"The word is {traffic.secret}. {RULES}", question)
    for second in (1, 2):
        ask(long_lived, traffic, f"It is 10:00:0{second}. {traffic.secret} {RULES}", "What is a bridge for?")
    marked = [{"type": "text", "text": f"{name} {RULES} {RULES}", "cache_control": {"type": "ephemeral"}}]
    for question in ("Is it late?", "Is it early?"):
        ask(long_lived, traffic, marked, question)
    return traffic


@pytest.fixture
def view(server: Server, browser: Browser) -> Iterator[Window]:
    with window(browser, server.url) as opened:
        yield opened


def figure(text: str) -> float:
    """The first number of a text as the page writes it."""
    found = re.search(r"[\d,]+(\.\d+)?", text)
    assert found, text
    return float(found[0].replace(",", ""))


def test_the_figures_are_those_of_usage_and_metrics(server: Server, view: Window, traffic: Traffic) -> None:
    view.open(f"#overview?{traffic.place}")
    assert figure(view.text("[data-tile=rate] .big")) == pytest.approx(
        100 * traffic.read / traffic.prompt, abs=0.051
    )
    assert view.text("[data-tile=rate] .sub") == f"{traffic.read:,} of {traffic.prompt:,} tokens"
    assert figure(view.text("[data-tile=saved] .big")) == traffic.read
    assert figure(view.text("[data-tile=requests] .big")) == traffic.requests
    view.page.click("details.table summary")
    rows = view.page.locator("details.table tbody tr").all_inner_texts()
    columns = [[figure(cell) for cell in row.split("\t")[1:3]] for row in rows]
    assert [sum(column) for column in zip(*columns, strict=True)] == [traffic.requests, traffic.prompt]
    engine = server.metrics()
    hits = engine["hotprefix_prefix_cache_hits_total", frozenset()]
    queries = engine["hotprefix_prefix_cache_queries_total", frozenset()]
    told = view.text("[data-fact=engine-rate]")
    assert f"{hits:,.0f} of {queries:,.0f}" in told
    assert f"{100 * hits / queries:.1f}%" in told
    free = engine["hotprefix_kv_blocks", frozenset({("state", "free")})]
    assert f"free {free:,.0f}" in view.text("#view").replace("\n", " ")


def test_the_keyboard_leads_down_to_the_first_differing_character(view: Window, traffic: Traffic) -> None:
    view.open(f"#overview?{traffic.place}&reason=SYSTEM_CHANGED")
    view.press("2")
    view.page.wait_for_selector("[data-row]")
    view.press("j", "Enter")
    view.page.wait_for_selector("#detail[open] [data-first]")
    assert "SYSTEM_CHANGED" in view.text("#detail .drawer-top")
    assert view.text("[data-first=old]") == "1"
    assert view.text("[data-first=new]") == "2"
    assert view.text("[data-side=new] mark") == "2"
    assert "It is 10:00:02." in view.text("[data-side=new]").replace("\n", "")
    assert view.text("#detail [data-path]") == "messages[0].content"
    assert view.text("#detail [data-char]") == str(len("It is 10:00:0"))
    assert "U+0031 DIGIT ONE" in view.text("#detail .chars")
    assert "possible" in view.text("#detail .ideal")
    assert view.text("#detail .blocks tbody tr:first-child").split("\t")[1] == "differs first"
    view.press("Escape")
    view.page.wait_for_selector("#detail", state="hidden")
    view.wait("!location.hash.includes('request=')")
    assert view.run("document.activeElement.dataset.row")  # back where it began


def test_prompts_are_text_and_nothing_in_them_hides(server: Server, view: Window) -> None:
    """Neither their markup nor what turns the direction of a text is anybody's but the reader's to see."""
    odd = Traffic(f"odd-{uuid.uuid4().hex[:10]}@1", "")
    markup = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>"
    for mark in ("", "\u202e"):
        ask(server, odd, f"{markup} {RULES} The sum is{mark} 100. {markup}", "How much?")
    view.open(f"#requests?last=all&scene={odd.scene}")
    view.press("j", "Enter")
    view.page.wait_for_selector("#detail[open] [data-first]")
    assert "⟨U+202E⟩" in view.text("[data-side=new] mark")
    assert "onerror='window.hit=1'" in view.text("[data-side=new]")
    view.press("Escape", "3")
    view.page.wait_for_selector(".tops")
    assert view.page.locator("main img, main script, #detail img, #detail script").count() == 0
    assert view.run("window.hit === undefined")


def test_it_works_where_the_browser_keeps_nothing(view: Window, traffic: Traffic) -> None:
    refuse = "get() { throw new DOMException('no storage', 'SecurityError'); }"
    view.page.add_init_script(
        "".join(
            f"Object.defineProperty(window, '{name}Storage', {{ {refuse} }});"
            for name in ("local", "session")
        )
    )
    view.open(f"#overview?{traffic.place}")
    for language in ("zh-CN", "en", "zh-CN"):
        view.press("l")
        view.wait(f"document.documentElement.lang === '{language}'")


def test_requests_appear_as_they_end(server: Server, view: Window) -> None:
    live = Traffic(f"live-{uuid.uuid4().hex[:10]}@1", "")
    view.open(f"#requests?last=all&scene={live.scene}")
    assert "No request matches" in view.text("#view")
    view.page.wait_for_selector(".dot.on")
    for question in ("One?", "Two?"):
        ask(server, live, RULES, question)
    view.wait("document.querySelectorAll('#view [data-row]').length === 2")
    view.press("1")
    view.wait("document.querySelector('[data-tile=requests] .big')?.textContent === '2'")
    view.press("p")
    assert view.text(".live") == "Paused"
    ask(server, live, RULES, "Three?")
    view.press("p")
    view.wait("document.querySelector('[data-tile=requests] .big').textContent === '3'")


def test_language_and_theme_follow_the_browser_and_can_be_switched(
    server: Server, browser: Browser, traffic: Traffic
) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    with window(browser, server.url, locale="zh-CN", color_scheme="dark") as view:
        view.open(f"#overview?{traffic.place}")
        assert view.run("document.documentElement.lang") == "zh-CN"
        assert view.text("#tab-overview") == "总览"
        assert "系统提示词的文字改变了" in view.text("#view")
        dark = view.run(ground)
        view.press("l", "t")
        view.wait("document.documentElement.lang === 'en'")
        assert view.text("#tab-overview") == "Overview"
        assert view.run(ground) != dark
        view.page.reload()
        view.page.wait_for_selector("[data-tile]")
        assert view.text("#tab-overview") == "Overview"
        assert view.run("document.documentElement.dataset.theme") == "light"
        view.press("t")
        assert view.run(ground) == dark


def test_every_stop_of_the_tab_key_can_be_seen_and_named(view: Window, traffic: Traffic) -> None:
    view.open(f"#overview?{traffic.place}")
    stops = []
    for _ in range(40):
        view.press("Tab")
        stop = view.run(
            """(() => {
              const it = document.activeElement;
              const box = it.getBoundingClientRect();
              const label = it.getAttribute("aria-label") || it.labels?.[0]?.textContent;
              return {
                tag: it.tagName,
                act: it.dataset.act ?? it.dataset.change ?? it.dataset.keys ?? it.id,
                name: (label || it.textContent || it.title).trim(),
                outline: getComputedStyle(it).outlineStyle,
                seen: box.width > 0 && box.height > 0,
              };
            })()"""
        )
        if stop["tag"] == "BODY":
            break
        assert stop["name"] and stop["seen"], stop
        assert stop["outline"] != "none", stop
        stops.append(stop["act"])
    assert stops[0] == "skip"
    assert {"pause", "hide", "language", "theme", "help", "tab", "range", "filter", "time", "reason"} <= set(
        stops
    )
    assert stops.count("tab") == 2  # one stop for all tabs, and the link to all requests
    view.page.focus("[data-keys=time]")
    view.press("ArrowLeft")
    first = view.text("#time-readout")
    assert "tokens read" in first or "no request" in first
    view.press("?")
    assert "Hide or show prompt text" in view.text("#help")
    view.press("Escape")


LISTEN_IN = """
window.told = [];
const ask = window.fetch;
window.fetch = async (...what) => {
  const answer = await ask(...what);
  if (!answer.url.endsWith("/stream")) answer.clone().text().then((text) => window.told.push(text), () => {});
  return answer;
};
"""


def test_hidden_text_does_not_reach_the_page(view: Window, traffic: Traffic) -> None:
    view.page.add_init_script(LISTEN_IN)
    view.open(f"#prefixes?{traffic.place}")
    assert traffic.secret in view.page.content()
    view.press("h")
    view.wait(f"!document.body.textContent.includes('{traffic.secret}')")
    assert any(traffic.secret in text for text in view.run("told"))
    view.run("told.length = 0")
    view.press("2")
    view.page.wait_for_selector("[data-row]")
    view.press("j", "Enter")
    view.page.wait_for_selector("#detail[open] .blocks")
    view.press("Escape", "3")
    view.page.wait_for_selector(".tops")
    told = view.run("told")
    assert any('"comparison"' in text for text in told) and any('"prefixes"' in text for text in told)
    assert not any(traffic.secret in text for text in told)


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("wide-light", {"color_scheme": "light"}),
        ("wide-dark", {"color_scheme": "dark"}),
        ("narrow-light", {"viewport": {"width": 360, "height": 740}}),
        (
            "narrow-dark-zh",
            {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark", "locale": "zh-CN"},
        ),
    ],
)
def test_it_fits_and_can_be_looked_at(
    server: Server, browser: Browser, traffic: Traffic, tmp_path: Path, name: str, context: dict[str, Any]
) -> None:
    with window(browser, server.url, **context) as view:
        for tab in TABS:
            view.open(f"#{tab}?{traffic.place}")
            shot = view.page.screenshot(path=tmp_path / f"{name}-{tab}.png", full_page=True)
            assert len(shot) > 10_000
            assert view.run("document.documentElement.scrollWidth <= innerWidth"), tab
        view.open(f"#requests?{traffic.place}&reason=SYSTEM_CHANGED")
        view.page.click("[data-row]")
        view.page.wait_for_selector("#detail[open] [data-first]")
        view.page.screenshot(path=tmp_path / f"{name}-detail.png")
        assert view.run("document.querySelector('#detail').scrollWidth <= innerWidth")


def test_what_an_empty_view_teaches_works(server: Server, view: Window) -> None:
    if not shutil.which("curl"):
        pytest.skip("the commands are for curl")
    view.open("#overview?since=1&until=2")
    command = view.text("pre.try code")
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count('"object":"chat.completion"') == 2
    cached = re.findall(r'"cached_tokens":(\d+)', done.stdout)
    assert int(cached[1]) > 400
    view.open("#overview")
    assert figure(view.text("[data-tile=requests] .big")) >= 2


def test_with_keys_it_asks_for_one(default_model: ModelManifest, browser: Browser, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with open_tenancy(state, SystemClock()) as tenancy:
        wishes = [KeyWish("acme"), KeyWish("other"), KeyWish("ops", is_admin=True)]
        keys = {wish.tenant: tenancy.keys.create(wish).text for wish in wishes}
    with serving(tmp_path, "--profile", "hotprefix") as server:
        for tenant in ("acme", "other"):
            messages = [{"role": "user", "content": f"I am {tenant}. {RULES}"}]
            for _ in range(2):
                server.ask(messages=messages, max_tokens=2, key=keys[tenant])
        with window(browser, server.url) as view:
            view.open()
            assert view.page.locator("[role=tab]").count() == 0
            sign_in(view, "hpk_wrong")
            view.page.wait_for_selector("[role=alert]")
            sign_in(view, keys["acme"])
            assert figure(view.text("[data-tile=requests] .big")) == 2
            assert view.page.locator("[data-fact=engine-rate]").count() == 0
            assert "other" not in view.text("#app")
            view.press("3")
            view.page.wait_for_selector(".tops")
            assert "I am acme" in view.page.content() and "I am other" not in view.page.content()
            assert view.page.context.cookies() == []
            assert keys["acme"] not in view.run("JSON.stringify({...localStorage})")
            view.page.click("[data-act=logout]")
            view.page.wait_for_selector(".gate form")
            assert view.run("sessionStorage.length") == 0
            sign_in(view, keys["ops"])
            view.press("1")
            view.page.wait_for_selector("[data-fact=engine-rate]")
            assert figure(view.text("[data-tile=requests] .big")) == 4


def sign_in(view: Window, key: str) -> None:
    view.page.fill("input[name=key]", key)
    view.page.click(".gate button[type=submit]")
    view.page.wait_for_selector("#view [data-tile], #view table, .gate [role=alert]")
