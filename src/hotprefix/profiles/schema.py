"""What a profile file may say: checked key by key, so that a slip is told by its name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hotprefix.profiles.profile import (
    ExplicitRules,
    ImplicitRules,
    PriceRow,
    Profile,
    Readable,
    SessionRules,
    Surplus,
    ToolMarkers,
)

Tokens = Annotated[int, Field(ge=1)]
Seconds = Annotated[int, Field(ge=1)]
Ratio = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Money = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Pattern = Annotated[str, Field(pattern=r"^[^*\s]*\*?$", min_length=1)]
TtlName = Annotated[str, Field(pattern=r"^[0-9]+[smhd]$")]


class Section(BaseModel):
    """A table of the file: unknown keys are refused, and a number in quotes is no number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ImplicitSection(Section):
    """Automatic reuse. Leave the table out if the vendor has none."""

    minimum: Tokens = Field(description="Least tokens of a hit that is reported.")
    quantum: Tokens = Field(default=1, description="Hits are rounded down to a multiple of this.")
    model_minimums: dict[Pattern, Tokens] = Field(
        default_factory=dict, description="Minimums by model pattern; the most specific pattern counts."
    )


class ExplicitSection(Section):
    """Prefixes that the client marks with `cache_control`."""

    minimum: Tokens = Field(description="Least tokens of an entry.")
    ttls: dict[TtlName, Seconds] = Field(min_length=1, description="What a marker may say, in seconds.")
    default_ttl: str = Field(description="The TTL of a marker that names none; a key of `ttls`.")
    max_markers: int = Field(ge=1, description="Markers that count in one request.")
    surplus: Surplus = Field(strict=False, description="What happens to markers beyond `max_markers`.")
    lookback: int = Field(ge=0, description="Content blocks behind a marker that are searched for entries.")
    lookback_counts_marker: bool = Field(description="Whether the marker's own block is one of them.")
    readable: Readable = Field(strict=False, description="From when on others can read a new entry.")
    tool_markers: ToolMarkers = Field(strict=False, description="What a marker on a tool definition does.")
    longer_ttl_first: bool = Field(default=False, description="A longer TTL after a shorter one is an error.")
    automatic_marker: bool = Field(default=False, description="A top-level marker stands for the last block.")
    model_minimums: dict[Pattern, Tokens] = Field(
        default_factory=dict, description="Minimums by model pattern; the most specific pattern counts."
    )


class SessionSection(Section):
    """Conversations continued through `previous_response_id`."""

    minimum: Tokens = Field(description="Least tokens of accumulated context.")
    ttl_seconds: Seconds = Field(description="Lifetime of an entry; every hit begins it anew.")
    retention_days: int = Field(default=7, ge=1, description="How long a response id stays valid.")


class PriceSection(Section):
    """Prices of a model from a date on. The ratios multiply `input_per_million`."""

    model: Pattern = Field(description="A model's name, or the beginning of one followed by `*`.")
    since: date = Field(description="First day (UTC) on which the row is in force.")
    currency: str = Field(pattern=r"^[A-Z]{3}$", description="ISO 4217 code.")
    input_per_million: Money
    output_per_million: Money
    read_implicit: Ratio | None = Field(default=None, description="Needed with [implicit].")
    read_explicit: Ratio | None = Field(default=None, description="Needed with [explicit].")
    read_session: Ratio | None = Field(default=None, description="Needed with [session].")
    write: dict[TtlName, Ratio] = Field(default_factory=dict, description="By TTL, for every TTL in use.")


class ProfileFile(Section):
    """A policy profile: one vendor's caching rules at one date. The file's name is the profile's."""

    vendor: str = Field(min_length=1)
    dated: date = Field(description="The date of the documentation that the rules follow.")
    sources: list[str] = Field(min_length=1, description="Where the rules are written.")
    explicit_models: list[Pattern] = Field(
        default_factory=list, description="Models with explicit and session caches; empty means all."
    )
    implicit: ImplicitSection | None = None
    explicit: ExplicitSection | None = None
    session: SessionSection | None = None
    prices: list[PriceSection] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> ProfileFile:
        problems = list(_problems(self))
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def to_profile(self, name: str) -> Profile:
        """The rules as the rest of Hotprefix knows them."""
        explicit = self.explicit
        return Profile(
            name=name,
            vendor=self.vendor,
            dated=self.dated,
            sources=tuple(self.sources),
            implicit=None if self.implicit is None else ImplicitRules(**self.implicit.model_dump()),
            explicit=None if explicit is None else ExplicitRules(**explicit.model_dump()),
            session=None if self.session is None else SessionRules(**self.session.model_dump()),
            prices=tuple(_price_row(row) for row in self.prices),
            explicit_models=tuple(self.explicit_models),
        )


def json_schema() -> dict[str, Any]:
    """JSON Schema of a profile file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | ProfileFile.model_json_schema()


def _price_row(row: PriceSection) -> PriceRow:
    values = row.model_dump()
    for key in ("read_implicit", "read_explicit", "read_session"):
        # No such cache, so no such read; if it were one, it would have no discount.
        values[key] = 1.0 if values[key] is None else values[key]
    return PriceRow(**values)


def _problems(file: ProfileFile) -> Iterator[str]:
    """What no single key can show."""
    explicit = file.explicit
    if explicit is not None and explicit.default_ttl not in explicit.ttls:
        known = _list(explicit.ttls)
        yield f"explicit.default_ttl is {explicit.default_ttl!r}, but explicit.ttls has {known}"
    if not any(row.model == "*" for row in file.prices):
        yield "prices needs a row with model = '*' for the models that no other row covers"
    seen: set[tuple[str, date]] = set()
    for index, row in enumerate(file.prices):
        if (row.model, row.since) in seen:
            yield f"prices[{index}] repeats {row.model!r} since {row.since}"
        seen.add((row.model, row.since))
        yield from _price_problems(file, index, row)


def _price_problems(file: ProfileFile, index: int, row: PriceSection) -> Iterator[str]:
    modes = {"implicit": file.implicit, "explicit": file.explicit, "session": file.session}
    for mode, rules in modes.items():
        if rules is not None and getattr(row, f"read_{mode}") is None:
            yield f"prices[{index}].read_{mode} is missing, and there is a table [{mode}]"
    known = set(file.explicit.ttls) if file.explicit is not None else set()
    for ttl in sorted(known - set(row.write)):
        yield f"prices[{index}].write needs a ratio for {ttl!r}"
    for ttl in sorted(set(row.write) - known):
        yield f"prices[{index}].write has {ttl!r}, but explicit.ttls has {_list(known) or 'nothing'}"


def _list(names: Any) -> str:
    return ", ".join(repr(name) for name in sorted(names))


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
