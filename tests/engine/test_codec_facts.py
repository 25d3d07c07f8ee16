"""The codec behind the arena is made with what is known of the model, and only where it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.base.errors import UnsupportedModel
from hotprefix.base.ids import BlockKey
from hotprefix.engine.tiers import CodecFacts, open_tiers
from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.codecs.frame import HEAD_BYTES
from hotprefix.pages.rotary import Rotary
from hotprefix.tiers.facts import BlockFacts
from hotprefix.tiers.settings import TierSettings
from hotprefix.tiers.stack import TierStack
from tests.pages.codecs.blocks import ROTARY, float_format
from tests.pages.codecs.calibrated import calibration_for

FORMAT = float_format()


class Asked:
    """Counts who asked."""

    def __init__(self) -> None:
        self.rotary_asked = self.calibration_asked = 0

    def rotary(self) -> Rotary:
        self.rotary_asked += 1
        return ROTARY

    def calibration(self) -> Calibration:
        self.calibration_asked += 1
        return calibration_for()


@pytest.mark.parametrize(("codec", "asked"), [("raw", (0, 0)), ("int8", (1, 0)), ("mixed:5", (1, 1))])
def test_only_what_a_codec_needs_is_worked_out(codec: str, asked: tuple[int, int]) -> None:
    facts = Asked()
    settings = TierSettings(ram_bytes=1 << 20, codec=codec)
    stack = open_tiers(
        settings, FORMAT, CodecFacts(facts.rotary, facts.calibration), b"s" * 32, ManualClock()
    )
    stack.close(1.0)
    assert (facts.rotary_asked, facts.calibration_asked) == asked


@pytest.mark.parametrize("tier", ["ram", "disk", "redis"])
def test_a_tier_that_could_hold_no_block_is_told_by_its_option(tier: str, tmp_path: Path) -> None:
    facts, nothing = Asked(), ManualClock()

    def opened(size: int) -> TierStack:
        sizes: dict[str, Any] = {f"{tier}_bytes": size}
        settings = TierSettings(disk_folder=tmp_path / "kv", redis_url="unix:///nowhere/socket", **sizes)
        kit = CodecFacts(facts.rotary, facts.calibration)
        return open_tiers(settings, FORMAT, kit, b"s" * 32, nothing)

    least = 5 * (HEAD_BYTES + FORMAT.block_bytes + 1024)
    with pytest.raises(
        UnsupportedModel, match=rf"--kv-{tier} of {least - 1:,} bytes .* at least {least:,} bytes"
    ):
        opened(least - 1)
    stack = opened(least)
    data, hit = np.zeros(FORMAT.block_bytes, np.uint8), BlockFacts(hits=1)
    assert stack.store(BlockKey(b"k" * 32), 0, FORMAT.block_size, data.copy, hit)
    assert stack.flush(30)
    if tier != "redis":  # which is not there
        assert stack.stats()[tier].records == 1
    stack.close(1.0)


def test_a_setting_that_mixed_lacks_is_told_by_its_option() -> None:
    facts = Asked()
    settings = TierSettings(ram_bytes=1 << 20, codec="mixed:bits=99")
    with pytest.raises(UnsupportedModel, match=r"--kv-codec: 99 bits a value can't be had"):
        open_tiers(settings, FORMAT, CodecFacts(facts.rotary, facts.calibration), b"s" * 32, ManualClock())
