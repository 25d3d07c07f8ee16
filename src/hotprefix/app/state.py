"""Where a server keeps what has to outlive it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hotprefix.ledger.store import LEDGER_FILE

CALIBRATION_FOLDER = "calibrations"
"""In a state folder: what `hotprefix calibrate` learned, a file for each model."""


def default_state_dir(env: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/hotprefix`, else `~/.local/state/hotprefix`."""
    # The specification asks to ignore a path that is not absolute.
    base = Path(env.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path("~/.local/state").expanduser()) / "hotprefix"


def ledger_file(state_dir: Path) -> Path:
    """The embedded ledger in a state folder."""
    return state_dir / LEDGER_FILE
