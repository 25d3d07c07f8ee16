"""A review list as a file: Markdown, CSV or JSON."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

from hotprefix.doctor.prompts.review.due import ReviewList

_HEADS = ("prompt", "version", "due", "urgent", "owner", "why")


def review_facts(found: ReviewList) -> dict[str, Any]:
    """For JSON."""
    return {
        "day": found.day.isoformat(),
        "prompts": found.prompts,
        "versions": found.versions,
        "requests": found.requests,
        "items": [
            {
                "prompt": item.prompt,
                "version": item.version or None,
                "due": item.due.name.lower(),
                "urgent": item.due.is_urgent,
                "owner": item.owner or None,
                "why": item.why,
            }
            for item in found.items
        ],
    }


def review_markdown(found: ReviewList) -> str:
    """A list to tick off."""
    lines = [f"# Prompts to review, {found.day}", ""]
    if not found.items:
        lines.append(f"Nothing is due of {found.prompts} prompts with {found.versions} versions.")
    for item in found.items:
        mark = "**" if item.due.is_urgent else ""
        owner = f" ({_plain(item.owner)})" if item.owner else ""
        lines.append(f"- [ ] `{item.label}`{owner}: {mark}{item.due.value}{mark}. {_plain(item.why)}")
    return "\n".join(lines) + "\n"


def review_csv(found: ReviewList) -> str:
    """One row an item, with a heading."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADS)
    for item in found.items:
        urgent = "yes" if item.due.is_urgent else "no"
        writer.writerow(
            [item.prompt, item.version, item.due.value, urgent, *map(_harmless, (item.owner, item.why))]
        )
    return text.getvalue()


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _harmless(text: str) -> str:
    """Spreadsheets take some first characters for formulas."""
    line = " ".join(text.split())
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line
