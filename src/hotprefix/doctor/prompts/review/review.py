"""Everything that is due."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from hotprefix.doctor.prompts.errors import PromptError
from hotprefix.doctor.prompts.prompt import Prompt
from hotprefix.doctor.prompts.registry import PromptText, Registry
from hotprefix.doctor.prompts.review.due import Due, DueItem, ReviewList
from hotprefix.doctor.prompts.review.linting import Lint
from hotprefix.doctor.prompts.review.usage import VersionUse
from hotprefix.doctor.prompts.sizes import Sizes, minimum_of, profile_of
from hotprefix.doctor.prompts.version import Status, Version
from hotprefix.doctor.rules_for import newest_of
from hotprefix.profiles.errors import UnknownProfile
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.pattern import best_pattern

Uses = Mapping[tuple[str, str], VersionUse]


@dataclass(frozen=True, slots=True)
class ReviewRules:
    """Days after which a prompt is due, and the fall of a hit rate, in parts of 1, that is told."""

    every: int = 90
    fall: float = 0.10


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Looks through a registry. `uses` None: there are no logs; `lint` None: texts are not linted."""

    registry: Registry
    book: ProfileBook
    today: date
    rules: ReviewRules = field(default_factory=ReviewRules)
    sizes: Sizes = field(default_factory=Sizes)
    uses: Uses | None = None
    lint: Lint | None = None

    def review(self) -> ReviewList:
        """The list, the most urgent first."""
        prompts = self.registry.prompts.values()
        items = [item for prompt in prompts for item in self._prompt(prompt)]
        items.sort(key=lambda item: (item.due.rank, item.prompt, item.version))
        return ReviewList(
            self.today,
            len(prompts),
            sum(len(prompt.versions) for prompt in prompts),
            None if self.uses is None else sum(use.requests for use in self.uses.values()),
            tuple(items),
        )

    def _prompt(self, prompt: Prompt) -> Iterator[DueItem]:
        def due(reason: Due, why: str, version: str = "") -> DueItem:
            return DueItem(prompt.name, version, reason, why, prompt.owner)

        if not prompt.owner:
            yield due(Due.NO_OWNER, "Nobody is named who answers for it: set owner in prompts.toml.")
        yield from (due(*found) for found in self._models(prompt))
        yield from (due(*found) for found in self._experiment(prompt))
        for version in prompt.versions.values():
            yield from (due(*found, version.name) for found in self._version(prompt, version))
        yield from (due(reason, why, name) for name, reason, why in self._logged(prompt))

    def _version(self, prompt: Prompt, version: Version) -> Iterator[tuple[Due, str]]:
        try:
            text = self.registry.read(version)
        except PromptError as error:
            yield Due.EDITED, str(error)
            return
        if version in prompt.live:
            yield from self._age(version)
            yield from self._text(prompt, text)

    def _age(self, version: Version) -> Iterator[tuple[Due, str]]:
        if version.reviewed is None:
            yield Due.NOT_REVIEWED, "Never reviewed."
        elif (age := (self.today - version.reviewed).days) >= self.rules.every:
            yield Due.NOT_REVIEWED, f"Last reviewed on {version.reviewed}, {age} days ago."

    def _text(self, prompt: Prompt, text: PromptText) -> Iterator[tuple[Due, str]]:
        try:
            minimum = minimum_of(prompt, self.book)
        except UnknownProfile as error:
            yield Due.MODEL_UNSUPPORTED, str(error)
        else:
            tokens = self.sizes.tokens(text.text)
            if tokens < minimum:
                yield (
                    Due.BELOW_MINIMUM,
                    f"It has {self.sizes.told(tokens)}, {minimum - tokens:,} fewer than the {minimum:,} from "
                    "which on its mode caches.",
                )
        if self.lint is not None:
            yield from ((Due.LINT, told) for told in self.lint(prompt, text))

    def _models(self, prompt: Prompt) -> Iterator[tuple[Due, str]]:
        retired = self.registry.retired_models
        pattern = best_pattern(retired, prompt.model) if prompt.model else None
        if pattern is not None and retired[pattern] <= self.today:
            yield Due.MODEL_RETIRED, f"{prompt.model} is retired since {retired[pattern]}."
        elif pattern is not None and (retired[pattern] - self.today).days < self.rules.every:
            yield Due.MODEL_RETIRED, f"{prompt.model} will be retired on {retired[pattern]}."
        try:
            profile = profile_of(prompt, self.book)
        except UnknownProfile:
            return
        listed = profile.explicit_models
        if prompt.mode in ("explicit", "session") and listed and best_pattern(listed, prompt.model) is None:
            yield (
                Due.MODEL_UNSUPPORTED,
                f"{prompt.model or 'Its model'} is not on the list of {profile.name}.",
            )
        newest = newest_of(profile.vendor, self.book)
        if prompt.profile and newest.dated > profile.dated:
            yield Due.PROFILE_SUPERSEDED, f"{profile.name} was followed by {newest.name} on {newest.dated}."

    def _experiment(self, prompt: Prompt) -> Iterator[tuple[Due, str]]:
        experiment = prompt.experiment
        if experiment is None or experiment.since is None:
            return
        age = (self.today - experiment.since).days
        if age >= self.rules.every:
            yield (
                Due.EXPERIMENT_OLD,
                f"Its arms {', '.join(experiment.arms)} run since {experiment.since}: decide.",
            )

    def _logged(self, prompt: Prompt) -> Iterator[tuple[str, Due, str]]:
        """What the logs say of its versions."""
        if self.uses is None:
            return
        for version in prompt.live:
            use = self.uses.get((prompt.name, version.name))
            if use is None:
                yield version.name, Due.UNUSED, "No request in the logs names it."
            elif use.fall is not None and use.fall >= self.rules.fall:
                why = f"From {use.before:.1%} to {use.recent:.1%} of the prompt tokens."
                yield version.name, Due.HIT_RATE_FELL, why
        for (name, sent), use in self.uses.items():
            if name != prompt.name or not sent:
                continue
            known = prompt.versions.get(sent)
            when = "" if use.last is None else f", last on {datetime.fromtimestamp(use.last, UTC):%Y-%m-%d}"
            if known is None:
                yield (
                    sent,
                    Due.UNREGISTERED,
                    f"{use.requests:,} requests name it{when}, but it has no file.",
                )
            elif known.status is Status.RETIRED:
                yield sent, Due.RETIRED_IN_USE, f"{use.requests:,} requests name it{when}."
