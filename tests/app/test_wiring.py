from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hotprefix.app.settings import CachePolicy, KvPrecision, ServeSettings
from hotprefix.app.wiring import (
    Grants,
    engine_settings,
    named_caches,
    new_metrics,
    prompt_builder,
    read_grants,
    running_engine,
    served_model,
    texts,
)
from hotprefix.base.clock import SystemClock
from hotprefix.base.errors import HotprefixError
from hotprefix.engine.settings import EngineSettings
from hotprefix.models.manifest import ModelManifest
from hotprefix.modes.errors import CacheLimitReached
from hotprefix.modes.named_cache import NamedLimits
from hotprefix.profiles.loader import load_profiles
from tests.api.scripted_engine import ScriptedEngine

GRANTS = Grants((), b"secret")


def test_what_was_not_asked_for_keeps_the_engines_default() -> None:
    settings = engine_settings(ServeSettings(), GRANTS)
    default = EngineSettings()
    assert (settings.max_running, settings.prefill_chunk) == (default.max_running, default.prefill_chunk)
    chosen = engine_settings(
        ServeSettings(max_running=3, policy=CachePolicy.SLRU, kv_precision=KvPrecision.U8, kv_arena=5),
        GRANTS,
    )
    assert (chosen.max_running, chosen.policy, chosen.kv_precision, chosen.arena_bytes) == (
        3,
        "slru",
        "u8",
        5,
    )
    assert engine_settings(ServeSettings(cache=False), GRANTS).policy is None
    assert settings.secret == GRANTS.secret


def test_how_short_a_kept_text_may_be_follows_the_profile() -> None:
    profiles = load_profiles()

    def kept(settings: ServeSettings) -> int:
        return engine_settings(settings.under(profiles), GRANTS).shortest_kept

    assert kept(ServeSettings()) == 128
    assert kept(ServeSettings(profile="hotprefix")) == 1
    assert kept(ServeSettings(shortest_kept=0)) == 0
    assert kept(ServeSettings(shortest_kept=256)) == 256
    with pytest.raises(HotprefixError, match="counts text from 256 tokens on"):
        kept(ServeSettings(shortest_kept=257))
    # The Messages routes follow Anthropic's rules, whatever the others do.
    with pytest.raises(HotprefixError, match="the profile anthropic-2026-09 counts text from 512 tokens on"):
        kept(ServeSettings(profile="openai-2026-09", shortest_kept=1024))


def test_limits_of_named_caches_are_the_server_s(tmp_path: Path) -> None:
    settings = ServeSettings(named=NamedLimits(caches=0), state_dir=tmp_path)
    with (
        named_caches(ScriptedEngine(), settings, SystemClock()) as named,
        pytest.raises(CacheLimitReached, match="may hold 0 named caches"),
    ):
        asyncio.run(named.put("acme", "shop", {"text": "x"}, [1, 2, 3], 60.0))


def test_without_a_state_folder_the_secret_is_this_process_s_own(tmp_path: Path) -> None:
    first, second = (read_grants(ServeSettings()).secret for _ in range(2))
    assert len(first) == 32
    assert first != second
    kept = [read_grants(ServeSettings(state_dir=tmp_path)).secret for _ in range(2)]
    assert kept[0] == kept[1]


def test_the_served_name_makes_the_own_name_an_alias(tiny_model: ModelManifest) -> None:
    tokenizer = texts(tiny_model).tokenizer
    plain = served_model(tiny_model, tokenizer, ServeSettings())
    assert (plain.name, plain.aliases) == (tiny_model.name, ())
    named = served_model(tiny_model, tokenizer, ServeSettings(served_name="x", max_context=64))
    assert (named.name, named.aliases, named.context_length) == ("x", (tiny_model.name,), 64)


def test_raw_prompts_start_with_bos_if_the_model_wants_it(tiny_model: ModelManifest) -> None:
    known = texts(tiny_model)

    def ids(manifest: ModelManifest) -> list[int]:
        model = served_model(manifest, known.tokenizer, ServeSettings())
        return prompt_builder(manifest, model, known.answers).text("a")

    wants = replace(tiny_model, bos_id=1, add_bos=True)
    assert ids(wants) == [1, *ids(replace(wants, add_bos=False))]


def test_an_engine_is_warm_inside_and_stopped_outside(tiny_model: ModelManifest) -> None:
    settings = ServeSettings(kv_arena=8 * 1024**2, threads=1)
    known = texts(tiny_model)
    model = served_model(tiny_model, known.tokenizer, settings)
    with running_engine(
        tiny_model, model, known.answers, settings, new_metrics(model), read_grants(settings)
    ) as engine:
        assert engine.ready
    assert not engine.ready
