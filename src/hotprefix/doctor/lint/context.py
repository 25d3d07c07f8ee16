"""One request with the rules that hold for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hotprefix.diagnosis.facts import EXPLICIT, IMPLICIT, OFF, SESSION
from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.edits import Fix
from hotprefix.doctor.lint.finding import Excerpt, LintFinding
from hotprefix.doctor.lint.layout import Layout, layout_of
from hotprefix.doctor.lint.measure import MARGIN, Ruler
from hotprefix.doctor.lint.phrase import Phrase
from hotprefix.doctor.lint.request import LintRequest, MarkerUse, Where
from hotprefix.doctor.lint.rule import rules
from hotprefix.doctor.lint.severity import Severity
from hotprefix.doctor.lint.vendors import ModelList
from hotprefix.doctor.place import Place
from hotprefix.profiles.profile import ExplicitRules, Profile, ToolMarkers

_AROUND = 48


@dataclass(frozen=True)
class Context:
    """`is_strict`: the articles' checklist is asked for, which wants more than avoiding losses."""

    request: LintRequest
    profile: Profile
    models: ModelList
    ruler: Ruler
    is_strict: bool = False

    @cached_property
    def layout(self) -> Layout:
        """Tokens before each part."""
        return layout_of(self.request, self.ruler)

    @cached_property
    def markers(self) -> tuple[MarkerUse, ...]:
        """The markers that count, in the order of the prompt."""
        rules_ = self.profile.explicit
        if rules_ is None or self.request.dialect is Dialect.RESPONSES or not self.has_explicit_cache:
            return ()
        return tuple(use for use in self.request.markers if _counts(use, rules_))

    @property
    def has_explicit_cache(self) -> bool:
        """Whether the model, as far as is known, has an explicit cache."""
        return not self.request.model or self.models.has(self.request.model)

    @cached_property
    def last_marked(self) -> int | None:
        """The number of the last block that is marked."""
        return max((use.block for use in self.markers if use.block is not None), default=None)

    @property
    def mode(self) -> str:
        """The cache that the request will use."""
        if self.markers:
            return EXPLICIT
        if self.request.dialect is Dialect.RESPONSES and self.request.session_header == "enable":
            return SESSION if self.profile.session is not None else OFF
        return IMPLICIT if self.profile.implicit is not None else OFF

    def is_surely_below(self, tokens: int, minimum: int) -> bool:
        """Whether a prefix is too short, the error of an estimate allowed for."""
        return tokens < minimum if self.ruler.is_exact else tokens * (1 + MARGIN) < minimum

    def is_surely_above(self, tokens: int, minimum: int) -> bool:
        """Whether a prefix is long enough, the error of an estimate allowed for."""
        return tokens >= minimum if self.ruler.is_exact else tokens * (1 - MARGIN) >= minimum

    def finding(
        self,
        rule: str,
        place: Place | str,
        *,
        severity: Severity | None = None,
        excerpt: Excerpt | None = None,
        fix: Fix | None = None,
        key: str = "",
        **words: str | int | Phrase,
    ) -> LintFinding:
        """A finding of `rule` at a place, or at a JSON path of the request."""
        found = rules()[rule]
        where = self.request.source.place(place) if isinstance(place, str) else place
        words = {"profile": self.profile.name, "model": self.request.model, "path": where.path, **words}
        return LintFinding(found, where, words, severity or found.severity, excerpt, fix, key=key)


def _counts(use: MarkerUse, explicit: ExplicitRules) -> bool:
    if not is_marker(use.value):
        return False
    if use.where is Where.TOOL:
        return explicit.tool_markers is ToolMarkers.CACHED
    if use.where is Where.TOP:
        return explicit.automatic_marker
    return use.where is Where.BLOCK


def is_marker(value: Any) -> bool:
    """Whether a value is a marker that providers know."""
    return isinstance(value, dict) and value.get("type") == "ephemeral"


def excerpt_of(text: str, start: int, end: int) -> Excerpt:
    """The line around a part of a text, cut to what fits."""
    left = max(text.rfind("\n", 0, start) + 1, start - _AROUND)
    line_end = text.find("\n", start)
    right = min(len(text) if line_end < 0 else line_end, max(end, start) + _AROUND)
    end = min(end, right)
    return Excerpt(text[left:right], start - left, end - left)
