"""What is worked out of a prompt beforehand, on a worker thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hotprefix.base.ids import BlockKey
from hotprefix.diagnosis.snapshot import PromptSnapshot, SnapshotExtras, take_snapshot
from hotprefix.keys.chain import TokenHistory
from hotprefix.prompt.spans import SpannedPrompt


class Keying(Protocol):
    """How the engine names blocks. On any thread."""

    @property
    def block_size(self) -> int: ...

    def root_for(self, tenant: str) -> BlockKey: ...

    def history(self, tenant: str, token_ids: Sequence[int]) -> TokenHistory:
        """The tokens with their keys, a public beginning included."""
        ...


@dataclass(frozen=True, slots=True)
class Imprint:
    """`history` names the entries of a tenant, and `block_keys` are those of the full blocks, as the
    engine has them. `snapshot` lacks what only the turn knows: markers, scene and time."""

    history: TokenHistory
    block_keys: Sequence[BlockKey]
    snapshot: PromptSnapshot


def take_imprint(
    keying: Keying,
    tenant: str,
    model: str,
    prompt: SpannedPrompt,
    tools: Sequence[Mapping[str, Any]] = (),
    parameters: Mapping[str, str] | None = None,
) -> Imprint:
    """All that depends on the prompt alone; takes about as long as rendering and tokenising it."""
    ids, size = prompt.token_ids, keying.block_size
    seen = keying.history(tenant, ids)
    history = TokenHistory(keying.root_for(tenant), ids, size) if seen.shared_blocks else seen
    extras = SnapshotExtras(model=model, parameters=parameters or {}, tools=tools)
    return Imprint(history, seen.keys(len(ids) // size), take_snapshot(prompt, extras, 0.0))
