"""The engine as the API sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hotprefix.base.ids import BlockKey, RequestId
from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.engine.request import Delta, GenerationRequest
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.zones import PublicZone
from hotprefix.kv.top import TopLimits, TopPaths
from hotprefix.models.catalogue import SamplingDefaults
from hotprefix.prompt.chat import ChatTemplate
from hotprefix.prompt.tokenizer import Tokenizer
from hotprefix.tenants.quota import TenantQuota


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What the API needs to know of the model behind the engine.

    `context_length` is in tokens (prompt and answer together); `created` in Unix seconds;
    `defaults` apply where a request does not say how to sample. `kv_precision` and
    `kv_bytes_per_token` tell how keys and values are kept, once the engine is loaded.
    """

    name: str
    aliases: tuple[str, ...]
    context_length: int
    created: int
    tokenizer: Tokenizer
    template: ChatTemplate
    fingerprint: str
    defaults: SamplingDefaults = field(default_factory=SamplingDefaults)
    kv_precision: str = ""
    kv_bytes_per_token: float = 0.0


class EngineFront(Protocol):
    """Takes requests from an event loop and streams their deltas back."""

    @property
    def model(self) -> ServedModel: ...

    @property
    def ready(self) -> bool:
        """True once the first request would be served at full speed."""
        ...

    @property
    def in_flight(self) -> int:
        """Requests accepted and not ended."""
        ...

    def check(self, request: GenerationRequest) -> None:
        """Raise the `RequestError` or `Unavailable` that `stream` would raise."""
        ...

    def stream(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        """Submit and yield deltas until the one with `last`.

        Closing the iterator early (the client went away) aborts the request and frees its
        blocks. Raises `RequestError` or `Unavailable` before the first delta.
        """
        ...

    def publish(self, zone: PublicZone) -> None:
        """From now on, prompts that begin with a prefix of `zone` read that part with everybody."""
        ...

    async def grant(self, quotas: Sequence[TenantQuota]) -> Sequence[str]:
        """From now on, these are the tenants' shares of the cache, and there are no others.

        Returns the tenants whose floor is cut because the reserve for floors does not hold it.
        """
        ...

    def root_for(self, tenant: str) -> BlockKey:
        """The root of a tenant's keys."""
        ...

    def history(self, tenant: str, token_ids: Sequence[int]) -> TokenHistory:
        """Tokens of a tenant as the cache names their blocks; on any thread."""
        ...

    @property
    def block_size(self) -> int:
        """Tokens in a KV block."""
        ...

    @property
    def evictions(self) -> EvictionLog:
        """Which cached blocks had to make room."""
        ...

    @property
    def kv_format(self) -> str:
        """Names element types, shapes and block size of the KV arena."""
        ...

    async def pin(self, name: str, tenant: str, token_ids: Sequence[int]) -> int:
        """Hold a computed prefix in the arena; tokens held, 0 if it has gone or pins are full."""
        ...

    async def top(self, limits: TopLimits, owners: Collection[BlockKey] | None = None) -> TopPaths:
        """The prefixes that saved most, of the tenants with these roots or of all."""
        ...

    def unpin(self, name: str) -> None:
        """Let a pinned prefix go; unknown names are ignored."""
        ...

    def abort(self, request_id: RequestId) -> None:
        """End a request; its stream gets a last delta with `aborted`. Unknown ids are ignored."""
        ...
