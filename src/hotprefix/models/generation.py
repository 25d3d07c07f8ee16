"""How a model wants to be sampled when a request does not say."""

from __future__ import annotations

import json

from hotprefix.models.catalogue import CATALOGUE, SamplingDefaults
from hotprefix.models.manifest import ModelManifest


def sampling_defaults(manifest: ModelManifest) -> SamplingDefaults:
    """What the model's makers recommend: by the catalogue, else by its `generation_config.json`."""
    for known in CATALOGUE.values():
        if manifest.source == f"{known.project}=={known.version}":
            return known.sampling
    try:
        config = json.loads((manifest.folder / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return SamplingDefaults()
    if not isinstance(config, dict):
        return SamplingDefaults()
    if config.get("do_sample") is False:
        return SamplingDefaults(temperature=0.0)
    return SamplingDefaults(
        temperature=_number(config.get("temperature"), 0.0, 2.0), top_p=_number(config.get("top_p"), 0.0, 1.0)
    )


def _number(value: object, least: float, most: float) -> float:
    """Values out of range or of another type are as if they were not there."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
    return float(value) if good else 1.0  # type: ignore[arg-type]
