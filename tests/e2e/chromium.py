"""A real Chromium, and a page that remembers what went wrong in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from tests.e2e.server import until

MISSING = "Chromium is not installed; the tests need a real one: apt-get install chromium"


def binary() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    if os.environ.get("CI") or shutil.which("apt-get"):
        pytest.fail(MISSING)
    pytest.skip(MISSING)


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = _launched(playwright)
        yield browser
        browser.close()


def _launched(playwright: Playwright) -> Browser:
    # Its sandbox wants privileges that containers rarely give; only our own page is opened.
    return playwright.chromium.launch(executable_path=binary(), args=["--no-sandbox", "--disable-gpu"])


@dataclass
class Window:
    """A page of the dashboard at `url`; `faults` are its errors, `asked` what it loaded."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, place: str = "") -> None:
        """Go to a view, and wait until it has its figures."""
        self.page.goto(f"{self.url}/dashboard{place}")
        self.page.wait_for_selector("#view table, #view .empty, #view [data-tile], .gate form")

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)

    def wait(self, script: str) -> None:
        """Until a condition holds. Playwright's own way evaluates texts, which the page's policy forbids."""
        until(lambda: bool(self.run(script)), lambda: f"never true: {script}", seconds=30)

    def require_good(self) -> None:
        """No error, and nothing from anywhere else."""
        assert not self.faults, self.faults
        assert all(url.startswith(f"{self.url}/dashboard") for url in self.asked), self.asked

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.faults.append(f"{kind}: {text}")


@contextmanager
def window(browser: Browser, url: str, **context: Any) -> Iterator[Window]:
    """A page with nothing stored; `context` as Playwright has it: viewport, locale, color_scheme."""
    settings: dict[str, Any] = {"locale": "en-GB", "reduced_motion": "reduce", "timezone_id": "UTC"}
    opened = browser.new_context(**(settings | {"viewport": {"width": 1440, "height": 1000}} | context))
    opened.set_default_timeout(20_000)
    page = Window(opened.new_page(), url)
    yield page
    page.require_good()
    opened.close()
