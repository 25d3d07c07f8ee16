"""The shipped profiles say what the vendors document; broken files are told key by key."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from hotprefix.profiles.errors import BrokenProfile, UnknownProfile
from hotprefix.profiles.loader import load_profiles, read_profile
from hotprefix.profiles.profile import Profile, Readable, Surplus, ToolMarkers
from hotprefix.profiles.schema import json_schema

ROOT = Path(__file__).resolve().parents[2]
GOOD = """
vendor = "mine"
dated = 2031-05-06
sources = ["our wiki"]

[implicit]
minimum = 64

[explicit]
minimum = 512
default_ttl = "10m"
max_markers = 2
surplus = "reject"
lookback = 5
lookback_counts_marker = true
readable = "after_response"
tool_markers = "cached"
ttls = { "10m" = 600 }

[[prices]]
model = "*"
since = 2031-01-01
currency = "EUR"
input_per_million = 1
output_per_million = 2.5
read_implicit = 0.5
read_explicit = 0.25
write = { "10m" = 1.5 }
"""


def write(folder: Path, text: str, name: str = "mine") -> Path:
    file = folder / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_least_is_over_all_modes_and_models(tmp_path: Path) -> None:
    assert read_profile(write(tmp_path, GOOD)).least == 64
    text = GOOD.replace("[explicit]", "[explicit]\nmodel_minimums = { small = 32 }")
    assert read_profile(write(tmp_path, text)).least == 32
    assert replace(shipped("hotprefix"), implicit=None, explicit=None, session=None).least is None
    assert {name: shipped(name).least for name in ("hotprefix", "dashscope-2026-03", "openai-2026-09")} == {
        "hotprefix": 1,
        "dashscope-2026-03": 256,
        "openai-2026-09": 1024,
    }


def changed(before: str, after: str) -> str:
    assert before in GOOD
    return GOOD.replace(before, after)


def shipped(name: str) -> Profile:
    return load_profiles().get(name)


def test_the_default_follows_dashscope_of_march_2026() -> None:
    profile = load_profiles().default
    assert profile.name == "dashscope-2026-03"
    assert profile.implicit is not None
    assert profile.implicit.minimum == 256
    explicit, session = profile.explicit, profile.session
    assert explicit is not None and session is not None
    assert (explicit.minimum, explicit.ttls, explicit.default_ttl) == (1024, {"5m": 300}, "5m")
    assert (explicit.max_markers, explicit.surplus) == (4, Surplus.KEEP_LAST)
    assert (explicit.lookback, explicit.lookback_counts_marker) == (20, False)
    assert explicit.readable is Readable.AFTER_RESPONSE
    assert explicit.tool_markers is ToolMarkers.IGNORED
    assert (session.minimum, session.ttl_seconds, session.retention_days) == (1024, 300, 7)
    assert profile.explicit_models == ()


def test_every_dashscope_row_has_the_documented_ratios() -> None:
    for name in ("dashscope-2026-03", "dashscope-2026-10"):
        for row in shipped(name).prices:
            assert (row.read_implicit, row.read_explicit, row.read_session) == (0.2, 0.1, 0.1)
            assert row.write == {"5m": 1.25}


def test_the_later_dashscope_profile_asks_for_1024_tokens() -> None:
    implicit = shipped("dashscope-2026-10").implicit
    assert implicit is not None
    assert (implicit.minimum, implicit.quantum) == (1024, 128)


def test_openai_is_automatic_in_steps_of_128() -> None:
    profile = shipped("openai-2026-09")
    assert profile.implicit is not None
    assert (profile.implicit.minimum, profile.implicit.quantum) == (1024, 128)
    assert profile.explicit is None
    assert profile.session is None


def test_anthropic_has_markers_only() -> None:
    profile = shipped("anthropic-2026-09")
    assert profile.implicit is None
    assert profile.session is None
    explicit = profile.explicit
    assert explicit is not None
    assert explicit.ttls == {"5m": 300, "1h": 3600}
    assert (explicit.max_markers, explicit.surplus) == (4, Surplus.REJECT)
    assert (explicit.lookback, explicit.lookback_counts_marker) == (20, True)
    assert explicit.readable is Readable.AT_FIRST_OUTPUT
    assert explicit.tool_markers is ToolMarkers.CACHED
    assert explicit.longer_ttl_first
    assert explicit.automatic_marker
    assert all(row.write == {"5m": 1.25, "1h": 2.0} for row in profile.prices)


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-opus-5", 512),
        ("claude-opus-4-7", 2048),
        ("claude-haiku-4-5-20251001", 4096),
        ("claude-sonnet-4-6", 1024),
        ("smollm2-135m-instruct", 1024),
    ],
)
def test_a_model_may_have_a_minimum_of_its_own(model: str, minimum: int) -> None:
    explicit = shipped("anthropic-2026-09").explicit
    assert explicit is not None
    assert explicit.minimum_for(model) == minimum


def test_every_number_in_a_shipped_file_names_its_source() -> None:
    """Rules cite a source on their own line; price rows cite one in the comment above the table."""
    files = sorted((ROOT / "src" / "hotprefix" / "profiles" / "data").glob("*-20*.toml"))
    assert len(files) == 4
    for file in files:
        rules, _, _ = file.read_text(encoding="utf-8").partition("[[prices]]")
        lines = [line for line in rules.splitlines() if not line.startswith("#")]
        cited = False
        for line in lines:
            cited = "[1]" in line if line.startswith("[") else cited
            value = line.partition("#")[0].partition("=")[2].strip()
            if value.isdigit():
                assert cited or "# [" in line, f"{file.name}: {line}"
        assert "input price" in rules or "ratio by model family" in rules


def test_an_operators_folder_adds_a_profile(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    book = load_profiles(tmp_path)
    assert "mine" in book.names()
    assert book.default.name == "dashscope-2026-03"
    profile = book.get("mine")
    assert profile.dated == date(2031, 5, 6)
    assert profile.prices[0].input_per_million == 1.0
    assert profile.prices[0].read_session == 1.0, "no session cache there, so no discount either"


def test_an_operators_file_replaces_the_shipped_one(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "dashscope-2026-03")
    assert load_profiles(tmp_path).default.vendor == "mine"
    assert load_profiles().default.vendor == "dashscope"


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownProfile, match=r"'dash'.*anthropic-2026-09, dashscope-2026-03"):
        load_profiles().get("dash")


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(BrokenProfile, match="is no folder"):
        load_profiles(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (changed("minimum = 64", ""), "implicit.minimum is missing"),
        (changed("minimum = 64", 'minimum = "64"'), r"implicit.minimum is '64'\. .*integer"),
        (changed("minimum = 64", "minimum = 0"), r"implicit.minimum is 0\. .*greater than or equal to 1"),
        (changed("minimum = 64", "minimun = 64"), "minimun is no known key. Allowed: minimum, model_min"),
        (
            changed("read_implicit = 0.5", "read = 0.5"),
            r"prices\[0\].read is no known key. Allowed: currency",
        ),
        (changed("read_implicit = 0.5", ""), r"prices\[0\].read_implicit is missing"),
        (changed('"reject"', '"drop"'), "explicit.surplus is 'drop'.*'keep_last' or 'reject'"),
        (changed('default_ttl = "10m"', 'default_ttl = "5m"'), "explicit.default_ttl is '5m'.*has '10m'"),
        (changed('write = { "10m" = 1.5 }', ""), r"prices\[0\].write needs a ratio for '10m'"),
        (changed('{ "10m" = 1.5 }', '{ "10m" = 1.5, "1h" = 2.0 }'), r"prices\[0\].write has '1h'"),
        (changed('model = "*"', 'model = "qwen*"'), r"prices needs a row with model = '\*'"),
        (changed('model = "*"', 'model = "q*n"'), r"prices\[0\].model is 'q\*n'"),
        (
            changed("input_per_million = 1", "input_per_million = nan"),
            r"prices\[0\].input_per_million is nan",
        ),
        (changed("input_per_million = 1", "input_per_million = -1"), "greater than or equal to 0"),
        (changed('"EUR"', '"euro"'), r"prices\[0\].currency is 'euro'"),
        (GOOD + GOOD[GOOD.index("[[prices]]") :], r"prices\[1\] repeats '\*' since 2031-01-01"),
        ("vendor = ", "is no TOML"),
        ("", "prices is missing"),
    ],
)
def test_a_broken_file_is_told_by_file_and_key(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BrokenProfile, match=told) as caught:
        read_profile(write(tmp_path, text))
    assert "mine.toml" in str(caught.value)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(BrokenProfile, match="is no TOML"):
        load_profiles(tmp_path)


def test_the_json_schema_in_the_docs_is_the_one_in_use() -> None:
    """Renew it with `python -m hotprefix.profiles.schema > docs/profile.schema.json`."""
    text = (ROOT / "docs" / "profile.schema.json").read_text(encoding="utf-8")
    assert json.loads(text) == json_schema()
