"""Where calibrations lie, and which one is a model's."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.codecs.calibration import Calibration, load_calibration

_OWN = files(__package__) / "data"


def calibration_path(folder: Path, fingerprint: str) -> Path:
    """Where `hotprefix calibrate` puts the calibration of a model."""
    return folder / f"{fingerprint}.npz"


def find_calibration(manifest: ModelManifest, folder: Path | None) -> Calibration | None:
    """The model's calibration in `folder`, or else the one that comes with the package, if there is one.

    A model of the catalogue counts as this model by its source, whose content is pinned: conversion may
    change its fingerprint, but not its numbers. Whatever a calibration says, only sizes and errors within
    their bound depend on it. Raises `ModelError` if the file is broken.
    """
    if folder is not None and (own := calibration_path(folder, manifest.fingerprint)).is_file():
        return load_calibration(own)
    packaged = _OWN / f"{manifest.name}.npz"
    if not packaged.is_file():
        return None
    with as_file(packaged) as place:
        calibration = load_calibration(place)
    is_this = manifest.fingerprint == calibration.fingerprint or manifest.source == calibration.source
    return calibration if is_this else None
