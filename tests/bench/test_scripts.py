"""The measuring scripts beside the package do what they claim to measure."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from hotprefix.models.manifest import ModelManifest

SCRIPTS = Path(__file__).parents[2] / "bench"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_every_script_is_in_the_readme() -> None:
    named = re.findall(r"`python bench/(\w+\.py)`", (SCRIPTS / "README.md").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(path.name for path in SCRIPTS.glob("*.py"))


def test_bookkeeping_fills_the_tree_as_far_as_it_says() -> None:
    script = load("bookkeeping")
    for full in (False, True):
        subject = script.Bookkeeping(700, "lru", full=full)
        assert len(subject.cache.tree) == 700
        assert subject.cache.pool.free == (0 if full else subject.cache.pool.size - 700)


def test_bookkeeping_of_a_full_pool_evicts_for_every_prompt() -> None:
    script = load("bookkeeping")
    subject = script.Bookkeeping(700, "adaptive", full=True)
    before = subject.cache.gauges().evicted
    for count in (1, 2, 3):
        subject.seconds(subject.ids(script.PROMPT))
        assert subject.cache.gauges().evicted - before == count * script.PROMPT // script.BLOCK


def test_bookkeeping_of_a_known_prompt_matches_it() -> None:
    script = load("bookkeeping")
    subject = script.Bookkeeping(700, "slru", full=False)
    known = subject.ids(script.PROMPT)
    subject.add(known)
    history = script.TokenHistory(subject.root, known, script.BLOCK)
    assert subject.cache.plan(history).reused >= script.PROMPT - 2


def test_bookkeeping_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load("bookkeeping")
    monkeypatch.setattr(script, "SIZES", (300, 600))
    finding = script.measure("lru", 3, Console(quiet=True))
    assert [len(series.x) for series in finding.charts[0].series] == [2, 2, 2, 2]
    assert len(finding.measures) == 9
    assert all(target.value > 0 for target in finding.targets)


@pytest.mark.model
@pytest.mark.slow
def test_exactness_tells_equal_from_different(default_model: ModelManifest) -> None:
    """Reuse of prompts is exact; of answers decoded one row at a time it is not, and that is seen."""
    script = load("exactness")
    core = script.ov.Core()
    graph = script.read_paged_model(core, default_model.graph)
    compiled = script.compile_paged_model(core, graph, "auto", None)
    settings = script.EngineSettings(arena_bytes=script.ARENA_BYTES, decode=script.DecodeMode.FAST)
    cached = script.Arm(default_model, compiled, settings)
    plain = script.Arm(default_model, compiled, script.replace(settings, policy=None))
    trials, quiet = script.Trials(5), Console(quiet=True)
    prefix = script.compare(cached, plain, script.Kind.PREFIX, trials, 3, quiet)
    assert (prefix.equal_logits, prefix.equal_tokens, prefix.largest_difference) == (3, 3, 0)
    assert prefix.reused_share > 0.3
    repeat = script.compare(cached, plain, script.Kind.REPEAT, trials, 2, quiet)
    assert (repeat.equal_logits, repeat.reused_share) == (2, 1)


def test_codecs_tells_lossless_from_lossy(tiny_model: ModelManifest) -> None:
    script = load("codecs")
    prefix = script.Prefix(tiny_model, 3 * 32)
    assert prefix.blocks.any(axis=1).all()
    trials = {
        name: script.Trial(script.build_codec(name, prefix.kv, prefix.rotary)) for name in ("raw", "int8")
    }
    signal, out = script.Signal(prefix), script.np.empty_like(prefix.blocks)
    loudness = {}
    for name, trial in trials.items():
        trial.run(prefix, out)
        loudness[name] = signal.decibels(out)
        restored = [
            prefix.arena.read(script.BlockId(prefix.count + number)) for number in range(prefix.count)
        ]
        assert b"".join(restored) == out.tobytes()
    assert loudness["raw"] == (float("inf"), float("inf"))
    assert all(30 < value < 60 for value in loudness["int8"])
    assert trials["raw"].ratio(prefix) < 1 < trials["int8"].ratio(prefix)
    found = script.finding(prefix, trials, loudness, [1.0])
    assert [measure.unit for measure in found.measures] == [*"xx", *["GB/s"] * 4, *"sss", "dB", "dB"]
    assert len(found.targets) == 3
