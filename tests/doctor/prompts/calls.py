"""Requests of two arms with effects that are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl


@dataclass(frozen=True)
class World:
    """Arm v2 against v1: `slower` and `dearer` as factors, others as shifts. `sizes` are sessions."""

    sizes: tuple[int, int] = (80, 80)
    slower: float = 1.0
    dearer: float = 1.0
    hits: float = 0.0
    fails: float = 0.0
    score: float = 0.0
    later: float = 0.0
    currency: str = "CNY"


def calls(world: World, seed: int = 1) -> pl.DataFrame:
    """What `compare` takes."""
    rng = np.random.default_rng(seed)
    frames, unit = [], 0
    for arm, sessions in enumerate(world.sizes):
        counts = 1 + rng.poisson(2, sessions)
        total = int(counts.sum())
        mood = np.repeat(rng.normal(0, 0.4, sessions), counts)
        prompt = rng.integers(800, 4_000, total)
        rate = 1 / (1 + np.exp(-(0.5 + mood + world.hits * arm)))
        slower, dearer = world.slower if arm else 1.0, world.dearer if arm else 1.0
        failed = rng.uniform(size=total) < 0.06 + world.fails * arm
        frames.append(
            pl.DataFrame(
                {
                    "unit": [f"session {unit + place}" for place in np.repeat(np.arange(sessions), counts)],
                    "prompt_version": [f"v{arm + 1}"] * total,
                    "at": rng.uniform(0, 1e5, total) + world.later * arm,
                    "first_token": np.exp(rng.normal(-1.5, 0.5, total)) * slower,
                    "prompt": prompt,
                    "read": (prompt * rate).astype(int),
                    "money": prompt * 1e-6 * (1 - 0.8 * rate) * dearer,
                    "currency": [world.currency if arm else "CNY"] * total,
                    "failed": failed,
                    "cut": rng.uniform(size=total) < 0.1,
                    "finish": np.where(failed, "error", "stop").tolist(),
                    "score": rng.normal(4, 1, total) + world.score * arm,
                }
            )
        )
        unit += sessions
    return pl.concat(frames)
