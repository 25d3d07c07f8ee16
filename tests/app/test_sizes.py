from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.app.sizes import parse_size, show_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("4096", 4096),
        ("512M", 512 * 1024**2),
        ("2G", 2 * 1024**3),
        ("2g", 2 * 1024**3),
        ("1.5GiB", 3 * 1024**3 // 2),
        ("1.5 GB", 3 * 1024**3 // 2),
        (" 64k ", 65536),
        ("1T", 1024**4),
        ("7B", 7),
    ],
)
def test_sizes_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "G", "-1", "0", "0.1", "1X", "1GG", "1e9", "2 000", "ten", "1_000", "99999999T"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (2 * 1024**3, "2 GiB"),
        (1 << 50, "1024 TiB"),
    ],
)
def test_showing_sizes(size: int, text: str) -> None:
    assert show_size(size) == text


@given(st.integers(1, 1 << 50))
def test_what_is_shown_can_be_read_back(size: int) -> None:
    assert parse_size(show_size(size)) == pytest.approx(size, rel=1e-3)
