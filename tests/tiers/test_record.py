"""Records as bytes: what is read is what was written, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import Record, StoreError
from hotprefix.tiers.cipher import TAG_BYTES, Cipher, read_cipher
from hotprefix.tiers.record import (
    HEADER_BYTES,
    MOST_PAYLOAD,
    MOST_POSITION,
    MOST_TOKENS,
    DamagedRecord,
    RecordFormat,
    read_header,
)
from tests.tiers.records import SCOPE, SECRET, key_of, record

FORMATS = {"open": RecordFormat(), "encrypted": RecordFormat(Cipher(SECRET))}

records = st.builds(
    Record,
    key=st.binary(min_size=32, max_size=32).map(BlockKey),
    scope=st.binary(min_size=32, max_size=32),
    codec=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=32),
    position=st.integers(0, MOST_POSITION),
    tokens=st.integers(1, MOST_TOKENS),
    payload=st.binary(max_size=300),
)


def decode(form: RecordFormat, data: bytes) -> Record | None:
    header = read_header(data[:HEADER_BYTES])
    try:
        return None if header is None else form.decode(header, data[HEADER_BYTES:])
    except DamagedRecord:
        return None


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@given(one=records)
def test_round_trip(form: RecordFormat, one: Record) -> None:
    data = b"".join(form.encode(one))
    assert len(data) == form.size(len(one.payload))
    assert decode(form, data) == one


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@given(data=st.binary(max_size=2 * HEADER_BYTES))
def test_any_bytes(form: RecordFormat, data: bytes) -> None:
    assert decode(form, data) is None
    assert decode(form, b"HPrecord" + data) is None


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_cut_at_every_byte(form: RecordFormat) -> None:
    data = b"".join(form.encode(record(1, 500)))
    for end in range(len(data)):
        assert decode(form, data[:end]) is None
    assert decode(form, data + b"\0") is None


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_every_bit_flipped(form: RecordFormat) -> None:
    data = bytearray(b"".join(form.encode(record(1, 200))))
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        assert decode(form, bytes(data)) is None
        data[bit // 8] ^= 1 << bit % 8
    assert decode(form, bytes(data)) == record(1, 200)


@pytest.mark.parametrize(
    "change",
    [
        {"key": b"short"},
        {"scope": b"short"},
        {"codec": ""},
        {"codec": "x" * 33},
        {"codec": "two words"},
        {"codec": "größe"},
        {"position": -1},
        {"position": MOST_POSITION + 1},
        {"tokens": 0},
        {"tokens": MOST_TOKENS + 1},
        {"payload": bytes(MOST_PAYLOAD)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_could_not_be_read_is_not_written(change: dict[str, object]) -> None:
    with pytest.raises(StoreError):
        RecordFormat().encode(replace(record(1), **change))  # type: ignore[arg-type]


def test_a_length_beyond_the_largest_is_no_header() -> None:
    """Sound checksums do not help: nothing may be allocated for it."""
    form = RecordFormat()
    fields = form._fields(record(1), b"raw", MOST_PAYLOAD + 1, bytes(12), 0)
    from hotprefix.tiers.record import _with_sums

    assert read_header(_with_sums(fields, 0)) is None
    fields = form._fields(record(1), b"raw", MOST_PAYLOAD, bytes(12), 0)
    assert read_header(_with_sums(fields, 0)) is not None


def test_a_tombstone_is_no_record() -> None:
    header = read_header(RecordFormat().tombstone(key_of(1), SCOPE))
    assert header is not None
    assert header.is_tombstone
    with pytest.raises(DamagedRecord):
        RecordFormat().decode(header, b"")


def test_the_key_decides_what_is_read() -> None:
    other = RecordFormat(Cipher(bytes(32)))
    sealed = b"".join(FORMATS["encrypted"].encode(record(1)))
    in_the_open = b"".join(FORMATS["open"].encode(record(1)))
    assert decode(FORMATS["encrypted"], sealed) == record(1)
    assert decode(other, sealed) is None
    assert decode(FORMATS["open"], sealed) is None
    assert decode(FORMATS["encrypted"], in_the_open) is None
    assert record(1).payload not in sealed
    assert len(sealed) == len(in_the_open) + TAG_BYTES


def test_a_forged_header_is_not_believed() -> None:
    """Checksums that anyone can work out do not replace the tag: it covers the header's fields."""
    from hotprefix.tiers.record import _with_sums

    head, body = FORMATS["encrypted"].encode(record(1))
    header = read_header(head)
    assert header is not None
    position = header.fields.index((32).to_bytes(8, "little"))
    fields = header.fields[:position] + (64).to_bytes(8, "little") + header.fields[position + 8 :]
    forged = _with_sums(fields, header.body_sum)
    changed = read_header(forged)
    assert changed is not None
    assert changed.position == 64
    assert decode(FORMATS["encrypted"], forged + body) is None


def test_the_same_record_is_encrypted_differently_each_time() -> None:
    first, second = (FORMATS["encrypted"].encode(record(1)) for _ in range(2))
    assert first != second


def test_key_files(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(SECRET)
    assert read_cipher(path).key_id == Cipher(SECRET).key_id
    path.write_text(SECRET.hex() + "\n", encoding="ascii")
    assert read_cipher(path).key_id == Cipher(SECRET).key_id
    for content in (b"", SECRET[:-1], SECRET + b"\n", b"x" * 64, b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="holds no key"):
            read_cipher(path)
    with pytest.raises(StoreError, match="can't be read"):
        read_cipher(tmp_path / "missing")
    with pytest.raises(StoreError, match="32 bytes"):
        Cipher(b"short")
