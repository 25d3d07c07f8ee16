"""Sizes and times for people."""

from __future__ import annotations

_GIB, _MIB = 1 << 30, 1 << 20


def size(count: float) -> str:
    """Bytes."""
    return f"{count / _GIB:,.4g} GiB" if count >= _GIB else f"{count / _MIB:,.4g} MiB"


def seconds(value: float) -> str:
    """A time, three digits where they are enough."""
    if value < 0.001:
        return f"{value * 1e6:.3g} µs"
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:,.3g} s"
