"""The codec behind the arena is made with what is known of the model, and only where it is needed."""

from __future__ import annotations

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.base.errors import UnsupportedModel
from hotprefix.engine.tiers import CodecFacts, open_tiers
from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.rotary import Rotary
from hotprefix.tiers.settings import TierSettings
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


def test_a_setting_that_mixed_lacks_is_told_by_its_option() -> None:
    facts = Asked()
    settings = TierSettings(ram_bytes=1 << 20, codec="mixed:bits=99")
    with pytest.raises(UnsupportedModel, match=r"--kv-codec: 99 bits a value can't be had"):
        open_tiers(settings, FORMAT, CodecFacts(facts.rotary, facts.calibration), b"s" * 32, ManualClock())
