"""The scope of a cache entry: everything besides the tokens that decides whether KV may be reused."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from hotprefix.base.ids import BlockKey

KEY_BYTES = 32
_PERSON = b"hotprefix/scope1"


@dataclass(frozen=True, slots=True)
class CacheScope:
    """Root of a tree of keys; two scopes never share a key below them.

    `model` is the fingerprint of weights, graph, tokenizer and template; `kv_format` names
    element types, shapes and block size of the arena; `tenant` is the salt of the credential.
    """

    model: str
    kv_format: str
    adapter: str = ""
    tenant: str = ""

    def root(self, secret: bytes = b"") -> BlockKey:
        """Digest of the scope, keyed with the deployment's `secret` (at most 64 bytes).

        With a secret, keys seen on shared storage can't be guessed from known prompts.
        """
        digest = blake2b(digest_size=KEY_BYTES, key=secret, person=_PERSON)
        for field in (self.model, self.kv_format, self.adapter, self.tenant):
            data = field.encode("utf-8")
            # The length comes first, so ("ab", "c") and ("a", "bc") differ.
            digest.update(len(data).to_bytes(4, "little"))
            digest.update(data)
        return BlockKey(digest.digest())
