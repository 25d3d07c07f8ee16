"""A request that names a cache: does its prompt begin with it, and if not, where do they part?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.api.wishes import CACHE_HEADER
from hotprefix.modes.errors import CacheNotFound
from hotprefix.modes.named import NamedCaches
from hotprefix.modes.named_cache import NamedCache
from hotprefix.prompt.spans import SpannedPrompt
from hotprefix.prompt.tokenizer import Tokenizer

_SHOWN_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Sight:
    """Headers and warnings for the response."""

    notes: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


async def look_at(
    named: NamedCaches, tenant: str, name: str, prompt: SpannedPrompt, tokenizer: Tokenizer
) -> Sight:
    """A prompt that begins with the cache renews it; any other gets a warning that says where it parts."""
    try:
        cache = named.get(tenant, name)
    except CacheNotFound:
        return Sight(warnings=(f"{CACHE_HEADER}: there is no cache '{name[:64]}'",))
    if not await named.verify(cache):
        return Sight(warnings=(f"{CACHE_HEADER}: '{name}' is stale: {cache.note or 'not computed yet'}",))
    matched = shared(cache.token_ids, prompt.token_ids)
    if matched < len(cache.token_ids) and not _only_the_end_differs(cache, prompt, matched):
        return Sight(warnings=(_parting(cache, prompt, matched, tokenizer),))
    named.hit(cache)
    return Sight(notes=((CACHE_HEADER, f"{name}; tokens={matched}"),))


def shared(left: Sequence[int], right: Sequence[int]) -> int:
    """Length of the common prefix."""
    most = min(len(left), len(right))
    return next((at for at in range(most) if left[at] != right[at]), most)


def _only_the_end_differs(cache: NamedCache, prompt: SpannedPrompt, matched: int) -> bool:
    """The last token of a raw text may join what follows; the prompt goes on from all before it."""
    is_text = "text" in cache.definition.document
    return is_text and matched == len(cache.token_ids) - 1 and len(prompt.token_ids) > matched


def _parting(cache: NamedCache, prompt: SpannedPrompt, matched: int, tokenizer: Tokenizer) -> str:
    place = next((span.block.path for span in prompt.spans if span.end_token > matched), "the prompt")
    wanted = _shown(tokenizer, cache.token_ids, matched)
    found = _shown(tokenizer, prompt.token_ids, matched)
    return (
        f"{CACHE_HEADER}: the prompt leaves '{cache.definition.name}' after {matched} of "
        f"{len(cache.token_ids)} tokens, in {place}: the cache goes on with {wanted}, the prompt with {found}"
    )


def _shown(tokenizer: Tokenizer, ids: Sequence[int], at: int) -> str:
    text = tokenizer.decode(ids[at : at + _SHOWN_TOKENS])
    return '"' + text.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'
