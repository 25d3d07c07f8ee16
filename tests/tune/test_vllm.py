"""Launch lines for vLLM: known models with numbers worked out by hand, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from hotprefix.base.errors import BrokenModelFile, UnknownModel, UnsupportedModel
from hotprefix.tune.decision import GIB
from hotprefix.tune.errors import DoesNotFit
from hotprefix.tune.vllm.flags import FLAGS, GONE
from hotprefix.tune.vllm.hf_config import read_hf_model
from hotprefix.tune.vllm.known_models import KNOWN
from hotprefix.tune.vllm.launch import Gpus, Launch, LaunchPlanner
from hotprefix.tune.vllm.parameters import parameters
from hotprefix.tune.vllm.shape import HfModel
from hotprefix.tune.wish import Goal

PUBLISHED = {
    "Qwen/Qwen2.5-0.5B-Instruct": 494_032_768,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen2.5-14B-Instruct": 14_770_033_664,
    "Qwen/Qwen2.5-32B-Instruct": 32_763_876_352,
    "Qwen/Qwen2.5-72B-Instruct": 72_706_203_648,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
    "meta-llama/Meta-Llama-3-70B-Instruct": 70_553_706_496,
}
"""Elements in their safetensors files, as the model hub tells them."""
LLAMA = "meta-llama/Meta-Llama-3-70B-Instruct"


def launch(
    model: HfModel,
    gpus: Gpus,
    goal: Goal = Goal.BALANCED,
    context: int | None = None,
    concurrency: int = 16,
) -> Launch:
    return LaunchPlanner(model, gpus, goal, context, concurrency).plan()


def from_config(folder: Path, config: dict[str, Any]) -> HfModel:
    """As if it lay in a file."""
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return read_hf_model(str(path))


def options(found: Launch) -> dict[str, str | None]:
    """As a shell reads the command."""
    words = shlex.split(found.command.replace("\\\n", " "))
    assert words[:2] == ["vllm", "serve"]
    pairs = re.findall(r"(--[\w-]+)(?: ([^-]\S*))?", " ".join(words[3:]))
    return {name: value or None for name, value in pairs}


def test_models_of_32_bits_are_counted_as_vllm_loads_them(tmp_path: Path) -> None:
    config = KNOWN["Qwen/Qwen2.5-0.5B-Instruct"]
    half = from_config(tmp_path, config)
    whole = from_config(tmp_path, config | {"torch_dtype": "float32"})
    assert (whole.weights, whole.bytes_per_element) == (half.weights, 2.0)
    (tmp_path / "model.safetensors").write_bytes(bytes(100))
    assert from_config(tmp_path, config | {"torch_dtype": "float32"}).weights == 50
    assert from_config(tmp_path, config).weights == 100


@pytest.mark.parametrize("name", KNOWN)
def test_parameters_are_those_that_were_published(name: str) -> None:
    assert parameters(read_hf_model(name)) == PUBLISHED[name]


def test_qwen_7b_on_one_gpu() -> None:
    found = launch(read_hf_model("Qwen2.5-7B-Instruct"), Gpus(80 * GIB), context=8192)
    layout = found.layout
    assert layout.usable == 77_309_411_328  # 80 GiB × 0.9
    assert layout.weights == 15_231_233_024  # 7,615,616,512 × 2
    # 4,096 × 2 × (6 × 3,584 + 2 × 18,944) + 16 × 152,064 × 4
    assert layout.activations == 486_539_264 + 9_732_096
    assert layout.kv == 77_309_411_328 - 15_231_233_024 - 496_271_360 - 1_610_612_736
    assert layout.token_bytes == 57_344  # 2 × 28 × 4 × 128 × 2
    assert layout.tokens == 65_363 * 16  # 59,971,294,208 ÷ (57,344 × 16)
    assert options(found) == {
        "--tensor-parallel-size": "1",
        "--max-model-len": "8192",
        "--block-size": "16",
        "--gpu-memory-utilization": "0.9",
        "--kv-cache-dtype": "auto",
        "--max-num-batched-tokens": "4096",
        "--max-num-seqs": "16",
        "--enable-prefix-caching": None,
        "--kv-offloading-size": "16",
        "--kv-offloading-backend": "native",
    }


def test_llama_70b_on_two_gpus() -> None:
    found = launch(read_hf_model(LLAMA), Gpus(80 * GIB, 2))
    layout = found.layout
    assert layout.weights == 70_553_706_496  # half of 70,553,706,496 × 2
    # 4,096 × 2 × (6 × 8,192 + 2 × 14,336) + 16 × 128,256 × 4
    assert layout.activations == 637_534_208 + 8_208_384
    assert layout.kv == 77_309_411_328 - 70_553_706_496 - 645_742_592 - 1_610_612_736
    # In 16 bits 163,840 bytes a token: 27,456 tokens, not enough for 16 × 8,192, so fp8.
    assert layout.token_bytes == 81_920  # 2 × 80 × 4 × 128 × 1
    assert layout.tokens == 3_432 * 16
    chosen = options(found)
    assert (chosen["--tensor-parallel-size"], chosen["--kv-cache-dtype"]) == ("2", "fp8")
    assert chosen["--kv-offloading-size"] == "32"
    assert any("27,456" in option.why for option in found.options)
    assert any("6 run at full length" in warning for warning in found.warnings)


def test_llama_70b_on_one_gpu_is_refused_with_the_numbers() -> None:
    with pytest.raises(DoesNotFit) as told:
        launch(read_hf_model(LLAMA), Gpus(80 * GIB))
    for part in ("1 x 80.0 GiB", "72.0 GiB", "131.4 GiB", "--gpus 2"):
        assert part in str(told.value)


def test_one_request_that_does_not_fit_is_refused() -> None:
    model = read_hf_model("Qwen2.5-7B-Instruct")
    with pytest.raises(DoesNotFit, match="even with keys and values in fp8") as told:
        launch(model, Gpus(int(18.6 * GIB)), context=32_768, concurrency=1)
    assert "28,672 bytes" in str(told.value)


@pytest.mark.parametrize(
    ("gpus", "context", "says"),
    [(3, None, "2 can"), (8, None, "4 can"), (1, 40_000, "made for 32,768 tokens")],
)
def test_what_cannot_be_is_refused(gpus: int, context: int | None, says: str) -> None:
    with pytest.raises(DoesNotFit, match=re.escape(says)):
        launch(read_hf_model("Qwen2.5-7B-Instruct"), Gpus(80 * GIB, gpus), context=context)


@pytest.mark.parametrize(
    ("goal", "batched", "cache"),
    [(Goal.BALANCED, "4096", "auto"), (Goal.LATENCY, "2048", "auto"), (Goal.MEMORY, "2048", "fp8")],
)
def test_wishes(goal: Goal, batched: str, cache: str) -> None:
    found = options(launch(read_hf_model("Qwen/Qwen3-8B"), Gpus(80 * GIB, offload=0), goal, 4096))
    assert (found["--max-num-batched-tokens"], found["--kv-cache-dtype"]) == (batched, cache)
    assert "--kv-offloading-size" not in found


def test_more_gpus_than_heads_keep_copies(tmp_path: Path) -> None:
    config = KNOWN["Qwen/Qwen2.5-7B-Instruct"] | {"num_attention_heads": 32, "head_dim": 112}
    found = launch(from_config(tmp_path, config), Gpus(80 * GIB, 8), context=4096)
    assert found.layout.token_bytes == 2 * 28 * 1 * 112 * 2
    assert any("some keep copies" in warning for warning in found.warnings)


def test_every_flag_is_in_the_table_and_explained() -> None:
    found = launch(read_hf_model(LLAMA), Gpus(80 * GIB, 2))
    assert set(options(found)) == {flag.name for flag in FLAGS}
    for flag in FLAGS:
        assert re.search(rf"^# {flag.name} .+: .+", found.script, re.MULTILINE), flag
    assert not set(GONE) & set(options(found))
    comments = [line for line in found.script.splitlines() if line.startswith("#")]
    assert found.script == "\n".join([*comments, found.command, ""])


def test_weights_come_from_the_files_where_they_are(tmp_path: Path) -> None:
    config = dict(KNOWN["Qwen/Qwen3-8B"])
    estimated = from_config(tmp_path, config)
    assert estimated.weights == 2 * PUBLISHED["Qwen/Qwen3-8B"]
    assert "8.19 billion parameters" in estimated.weights_from
    (tmp_path / "model.safetensors").write_bytes(bytes(100))
    assert from_config(tmp_path, config).weights == 100
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 12345}}))
    found = read_hf_model(str(tmp_path))
    assert (found.weights, found.weights_from) == (12345, "model.safetensors.index.json")
    index.write_text("{}")
    with pytest.raises(BrokenModelFile, match="how large"):
        read_hf_model(str(tmp_path))


def test_a_model_in_the_local_hub_cache_is_found_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "models--some--model" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(KNOWN["Qwen/Qwen3-8B"]))
    assert read_hf_model("some/model", tmp_path).name == "some/model"
    with pytest.raises(UnknownModel, match="Qwen/Qwen3-8B"):
        read_hf_model("other/model", tmp_path)


@pytest.mark.parametrize(
    ("quantisation", "bits"), [({"quant_method": "fp8"}, 8), ({"quant_method": "awq", "bits": 4}, 4.5)]
)
def test_quantised_weights(tmp_path: Path, quantisation: dict[str, Any], bits: float) -> None:
    config = dict(KNOWN["Qwen/Qwen3-8B"])
    embeddings = 2 * 151_936 * 4096
    body = PUBLISHED["Qwen/Qwen3-8B"] - embeddings
    found = from_config(tmp_path, config | {"quantization_config": quantisation})
    assert found.weights == int(body * bits / 8 + embeddings * 2)


def test_experts_count_all(tmp_path: Path) -> None:
    # Qwen3-30B-A3B: 30.5 billion parameters.
    config = {
        "model_type": "qwen3_moe",
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "torch_dtype": "bfloat16",
    }
    assert parameters(from_config(tmp_path, config)) == 30_532_122_624


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"kv_lora_rank": 512}, UnsupportedModel, "kv_lora_rank"),
        ({"torch_dtype": "int3"}, UnsupportedModel, "int3"),
        ({"hidden_size": 0}, BrokenModelFile, "hidden_size"),
        ({"num_hidden_layers": None}, BrokenModelFile, "num_hidden_layers"),
        ({"quantization_config": {"quant_method": "new"}}, UnsupportedModel, "index.json"),
    ],
)
def test_configs_that_say_too_little(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        from_config(tmp_path, dict(KNOWN["Qwen/Qwen3-8B"]) | change)


@pytest.mark.parametrize("text", ["[]", "nonsense", "\udcff"])
def test_files_that_are_no_configs(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BrokenModelFile, match=r"config\.json"):
        read_hf_model(str(tmp_path))
