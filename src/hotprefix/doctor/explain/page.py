"""Explanations as one HTML file that needs nothing else, light or dark as the reader has it."""

from __future__ import annotations

from typing import Any

import jinja2

from hotprefix.doctor.explain.difference import visible
from hotprefix.doctor.explain.log import LogExplanation
from hotprefix.doctor.explain.pair import Pair


def pair_page(pair: Pair) -> str:
    """Two requests."""
    return _page("pair.html.jinja", title="Why it missed", pair=pair, notes=pair.notes)


def log_page(log: LogExplanation, worst: int) -> str:
    """A log."""
    reasons = sorted(log.reasons.items(), key=lambda item: (-item[1].lost, -item[1].requests))
    causes = log.worst(worst)
    return _page(
        "log.html.jinja", title="What the log lost", log=log, reasons=reasons, worst=causes, notes=log.notes
    )


def _page(name: str, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hotprefix.doctor.explain", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible
    return environment.get_template(name).render(values)
