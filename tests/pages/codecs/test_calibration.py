"""Files of `hotprefix calibrate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hotprefix.base.errors import ModelError
from hotprefix.models.catalogue import CATALOGUE, DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.codecs.calibration import Calibration, load_calibration
from hotprefix.pages.codecs.calibrations import calibration_path, find_calibration
from tests.pages.codecs.calibrated import calibration_for


def manifest_of(name: str, source: str, fingerprint: str) -> ModelManifest:
    return ModelManifest(name, "llama", source, Path("/nowhere"), fingerprint, 2048, None, (2,), False, "", 0)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    given = calibration_for(layers=3, heads=2, size=8)
    given.save(tmp_path / "one.npz")
    found = load_calibration(tmp_path / "one.npz")
    assert (found.fingerprint, found.source) == (given.fingerprint, given.source)
    assert found.shape == (3, 2, 8)
    for name in ("means", "steps", "spreads", "router", "bias", "shares", "w", "b"):
        np.testing.assert_allclose(getattr(found, name), getattr(given, name), rtol=4e-3, atol=1e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]


def test_the_digest_tells_what_decodes_differently(tmp_path: Path) -> None:
    given = calibration_for()
    assert given.digest() == replace(given, router=given.router * 2, fingerprint="other").digest()
    for name in ("means", "steps", "spreads"):
        assert given.digest() != replace(given, **{name: getattr(given, name) * 2}).digest()


@pytest.mark.parametrize(
    "change",
    [
        {"steps": np.zeros((2, 4, 2, 16), np.float32)},
        {"means": np.full((2, 4, 2, 16), np.nan, np.float32)},
        {"router": np.ones((4, 2, 33), np.float32)},
        {"w": np.ones((4, 63), np.float32)},
        {"spreads": np.ones((2, 4, 2, 15), np.float32)},
        {"shares": np.ones((2, 3), np.float32)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"wrong shape|different models|must be positive"):
        replace(calibration_for(), **change)


@pytest.mark.parametrize("text", [b"", b"PK\x03\x04 cut", b"no archive at all"])
def test_other_files_are_refused_with_their_name(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "other.npz"
    path.write_bytes(text)
    with pytest.raises(ModelError, match=r"other\.npz is no calibration"):
        load_calibration(path)
    with pytest.raises(ModelError, match=r"gone\.npz does not exist"):
        load_calibration(tmp_path / "gone.npz")


def test_a_file_that_lacks_an_array_is_refused(tmp_path: Path) -> None:
    calibration_for().save(tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as whole:
        arrays = {name: whole[name] for name in whole.files if name != "router"}
    np.savez(tmp_path / "cut.npz", **arrays)
    with pytest.raises(ModelError, match=r"cut\.npz is no calibration"):
        load_calibration(tmp_path / "cut.npz")


def test_the_package_brings_that_of_the_default_model() -> None:
    model = CATALOGUE[DEFAULT_MODEL]
    source = f"{model.project}=={model.version}"
    found = find_calibration(manifest_of(DEFAULT_MODEL, source, "converted elsewhere"), None)
    assert isinstance(found, Calibration)
    assert found.shape == (30, 3, 64)
    assert find_calibration(manifest_of(DEFAULT_MODEL, "somewhere/else.gguf", "other"), None) is None
    assert find_calibration(manifest_of("unknown", source, "other"), None) is None


def test_a_file_of_the_operator_goes_first(tmp_path: Path) -> None:
    calibration_for().save(calibration_path(tmp_path, "f1"))
    found = find_calibration(manifest_of(DEFAULT_MODEL, "x", "f1"), tmp_path)
    assert found is not None
    assert found.shape == (4, 2, 16)
    assert find_calibration(manifest_of(DEFAULT_MODEL, "x", "f2"), tmp_path) is None
