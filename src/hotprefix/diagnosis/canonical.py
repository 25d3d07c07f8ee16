"""JSON values without what carries no meaning: the order of keys, and of names in `required`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def canonical(value: Any) -> Any:
    """`value` with keys sorted at every depth, and `required` lists of names sorted as well."""
    if isinstance(value, Mapping):
        return {key: _member(key, value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    return value


def same_json(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal but for the order of keys. 1, 1.0 and true are different."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return type(left) is type(right) and bool(left == right)


def first_difference(left: Any, right: Any) -> str:
    """The path below two JSON values where they first differ: `.function.description`, `[2]`.

    Keys in another order differ at the object that holds them. Empty at the top or if equal.
    """
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in left:
            if key not in right:
                return f".{key}"
            if _as_sent(left[key]) != _as_sent(right[key]):
                return f".{key}" + first_difference(left[key], right[key])
        return next((f".{key}" for key in right if key not in left), "")
    if isinstance(left, list) and isinstance(right, list):
        for index, (one, other) in enumerate(zip(left, right, strict=False)):
            if _as_sent(one) != _as_sent(other):
                return f"[{index}]" + first_difference(one, other)
        return f"[{min(len(left), len(right))}]" if len(left) != len(right) else ""
    return ""


def _member(key: str, value: Any) -> Any:
    if key == "required" and isinstance(value, list) and all(isinstance(name, str) for name in value):
        return sorted(value)
    return canonical(value)


def _as_sent(value: Any) -> str:
    # repr keeps the order of keys and tells 1 from True, which == does not.
    return repr(value)
