"""`--kv-precision layered-…`, `--kv-16bit-layers` and `--rope-scaling` reach the engine, and are shown."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator

import pytest
from prometheus_client import generate_latest
from rich.console import Console
from typer.testing import CliRunner

from hotprefix.api.probes import model_object
from hotprefix.app import serve as serve_module
from hotprefix.app.cli import build_app
from hotprefix.app.serve import announce
from hotprefix.app.settings import KvPrecision, ServeSettings
from hotprefix.app.wiring import Grants, engine_settings, new_metrics, running_engine, served_model, texts
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.rope import RopeKind
from hotprefix.models.rope_wish import RopeWish

GRANTS = Grants((), b"secret")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ServeSettings]]:
    found: list[ServeSettings] = []
    monkeypatch.setattr(serve_module, "serve", lambda settings, *_, **__: found.append(settings))
    yield found


def test_the_options_arrive(asked: list[ServeSettings]) -> None:
    line = "serve --kv-precision layered-u4 --kv-16bit-layers 5 --rope-scaling yarn:4"
    result = CliRunner().invoke(build_app(), shlex.split(line))
    assert result.exit_code == 0, result.output
    (settings,) = asked
    assert settings.kv_precision is KvPrecision.LAYERED_U4
    assert settings.rope_scaling == RopeWish(RopeKind.YARN, 4.0)
    engine = engine_settings(settings, GRANTS)
    assert (engine.kv_precision, engine.kv_16bit_layers) == ("layered-u4", 5)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--rope-scaling yarn", "KIND:FACTOR"),
        ("--rope-scaling yarn:0.5", "is no factor"),
        ("--kv-16bit-layers 0", "kv-16bit-layers"),
    ],
)
def test_bad_options_are_named(asked: list[ServeSettings], line: str, says: str) -> None:
    result = CliRunner().invoke(build_app(), ["serve", *shlex.split(line)])
    assert result.exit_code == 2
    assert says in result.output
    assert asked == []


def test_what_is_kept_is_told_everywhere(tiny_model: ModelManifest) -> None:
    settings = ServeSettings(kv_arena=1 << 20, kv_precision=KvPrecision.LAYERED_U8, kv_16bit_layers=1)
    known = texts(tiny_model)
    model = served_model(tiny_model, known.tokenizer, settings)
    metrics = new_metrics(model)
    with running_engine(tiny_model, model, known.answers, settings, metrics, GRANTS) as engine:
        kept = model_object(engine.model, engine.model.name)
        out = io.StringIO()
        announce(engine.model, settings, "http://x", Console(file=out, width=200))
    # One head of 64 elements: a layer of 16 bits, and one of 8 with scale and zero point in 32 bits
    # each, for a token's values and for a block's key channels.
    assert kept["kv_bytes_per_token"] == 2 * 64 * 2 + (64 + 8) + 64 * (32 + 8) / 32
    sixteen, _, eight = kept["kv_precision"].partition("+")
    assert sixteen in ("bf16", "f16")
    assert eight == "u8"
    assert f"layered-u8 ({sixteen}+u8, 408 bytes a token)" in out.getvalue()
    shown = generate_latest(metrics.registry).decode()
    assert f'hotprefix_kv_bytes_per_token{{precision="{sixteen}+u8"}} 408.0' in shown
