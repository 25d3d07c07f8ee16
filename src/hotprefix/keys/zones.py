"""Public prefixes: a history whose first blocks everyone may share and whose rest is a tenant's own.

The public blocks chain from the public scope's root. The private rest chains from a joint, the
digest of the last public key and the tenant's root: nobody without that root can name a block of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from hotprefix.base.ids import BlockKey
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.scope import KEY_BYTES

PUBLIC_TENANT = "@public"
"""Salt of the public scope. Salts of tenants are digests in hexadecimal, so none can equal it."""
_PERSON = b"hotprefix/joint1"


def joint_key(public: BlockKey, tenant_root: BlockKey) -> BlockKey:
    """Root of a tenant's blocks behind the public block `public`; both are of fixed length."""
    return BlockKey(blake2b(public + tenant_root, digest_size=KEY_BYTES, person=_PERSON).digest())


class ZonedHistory(TokenHistory):
    """A history whose first `shared` full blocks are public. `root` is the tenant's."""

    __slots__ = ("_joint", "_public_root", "_shared")

    def __init__(
        self,
        root: BlockKey,
        token_ids: Iterable[int],
        block_size: int,
        public_root: BlockKey,
        shared: int,
    ) -> None:
        super().__init__(root, token_ids, block_size)
        if not 0 < shared * block_size <= len(self):
            raise ValueError(f"{shared} public blocks do not fit into {len(self)} tokens")
        self._public_root = public_root
        self._shared = shared
        self._joint = joint_key(self.keys(shared)[shared - 1], root)

    @property
    def shared_blocks(self) -> int:
        return self._shared

    def keys(self, blocks: int) -> list[BlockKey]:
        if blocks > self._shared > len(self._keys):
            super().keys(self._shared)
        return super().keys(blocks)

    def parent_key(self, block: int) -> BlockKey:
        if block == self._shared:
            return self._joint
        return super().parent_key(block) if block else self._public_root

    def root_of(self, block: int) -> BlockKey:
        return self._public_root if block < self._shared else self._joint

    def owner_of(self, block: int) -> BlockKey:
        return self._public_root if block < self._shared else self.root


class PublicZone:
    """The registered prefixes, cut to full blocks. Never changes: replace it as a whole.

    `prefixes` are token ids; one that is shorter than a block has no effect.
    """

    def __init__(self, root: BlockKey, block_size: int, prefixes: Iterable[Sequence[int]] = ()) -> None:
        self.root = root
        self.block_size = block_size
        self._known: set[BlockKey] = set()
        self._ends: set[BlockKey] = set()
        for prefix in prefixes:
            keys = TokenHistory(root, prefix, block_size).keys(len(prefix) // block_size)
            self._known.update(keys)
            self._ends.update(keys[-1:])

    def __len__(self) -> int:
        """Distinct prefixes."""
        return len(self._ends)

    def shared_blocks(self, token_ids: Sequence[int]) -> int:
        """Full blocks of the longest registered prefix that the tokens begin with.

        The cost is one digest for each block that some registered prefix shares, and one more.
        """
        if not self._ends:
            return 0
        history = TokenHistory(self.root, (), self.block_size)
        shared = 0
        for block in range(len(token_ids) // self.block_size):
            history.extend(token_ids[block * self.block_size : (block + 1) * self.block_size])
            key = history.keys(block + 1)[block]
            if key not in self._known:
                break
            if key in self._ends:
                shared = block + 1
        return shared

    def history(self, tenant_root: BlockKey, token_ids: Sequence[int]) -> TokenHistory:
        """The history of a tenant's tokens, its beginning public if it is registered."""
        shared = self.shared_blocks(token_ids)
        if not shared:
            return TokenHistory(tenant_root, token_ids, self.block_size)
        return ZonedHistory(tenant_root, token_ids, self.block_size, self.root, shared)
