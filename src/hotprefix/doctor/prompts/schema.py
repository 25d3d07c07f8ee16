"""`prompts.toml`: what may stand in it."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from hotprefix.doctor.prompts.version import NAME, VERSION, Status

_Name = Annotated[str, StringConstraints(pattern=f"^{NAME.pattern}$")]
_VersionName = Annotated[str, StringConstraints(pattern=f"^{VERSION.pattern}$")]
_Digest = Annotated[str, StringConstraints(pattern="^sha256:[0-9a-f]{64}$")]
_Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class VersionEntry(_Strict):
    """One version; without an entry a file is a draft."""

    status: Status = Status.DRAFT
    digest: _Digest | None = None
    reviewed: date | None = None

    @model_validator(mode="after")
    def _pinned(self) -> VersionEntry:
        if self.status is not Status.DRAFT and self.digest is None:
            raise ValueError(f"a version that is {self.status.value} needs its digest")
        return self


class ExperimentEntry(_Strict):
    """Weights by version; the first one is the control."""

    arms: dict[_VersionName, _Weight] = Field(min_length=2)
    salt: str | None = None
    since: date | None = None

    @model_validator(mode="after")
    def _some_weight(self) -> ExperimentEntry:
        if sum(weight > 0 for weight in self.arms.values()) < 1:
            raise ValueError("an experiment needs an arm with a weight above 0")
        return self


class PromptEntry(_Strict):
    """One prompt."""

    owner: str = ""
    scene: str = ""
    model: str = ""
    profile: str = ""
    mode: Literal["", "implicit", "explicit", "session"] = ""
    notes: str = ""
    versions: dict[_VersionName, VersionEntry] = {}
    experiment: ExperimentEntry | None = None


class RegistryFile(_Strict):
    """The whole file. `retired_models` maps models (`*` ends a pattern) to the day their vendor ends them."""

    prompts: dict[_Name, PromptEntry] = {}
    retired_models: dict[str, date] = {}
