"""The bytes of a record: a header of fixed size, then the payload.

All numbers are little-endian. Both checksums are XXH3-64. It is no defence against forgers, but
random damage passes it once in 2^64, where a CRC-32 lets one in 2^32 through, and it hashes a block
more than ten times faster than zlib's CRC-32 does. Who fears forgers gives a `Cipher`: its tag covers
header and payload.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from xxhash import xxh3_64_intdigest

from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import Record, StoreError
from hotprefix.tiers.cipher import KEY_ID_BYTES, NONCE_BYTES, TAG_BYTES, Cipher

MAGIC = b"HPrecord"
VERSION = 1
KEY_BYTES = 32
SCOPE_BYTES = 32
LONGEST_CODEC = 32
MOST_TOKENS = 1 << 16
MOST_POSITION = 1 << 40
MOST_PAYLOAD = 64 << 20
"""Bytes of a payload; a length above it is damage, and nothing is allocated for it."""

_FIELDS = struct.Struct(f"<8sHHIQQ{KEY_BYTES}s{SCOPE_BYTES}s{LONGEST_CODEC}s{KEY_ID_BYTES}s{NONCE_BYTES}s4x")
_SUM = struct.Struct("<Q")
HEADER_BYTES = _FIELDS.size + 2 * _SUM.size
_TOMBSTONE = 1
_NO_KEY_ID = bytes(KEY_ID_BYTES)
_NO_NONCE = bytes(NONCE_BYTES)


class DamagedRecord(StoreError):
    """Bytes that are no record, or no longer."""


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """What is known of a record without its payload.

    `length` is that of the stored body, in bytes; `key_id` is zeros for a body in the clear.
    A tombstone says that earlier records of its key are deleted.
    """

    key: BlockKey
    scope: bytes
    codec: str
    position: int
    tokens: int
    length: int
    key_id: bytes
    nonce: bytes
    is_tombstone: bool
    fields: bytes
    body_sum: int

    @property
    def size(self) -> int:
        """Bytes of header and body."""
        return HEADER_BYTES + self.length


class RecordFormat:
    """Record ↔ bytes, in the clear or, with a cipher, encrypted. Thread-safe.

    With a cipher, only what the same key encrypted is read: an open record is not trusted.
    """

    def __init__(self, cipher: Cipher | None = None) -> None:
        self._cipher = cipher
        self._key_id = cipher.key_id if cipher else _NO_KEY_ID

    def size(self, payload_bytes: int) -> int:
        """Bytes of a record with such a payload."""
        return HEADER_BYTES + payload_bytes + (TAG_BYTES if self._cipher else 0)

    def reads(self, header: RecordHeader) -> bool:
        """Whether a record is encrypted with our key, or not at all if there is none."""
        return header.key_id == self._key_id

    def encode(self, record: Record) -> tuple[bytes, bytes]:
        """Header and body. Raises `StoreError` for a record that could not be read again."""
        codec = record.codec.encode("utf-8", "replace")
        if not _is_sound(record.key, record.scope, codec, record.position, record.tokens):
            raise StoreError(f"a record of codec {record.codec!r} has fields out of range")
        if len(record.payload) > MOST_PAYLOAD - TAG_BYTES:
            raise StoreError(f"a payload of {len(record.payload)} bytes is larger than a record may be")
        nonce = self._cipher.nonce() if self._cipher else _NO_NONCE
        length = self.size(len(record.payload)) - HEADER_BYTES
        fields = self._fields(record, codec, length, nonce, 0)
        body = self._cipher.seal(record.payload, nonce, fields) if self._cipher else record.payload
        return _with_sums(fields, xxh3_64_intdigest(body)), body

    def tombstone(self, key: BlockKey, scope: bytes) -> bytes:
        """A header without a body: what it says of its key is that it is deleted.

        Its fields are not encrypted; with a cipher its tag is not checked either, so that a forger
        who can write to the tier can delete. He could as well delete the file.
        """
        record = Record(key, scope, "-", 0, 1, b"")
        fields = self._fields(record, b"-", 0, _NO_NONCE, _TOMBSTONE)
        return _with_sums(fields, xxh3_64_intdigest(b""))

    def decode(self, header: RecordHeader, body: bytes) -> Record:
        """The record, its payload checked and decrypted. Raises `DamagedRecord`."""
        if header.is_tombstone or not self.reads(header):
            raise DamagedRecord("a record of another encryption key, or none")
        if len(body) != header.length or xxh3_64_intdigest(body) != header.body_sum:
            raise DamagedRecord("a payload differs from its checksum")
        payload: bytes | None = body
        if self._cipher:
            payload = self._cipher.open(body, header.nonce, header.fields)
        if payload is None:
            raise DamagedRecord("a payload that was not encrypted with this key")
        return Record(header.key, header.scope, header.codec, header.position, header.tokens, payload)

    def _fields(self, record: Record, codec: bytes, length: int, nonce: bytes, flags: int) -> bytes:
        return _FIELDS.pack(
            MAGIC,
            VERSION,
            flags,
            record.tokens,
            record.position,
            length,
            record.key,
            record.scope,
            codec,
            self._key_id,
            nonce,
        )


def read_header(data: bytes) -> RecordHeader | None:
    """The header in the first `HEADER_BYTES` of `data`; None if they are none, damaged or too few."""
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        return None
    (header_sum,) = _SUM.unpack_from(data, HEADER_BYTES - _SUM.size)
    if header_sum != xxh3_64_intdigest(data[: HEADER_BYTES - _SUM.size]):
        return None
    fields = data[: _FIELDS.size]
    _, version, flags, tokens, position, length, key, scope, codec, key_id, nonce = _FIELDS.unpack(fields)
    name = codec.rstrip(b"\0")
    if version != VERSION or flags not in (0, _TOMBSTONE) or length > MOST_PAYLOAD:
        return None
    if not _is_sound(key, scope, name, position, tokens) or (flags == _TOMBSTONE and length):
        return None
    (body_sum,) = _SUM.unpack_from(data, _FIELDS.size)
    return RecordHeader(
        BlockKey(key),
        scope,
        name.decode("ascii"),
        position,
        tokens,
        length,
        key_id,
        nonce,
        flags == _TOMBSTONE,
        fields,
        body_sum,
    )


def _with_sums(fields: bytes, body_sum: int) -> bytes:
    summed = fields + _SUM.pack(body_sum)
    return summed + _SUM.pack(xxh3_64_intdigest(summed))


def _is_sound(key: bytes, scope: bytes, codec: bytes, position: int, tokens: int) -> bool:
    """Whether every field can be what a writer meant."""
    return (
        len(key) == KEY_BYTES
        and len(scope) == SCOPE_BYTES
        and 0 < len(codec) <= LONGEST_CODEC
        and all(0x21 <= byte <= 0x7E for byte in codec)
        and 0 <= position <= MOST_POSITION
        and 0 < tokens <= MOST_TOKENS
    )
