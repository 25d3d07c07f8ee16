"""What to know of the arms of an experiment before it runs: whether each of them can be cached."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from hotprefix.doctor.prompts.prompt import Prompt
from hotprefix.doctor.prompts.sizes import Sizes, minimum_of
from hotprefix.profiles.loader import ProfileBook, load_profiles


def cautions_of(
    prompt: Prompt, texts: Mapping[str, str], sizes: Sizes | None = None, book: ProfileBook | None = None
) -> tuple[str, ...]:
    """Sentences about the arms of `prompt`, whose texts are given by version."""
    experiment = prompt.experiment
    if experiment is None:
        return ()
    sizes = sizes or Sizes()
    minimum = minimum_of(prompt, book or load_profiles())
    arms = [arm for arm, weight in experiment.arms.items() if weight > 0]
    told = []
    for one, other in combinations(arms, 2):
        shared = sizes.shared(texts[one], texts[other])
        if shared >= minimum:
            continue
        shares = experiment.shares
        rarer = min((one, other), key=lambda arm: shares[arm])
        told.append(
            f"Arms {one} and {other} of {prompt.name!r} begin with {sizes.told(shared)} in common, fewer "
            f"than the {minimum:,} that a cached prefix needs, so each is cached on its own: {rarer} has to "
            f"stay in the cache by {shares[rarer]:.0%} of the requests alone. Put what differs behind what "
            "is equal."
        )
    return tuple(told)
