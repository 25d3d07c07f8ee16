"""Encryption at rest: AES-256-GCM over a record's payload, with its header as associated data."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from hotprefix.base.errors import MissingExtra
from hotprefix.tiers.base import StoreError

KEY_BYTES = 32
KEY_ID_BYTES = 8
NONCE_BYTES = 12
TAG_BYTES = 16
_PERSON = b"hotprefix/keyid1"


class Cipher:
    """One key. Thread-safe. Needs the extra `crypt`, else raises `MissingExtra`.

    Nonces are random: one key is good for 2^32 records (NIST SP 800-38D, 8.3).
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise StoreError(f"an encryption key has {KEY_BYTES} bytes, not {len(key)}")
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise MissingExtra(
                "Encrypted tiers need cryptography. Install it with: pip install 'hotprefix[crypt]'"
            ) from error
        self._aes = AESGCM(key)
        self._invalid = InvalidTag
        self.key_id = blake2b(key, digest_size=KEY_ID_BYTES, person=_PERSON).digest()
        """Names the key in a record without telling anything of it."""

    def nonce(self) -> bytes:
        """A new one for each record."""
        return os.urandom(NONCE_BYTES)

    def seal(self, payload: bytes, nonce: bytes, about: bytes) -> bytes:
        """Ciphertext and tag; `about` is authenticated with it."""
        return self._aes.encrypt(nonce, payload, about)

    def open(self, sealed: bytes, nonce: bytes, about: bytes) -> bytes | None:
        """The payload, or None if key, nonce, `about` or a bit of `sealed` is another."""
        try:
            return self._aes.decrypt(nonce, sealed, about)
        except self._invalid:
            return None


def read_cipher(path: Path) -> Cipher:
    """The cipher of the key in `path`: 32 bytes, or 64 hexadecimal digits. Raises `StoreError`."""
    try:
        # More than a key can have is enough to know that it is none.
        with path.open("rb") as file:
            data = file.read(1024)
    except OSError as error:
        raise StoreError(f"the key file {path} can't be read: {error.strerror}") from error
    if len(data) != KEY_BYTES:
        data = _from_hex(data, path)
    return Cipher(data)


def _from_hex(data: bytes, path: Path) -> bytes:
    try:
        key = bytes.fromhex(data.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise StoreError(
            f"{path} holds no key: it needs {KEY_BYTES} bytes, or {2 * KEY_BYTES} hexadecimal digits. "
            f"Make one with: head -c {KEY_BYTES} /dev/urandom > {path}"
        )
    return key
