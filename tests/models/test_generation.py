"""How a model wants to be sampled."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hotprefix.models.catalogue import CATALOGUE, DEFAULT_MODEL, SamplingDefaults
from hotprefix.models.generation import sampling_defaults
from hotprefix.models.manifest import ModelManifest


def test_a_catalogued_model_has_its_makers_advice(tiny_model: ModelManifest) -> None:
    known = CATALOGUE[DEFAULT_MODEL]
    manifest = replace(tiny_model, source=f"{known.project}=={known.version}")
    assert sampling_defaults(manifest) == SamplingDefaults(0.2, 0.9)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"temperature": 0.6, "top_p": 0.95}, SamplingDefaults(0.6, 0.95)),
        ({"do_sample": False, "temperature": 0.6}, SamplingDefaults(0.0, 1.0)),
        ({"temperature": "hot", "top_p": 7}, SamplingDefaults()),
        ([], SamplingDefaults()),
        (None, SamplingDefaults()),
    ],
)
def test_other_models_say_it_in_their_folder(
    tiny_model: ModelManifest, tmp_path: Path, config: object, expected: SamplingDefaults
) -> None:
    if config is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert sampling_defaults(replace(tiny_model, folder=tmp_path)) == expected
