"""What the markers of a request mean under a profile."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from hotprefix.base.errors import InvalidRequest
from hotprefix.modes.marker import Marker
from hotprefix.profiles.profile import ExplicitRules, Profile, Surplus


def supports_explicit(profile: Profile, model: str) -> bool:
    """Whether markers have an effect for this model."""
    patterns = profile.explicit_models
    return profile.explicit is not None and (
        not patterns or any(fnmatchcase(model, pattern) for pattern in patterns)
    )


def effective_markers(
    rules: ExplicitRules, markers: Sequence[Marker], warnings: list[str]
) -> tuple[Marker, ...]:
    """The markers that count, in order. Raises `InvalidRequest` where the vendor answers 400."""
    ordered = sorted(markers, key=lambda marker: marker.block)
    if len(ordered) > rules.max_markers:
        if rules.surplus is Surplus.REJECT:
            raise InvalidRequest(
                f"A maximum of {rules.max_markers} blocks with cache_control may be provided. "
                f"Found {len(ordered)}: {', '.join(marker.path for marker in ordered)}.",
                param="cache_control",
            )
        ignored = ordered[: -rules.max_markers]
        warnings.append(
            f"only the last {rules.max_markers} of {len(ordered)} cache markers count; ignored: "
            + ", ".join(marker.path for marker in ignored)
        )
        ordered = ordered[-rules.max_markers :]
    require_order(rules, ordered)
    return tuple(ordered)


def lookback_blocks(rules: ExplicitRules, marker: Marker) -> range:
    """Blocks at which an entry may end that `marker` can read, nearest first."""
    behind = rules.lookback - 1 if rules.lookback_counts_marker else rules.lookback
    return range(marker.block, max(-1, marker.block - behind - 1), -1)


def require_order(rules: ExplicitRules, markers: Sequence[Marker]) -> None:
    """Raise `InvalidRequest` where a longer-lived marker comes after a shorter-lived one, if that matters."""
    if not rules.longer_ttl_first:
        return
    shortest: Marker | None = None
    for marker in markers:
        seconds = rules.ttls[marker.ttl]
        if shortest is not None and seconds > rules.ttls[shortest.ttl]:
            raise InvalidRequest(
                f"a ttl='{marker.ttl}' cache_control block must not come after a "
                f"ttl='{shortest.ttl}' cache_control block",
                param=marker.path,
            )
        if shortest is None or seconds < rules.ttls[shortest.ttl]:
            shortest = marker
