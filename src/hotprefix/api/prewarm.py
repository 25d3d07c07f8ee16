"""Prefill without an answer: the engine always draws one token, which nobody gets to see or pays for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from hotprefix.engine.request import Delta


async def prefilled(stream: AsyncIterator[Delta]) -> AsyncIterator[Delta]:
    """The deltas of a stream without what was drawn. Closing this one closes `stream`."""
    try:
        async for delta in stream:
            usage = None if delta.usage is None else replace(delta.usage, completion_tokens=0)
            yield replace(delta, text="", token_ids=(), logprobs=(), usage=usage)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
