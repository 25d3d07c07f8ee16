"""The prefixes that saved most, with their words."""

from __future__ import annotations

import asyncio
from array import array
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from hotprefix.api.dashboard.gate import Visitor
from hotprefix.api.dashboard.recent import Owner, RecentRequests
from hotprefix.base.ids import BlockKey
from hotprefix.engine.front import EngineFront
from hotprefix.keys.zones import PUBLIC_TENANT
from hotprefix.kv.top import TopLimits, TopPath
from hotprefix.prompt.tokenizer import Tokenizer

_LIMITS = TopLimits()


@dataclass(frozen=True, slots=True)
class PrefixView:
    """Asks the engine's thread, for a bounded time, and turns tokens to text on a worker."""

    engine: EngineFront
    recent: RecentRequests
    workers: Executor

    async def show(self, visitor: Visitor, tenant: str | None, *, words: bool) -> dict[str, Any]:
        """Of all tenants, or of one; a visitor who is a tenant sees its own alone."""
        chosen = tenant if visitor.sees_all else visitor.tenant
        owners = None if chosen is None else self.recent.roots_of(chosen) | {self.engine.root_for(chosen)}
        top = await self.engine.top(_LIMITS, owners)
        paths = [self._facts(path) for path in top.paths]
        if words:
            loop, tokenizer = asyncio.get_running_loop(), self.engine.model.tokenizer
            texts = await loop.run_in_executor(self.workers, _texts, tokenizer, top.paths)
            paths = [path | text for path, text in zip(paths, texts, strict=True)]
        return {
            "prefixes": paths,
            "block_size": self.engine.block_size,
            "visited": top.visited,
            "is_complete": top.is_complete,
        }

    def _facts(self, path: TopPath) -> dict[str, Any]:
        owner = self._owner(path.owner)
        return {
            "id": path.key.hex()[:16],
            "tenant": None if owner is None else owner.tenant,
            "scene": "" if owner is None else owner.scene,
            "tokens": path.tokens,
            "hits": path.hits,
            "reused": path.reused,
            "branches": path.branches,
            "is_held": path.is_held,
            "is_joint": path.is_joint,
            "head_tokens": len(path.head) // 4,
            "tail_tokens": len(path.tail) // 4,
        }

    def _owner(self, root: BlockKey) -> Owner | None:
        known = self.recent.owner(root)
        if known is None and root == self.engine.root_for(PUBLIC_TENANT):
            return Owner(PUBLIC_TENANT)
        return known


def _texts(tokenizer: Tokenizer, paths: tuple[TopPath, ...]) -> list[dict[str, str]]:
    return [{"head": _text(tokenizer, path.head), "tail": _text(tokenizer, path.tail)} for path in paths]


def _text(tokenizer: Tokenizer, encoded: bytes) -> str:
    """With the template's special tokens, which `decode` leaves out."""
    pieces = [tokenizer.token_bytes(token) for token in array("I", encoded)]
    return b"".join(pieces).decode("utf-8", "replace")
