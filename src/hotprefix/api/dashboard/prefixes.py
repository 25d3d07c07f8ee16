"""The prefixes that saved most, with their words."""

from __future__ import annotations

import asyncio
from array import array
from concurrent.futures import Executor
from typing import Any

from hotprefix.api.dashboard.gate import Visitor
from hotprefix.api.dashboard.recent import Owner, RecentRequests
from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.engine.front import EngineFront
from hotprefix.keys.zones import PUBLIC_TENANT
from hotprefix.kv.top import TopLimits, TopPath
from hotprefix.prompt.tokenizer import Tokenizer

_LIMITS = TopLimits()
_REMEMBERED_FOR = 2.0


class PrefixView:
    """Asks the engine's thread, for a bounded time and not more often than once in `_REMEMBERED_FOR` for
    the same question, and turns tokens to text on a worker."""

    def __init__(self, engine: EngineFront, recent: RecentRequests, workers: Executor, clock: Clock) -> None:
        self._engine = engine
        self._recent = recent
        self._workers = workers
        self._clock = clock
        self._answers: dict[tuple[str | None, bool], tuple[float, dict[str, Any]]] = {}

    async def show(self, visitor: Visitor, tenant: str | None, *, words: bool) -> dict[str, Any]:
        """Of all tenants, or of one; a visitor who is a tenant sees its own alone."""
        chosen = tenant if visitor.sees_all else visitor.tenant
        now = self._clock.now()
        self._answers = {
            key: known for key, known in self._answers.items() if now - known[0] < _REMEMBERED_FOR
        }
        if (known := self._answers.get((chosen, words))) is not None:
            return known[1]
        answer = await self._asked(chosen, words=words)
        self._answers[chosen, words] = now, answer
        return answer

    async def _asked(self, tenant: str | None, *, words: bool) -> dict[str, Any]:
        owners = None if tenant is None else self._recent.roots_of(tenant) | {self._engine.root_for(tenant)}
        top = await self._engine.top(_LIMITS, owners)
        paths = [self._facts(path) for path in top.paths]
        if words:
            loop, tokenizer = asyncio.get_running_loop(), self._engine.model.tokenizer
            texts = await loop.run_in_executor(self._workers, _texts, tokenizer, top.paths)
            paths = [path | text for path, text in zip(paths, texts, strict=True)]
        return {
            "prefixes": paths,
            "block_size": self._engine.block_size,
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
        known = self._recent.owner(root)
        if known is None and root == self._engine.root_for(PUBLIC_TENANT):
            return Owner(PUBLIC_TENANT)
        return known


def _texts(tokenizer: Tokenizer, paths: tuple[TopPath, ...]) -> list[dict[str, str]]:
    return [{"head": _text(tokenizer, path.head), "tail": _text(tokenizer, path.tail)} for path in paths]


def _text(tokenizer: Tokenizer, encoded: bytes) -> str:
    """With the template's special tokens, which `decode` leaves out."""
    pieces = [tokenizer.token_bytes(token) for token in array("I", encoded)]
    return b"".join(pieces).decode("utf-8", "replace")
