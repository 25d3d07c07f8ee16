"""`hotprefix calibrate` and `hotprefix quality` on a tiny model with random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from hotprefix.base.errors import HotprefixError, InvalidRequest
from hotprefix.pages.codecs.calibration import load_calibration
from hotprefix.quality.measure import Bench
from tests.tiny_gguf import write_tiny_gguf

SMALL = ("--documents", "2", "--prefix", "128", "--scored", "48")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and its store."""
    folder = tmp_path_factory.mktemp("quality")
    write_tiny_gguf(folder / "tiny.gguf")
    return folder


def hotprefix(command: str, folder: Path, *options: str) -> Result:
    words = [command, "--model", str(folder / "tiny.gguf"), "--home", str(folder / "home")]
    words += ["--state-dir", str(folder / "state"), *options]
    return CliRunner().invoke(build_app(), words, env={"COLUMNS": "200"}, catch_exceptions=False)


@pytest.fixture(scope="module")
def calibration(folder: Path) -> Path:
    """What `calibrate` wrote."""
    result = hotprefix("calibrate", folder, "--documents", "2", "--tokens", "256", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["path"].startswith(str(folder / "state" / "calibrations"))
    assert sum(facts["shares"].values()) == pytest.approx(1, abs=1e-5)
    assert len(facts["key_divergence"]) == len(facts["value_divergence"]) == 2
    return Path(facts["path"])


def test_calibrate_writes_what_codec_and_strategies_read(calibration: Path, folder: Path) -> None:
    found = load_calibration(calibration)
    assert found.shape == (2, 1, 64)
    assert found.fingerprint == calibration.stem
    assert found.w.shape == (2, 128)


def test_quality_measures_writes_and_shows(calibration: Path, folder: Path) -> None:
    out = folder / "out"
    names = ("raw", "int8", "layered:0-0", "uniform", "mixed", "mixed:bits=6,cold=int4")
    codecs = [option for name in names for option in ("--codec", name)]
    options = ("--out", str(out), "--precision", "u8", "--strategy", "none", "--no-served")
    result = hotprefix("quality", folder, *SMALL, *codecs, *options)
    assert result.exit_code == 0, result.output
    card = json.loads((out / "quality.json").read_text(encoding="utf-8"))
    lines = {(line["group"], line["name"]): line for line in card["lines"]}
    assert {name for group, name in lines if group == "storage codec"} == set(names)
    assert lines["noise floor", "other chunking"]["summary"]["kl_mean"]["value"] < 1e-8
    raw, int8 = lines["storage codec", "raw"], lines["storage codec", "int8"]
    assert raw["ratio"] == pytest.approx(1, abs=0.01)
    assert raw["summary"]["kl_mean"]["value"] < int8["summary"]["kl_mean"]["value"]
    assert int8["summary"]["tokens"] == 2 * 48
    assert ("arena precision", "u8") in lines
    assert not [line for line in lines if line[0] == "sequence strategy"]
    assert "storage codec" in result.output
    assert "layered:0-0" in result.output
    assert (out / "quality.html").stat().st_size > 100_000


def test_quality_as_served_and_json(folder: Path) -> None:
    options = (*SMALL, "--codec", "int8", "--precision", "none", "--strategy", "none", "--no-plots", "--json")
    result = hotprefix("quality", folder, *options, "--out", str(folder / "served"))
    card = json.loads(result.stdout)
    served = {line["name"] for line in card["lines"] if line["group"] == "as served"}
    assert served == {"last bit flipped", "int8"}
    assert not (folder / "served" / "quality.html").exists()


def test_strategies_and_what_this_model_can_not_have(folder: Path) -> None:
    options = ("--codec", "none", "--precision", "layered-u8", "--no-served", "--no-plots", "--json")
    asked = ("window", "window; window=128; keys=0", "mixed", "window; window=4096")
    strategies = [option for one in asked for option in ("--strategy", one)]
    sizes = ("--documents", "2", "--prefix", "320", "--scored", "40")
    result = hotprefix("quality", folder, *sizes, *options, *strategies, "--out", str(folder / "cut"))
    card = json.loads(result.stdout)
    lines = {line["name"]: line for line in card["lines"] if line["group"] == "sequence strategy"}
    # Half of the prefix, in whole blocks, where no window is asked for.
    assert list(lines) == ["window; window=160", "window; window=128; keys=0", "mixed; window=160"]
    for line in lines.values():
        assert line["summary"]["tokens"] == 2 * 40
        assert line["summary"]["kl_mean"]["value"] > 1e-6
    assert lines["mixed; window=160"]["ratio"] == pytest.approx(2)
    precision, window = card["left_out"]
    assert precision.startswith("layered-u8: the model has 2 layers")
    assert window.startswith("window; window=4096: ")
    assert "can't be had" in window


def test_what_can_not_be_measured_is_said(folder: Path) -> None:
    with pytest.raises(HotprefixError, match=r"a context of 2,048 tokens, and texts of 2,085 are wanted"):
        hotprefix("quality", folder, "--prefix", "2021", "--scored", "8", "--no-plots")
    with pytest.raises(HotprefixError, match="texts of 4,096 are wanted"):
        hotprefix("calibrate", folder, "--tokens", "4096")
    with pytest.raises(HotprefixError, match="is a folder; name a file"):
        hotprefix("calibrate", folder, "--out", str(folder))
    with pytest.raises(FileExistsError):
        hotprefix("quality", folder, "--no-plots", "--out", str(folder / "tiny.gguf"))
    result = hotprefix("quality", folder, "--precision", "u9", "--no-plots")
    assert result.exit_code == 2
    assert "'u9' is none of auto" in result.output
    for command, option in (("quality", "--scored"), ("calibrate", "--documents")):
        result = hotprefix(command, folder, "--quick", option, "9")
        assert result.exit_code == 2
        assert "it has sizes of its own" in result.output
    for strategy, words in (("windows", "is no strategy"), ("dynamic", "it keeps every token")):
        with pytest.raises(InvalidRequest, match=words):
            hotprefix("quality", folder, *SMALL, "--strategy", strategy, "--no-plots")
    with pytest.raises(InvalidRequest, match=r"--codec int3: there is no codec"):
        hotprefix("quality", folder, *SMALL, "--codec", "int3", "--no-plots")
    with pytest.raises(HotprefixError, match="ask for fewer or shorter"):
        hotprefix("quality", folder, "--documents", "900", "--prefix", "1536", "--no-plots")


def test_an_interruption_keeps_what_was_measured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of the second document."""
    treat, calls = Bench.treat, []

    def interrupted(self: Bench, *arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        treat(self, *arguments)

    monkeypatch.setattr(Bench, "treat", interrupted)
    options = ("--codec", "int8", "--precision", "none", "--no-plots", "--out", str(folder / "half"))
    result = hotprefix("quality", folder, *SMALL, *options)
    assert result.exit_code == 130
    assert "What was measured until now is kept" in result.stderr
    card = json.loads((folder / "half" / "quality.json").read_text(encoding="utf-8"))
    lines = {line["name"]: line for line in card["lines"]}
    assert lines["int8"]["summary"]["documents"] == 1
    assert {verdict["is_met"] for verdict in card["verdicts"]} == {None}
