"""Computes a prefix for its own sake: nothing is answered."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from hotprefix.api.prewarm import prefilled
from hotprefix.base.errors import LogicError, Unavailable
from hotprefix.base.ids import RequestId
from hotprefix.engine.front import EngineFront
from hotprefix.engine.request import FinishReason, GenerationRequest, Sampling
from hotprefix.modes.named import Prefill


def prefill_with(engine: EngineFront) -> Prefill:
    """Has `engine` compute tokens, and tells how many of them the cache had."""

    async def prefill(tenant: str, token_ids: Sequence[int]) -> int:
        name = RequestId(f"prefill-{uuid4().hex}")
        sampling = Sampling(max_tokens=1, temperature=0.0, ignore_eos=True)
        request = GenerationRequest(name, token_ids, sampling, tenant=tenant, keeps_short=True)
        known = 0
        async for delta in prefilled(engine.stream(request)):
            if delta.finish_reason is FinishReason.ERROR:
                raise LogicError(f"the engine gave up on a prefix: {delta.error or 'no reason given'}")
            if delta.finish_reason is FinishReason.ABORTED:
                raise Unavailable("The server ended this before the prefix was computed; try again.")
            if delta.usage is not None:
                known = delta.usage.cached_tokens
        return known

    return prefill
