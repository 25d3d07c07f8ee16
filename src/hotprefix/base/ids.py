"""Identifiers as distinct types, so that a block can't be passed where a token is meant."""

from __future__ import annotations

from typing import NewType

TokenId = NewType("TokenId", int)
"""Index into the model's vocabulary."""

BlockId = NewType("BlockId", int)
"""Index of a KV block in the arena."""

BlockKey = NewType("BlockKey", bytes)
"""256-bit chained digest: names a block's content and everything before it."""

RequestId = NewType("RequestId", str)
"""Name of a client's request, unique while it is in flight."""
