"""A prompt with its versions, and the experiment that runs on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from hotprefix.doctor.prompts.errors import UnknownPrompt
from hotprefix.doctor.prompts.version import Status, Version


@dataclass(frozen=True, slots=True)
class Experiment:
    """Versions that share the traffic. `arms` are their weights, of any scale; the first is the control.

    `salt` goes into the split: experiments with different salts split independently of each other.
    """

    salt: str
    arms: Mapping[str, float]
    since: date | None = None

    @property
    def control(self) -> str:
        """What the other arms are held against."""
        return next(iter(self.arms))

    @property
    def shares(self) -> dict[str, float]:
        """Weights as parts of 1."""
        total = sum(self.arms.values())
        return {arm: weight / total for arm, weight in self.arms.items()}


@dataclass(frozen=True, slots=True)
class Prompt:
    """`versions` by name, oldest first; `model`, `profile` and `mode`: what it is sent to, if known."""

    name: str
    versions: Mapping[str, Version]
    owner: str = ""
    scene: str = ""
    model: str = ""
    profile: str = ""
    mode: str = ""
    experiment: Experiment | None = None
    notes: str = field(default="", compare=False)

    @property
    def released(self) -> Version | None:
        """The newest released version: the last in the registry."""
        found = [version for version in self.versions.values() if version.status is Status.RELEASED]
        return found[-1] if found else None

    @property
    def live(self) -> tuple[Version, ...]:
        """Versions that are sent: the arms of the experiment, else the released one."""
        if self.experiment is not None:
            return tuple(self.versions[arm] for arm in self.experiment.arms)
        return () if self.released is None else (self.released,)

    def version(self, name: str) -> Version:
        """The version called `name`. Raises `UnknownPrompt`."""
        if name not in self.versions:
            known = ", ".join(self.versions) or "none"
            raise UnknownPrompt(f"Prompt {self.name!r} has no version {name!r}. Versions: {known}.")
        return self.versions[name]
