"""Two requests side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotprefix.diagnosis.explain import redacted
from hotprefix.diagnosis.facts import rules_of
from hotprefix.doctor.explain.difference import CONTEXT
from hotprefix.doctor.explain.stages import Stage, compare_stages
from hotprefix.doctor.explain.trial import Judged, Trial
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rendering import Renderer
from hotprefix.modes.classes import Mode


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the cache looks. `marker` is where the last marker that counts ends, in tokens (None: the mode
    has no markers, and the whole prompt counts); `lookback` how many blocks behind it."""

    mode: Mode
    minimum: int
    quantum: int
    marker: int | None
    marker_path: str
    lookback: int | None


@dataclass(frozen=True, slots=True)
class Pair:
    """The verdict is that on the later request, `new`."""

    old: Judged
    new: Judged
    stages: tuple[Stage, ...]
    reach: Reach
    model_notes: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read in another way than it was written, and what has no effect."""
        both = (*self.old.rendered.notes, *self.new.rendered.notes)
        return tuple(dict.fromkeys((*self.model_notes, *both, *self.new.warnings)))

    @property
    def is_behind_marker(self) -> bool:
        """Whether the prompts differ, but only behind the last marker: that breaks nothing."""
        tokens = self.stages[-1]
        return self.reach.marker is not None and self.reach.marker <= tokens.shared and not tokens.is_equal

    def redacted(self) -> Pair:
        """Without the words of the prompts."""
        old, new = (
            replace(judged, report=redacted(judged.report), expected=redacted(judged.expected))
            for judged in (self.old, self.new)
        )
        return replace(self, old=old, new=new, stages=tuple(stage.redacted() for stage in self.stages))


def explain_pair(
    renderer: Renderer, trial: Trial, old: Recorded, new: Recorded, context: int = CONTEXT
) -> Pair:
    """What the second request lost of what the first one left behind. Raises `UnrenderableRequest`."""
    first = trial.judge(renderer.render(old))
    second = trial.judge(renderer.render(new))
    stages = compare_stages(first.rendered, second.rendered, context)
    return Pair(first, second, stages, _reach(second), renderer.model.notes)


def _reach(judged: Judged) -> Reach:
    rendered = judged.rendered
    rules = rules_of(rendered.profile, judged.mode.value, rendered.recorded.model)
    marker, path = None, ""
    if judged.mode is Mode.EXPLICIT and rendered.conversation.markers:
        last = max(rendered.conversation.markers, key=lambda one: one.block)
        marker, path = rendered.prompt.spans[last.block].end_token, last.path
    elif judged.mode is Mode.SESSION and rendered.prompt.spans:
        marker, path = rendered.prompt.spans[-1].end_token, rendered.prompt.spans[-1].block.path
    return Reach(judged.mode, rules.minimum, rules.quantum, marker, path, rules.lookback)
