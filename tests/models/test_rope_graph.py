"""A graph that does not turn positions as its config says is put right or refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest

from hotprefix.base.errors import BrokenModelFile, UnsupportedModel
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.rope import Rope, RopeKind, RopeScaling
from hotprefix.models.rope_graph import rotary_nodes, settle_rope
from hotprefix.models.store import ModelStore

PLAIN = Rope(10_000.0, 64, 2048, 2048)
YARN = replace(PLAIN, scaling=RopeScaling(RopeKind.YARN, 4.0, attention_factor=1.25))
LINEAR = replace(PLAIN, scaling=RopeScaling(RopeKind.LINEAR, 2.0))


@pytest.fixture
def core() -> ov.Core:
    return ov.Core()


@pytest.fixture
def graph(core: ov.Core, tiny_model: ModelManifest) -> ov.Model:
    return core.read_model(tiny_model.graph).clone()


def computed(core: ov.Core, model: ov.Model) -> tuple[np.ndarray, float]:
    nodes = rotary_nodes(core, model)
    assert nodes is not None
    (found,) = nodes
    return found.frequencies, found.attention_factor


def put_before_sine(model: ov.Model, change: ov.Node) -> None:
    """Have all sines and cosines take `change(angles)`."""
    (sine,) = (node for node in model.get_ordered_ops() if node.get_type_name() == "Sin")
    angles = sine.input_value(0)
    uses = list(angles.get_target_inputs())
    changed = change(angles)
    for use in uses:
        use.replace_source_output(changed.output(0))


def round_table(model: ov.Model) -> None:
    """What compression to 16 bits leaves of the table."""
    table = next(
        node
        for node in model.get_ordered_ops()
        if node.get_type_name() == "Constant" and [*node.shape] == [1, 32, 1]
    )
    uses = list(table.output(0).get_target_inputs())
    rounded = op.convert(op.constant(table.get_data().astype(np.float16)), "f32")
    for use in uses:
        use.replace_source_output(rounded.output(0))


def test_a_right_graph_is_left_alone(core: ov.Core, graph: ov.Model) -> None:
    before = len(graph.get_ordered_ops())
    assert not settle_rope(core, graph, [PLAIN], "m")
    assert not settle_rope(core, graph, [], "m")
    assert len(graph.get_ordered_ops()) == before
    frequencies, factor = computed(core, graph)
    np.testing.assert_allclose(frequencies, 10_000.0 ** (-np.arange(32) / 32), rtol=1e-6)
    assert factor == 1.0


@pytest.mark.parametrize("rope", [YARN, LINEAR], ids=["yarn", "linear"])
def test_scaling_that_the_graph_lacks_is_put_in(core: ov.Core, graph: ov.Model, rope: Rope) -> None:
    assert settle_rope(core, graph, [rope], "m")
    frequencies, factor = computed(core, graph)
    np.testing.assert_allclose(frequencies, rope.frequencies(), rtol=1e-6)
    assert factor == rope.attention_factor
    assert not settle_rope(core, graph, [rope], "m"), "it was put in already"


def test_a_rounded_table_gets_its_digits_back(core: ov.Core, graph: ov.Model) -> None:
    round_table(graph)
    assert np.abs(computed(core, graph)[0] / PLAIN.frequencies() - 1).max() > 1e-4
    assert settle_rope(core, graph, [PLAIN], "m")
    np.testing.assert_allclose(computed(core, graph)[0], PLAIN.frequencies(), rtol=1e-6)


@pytest.mark.parametrize("wrong", [replace(PLAIN, base=500_000.0), replace(PLAIN, dimensions=32)])
def test_other_frequencies_are_refused(core: ov.Core, graph: ov.Model, wrong: Rope) -> None:
    with pytest.raises(
        UnsupportedModel, match=r"^m: the graph's rotary embedding is not what .* config says"
    ):
        settle_rope(core, graph, [wrong], "m")


def test_another_scaling_in_the_graph_is_refused(core: ov.Core, graph: ov.Model) -> None:
    settle_rope(core, graph, [LINEAR], "m")
    for rope in (PLAIN, YARN, replace(LINEAR, scaling=RopeScaling(RopeKind.LINEAR, 3.0))):
        with pytest.raises(UnsupportedModel, match="is not what the model's config says"):
            settle_rope(core, graph, [rope], "m")


def test_another_attention_factor_is_refused(core: ov.Core, graph: ov.Model) -> None:
    settle_rope(core, graph, [YARN], "m")
    other = replace(YARN, scaling=RopeScaling(RopeKind.YARN, 4.0, attention_factor=1.5))
    with pytest.raises(UnsupportedModel, match=r"factor 1\.25; the config says .* factor 1\.5"):
        settle_rope(core, graph, [other], "m")


def test_a_rounded_attention_factor_gets_its_digits_back(core: ov.Core, graph: ov.Model) -> None:
    """As a converter writes it that keeps constants in 16 bits."""
    factor = 0.1 * np.log(4.0) + 1
    rounded = float(np.float16(factor))
    assert abs(rounded / factor - 1) > 1e-5
    right, stored = (
        replace(PLAIN, scaling=RopeScaling(RopeKind.YARN, 4.0, attention_factor=one))
        for one in (factor, rounded)
    )
    assert settle_rope(core, graph, [stored], "m")
    assert settle_rope(core, graph, [right], "m")
    assert computed(core, graph)[1] == pytest.approx(factor, rel=1e-6)


def test_positions_that_the_graph_divides_itself_are_seen(core: ov.Core, graph: ov.Model) -> None:
    """Linear scaling may sit in the positions, with plain constants: what counts is what comes out."""
    put_before_sine(graph, lambda angles: op.divide(angles, op.constant(np.float32(2))))
    assert not settle_rope(core, graph, [LINEAR], "m")
    with pytest.raises(UnsupportedModel, match="is not what"):
        settle_rope(core, graph, [PLAIN], "m")


def test_frequencies_that_change_with_the_length_are_refused(core: ov.Core, graph: ov.Model) -> None:
    put_before_sine(graph, lambda angles: op.multiply(angles, op.sqrt(op.absolute(angles))))
    assert rotary_nodes(core, graph) is None
    with pytest.raises(UnsupportedModel, match="can't be found to check it"):
        settle_rope(core, graph, [YARN], "m")


def test_each_of_several_embeddings_may_be_any_of_the_stated(core: ov.Core, graph: ov.Model) -> None:
    assert not settle_rope(core, graph, [replace(PLAIN, base=1e6), PLAIN], "m")
    with pytest.raises(UnsupportedModel, match=" or "):
        settle_rope(core, graph, [LINEAR, YARN], "m")


def as_folder(model: ModelManifest, folder: Path, config: dict[str, object]) -> Path:
    """A model folder as a user might bring it, used in place."""
    shutil.copytree(model.folder, folder)
    (folder / "hotprefix.json").unlink()
    (folder / "config.json").write_text(json.dumps(config))
    return folder


CONFIG = {"model_type": "llama", "head_dim": 64, "rope_theta": 1e4, "max_position_embeddings": 2048}


def test_folders_are_checked_when_they_are_prepared(tiny_model: ModelManifest, tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "store")
    plain = store.resolve(str(as_folder(tiny_model, tmp_path / "plain", CONFIG)))
    assert (plain.ropes, plain.context_length) == ((PLAIN,), 2048)
    scaling = {"rope_type": "yarn", "factor": 4.0}
    folder = as_folder(tiny_model, tmp_path / "yarn", CONFIG | {"rope_scaling": scaling})
    yarn = store.resolve(str(folder))
    assert yarn.context_length == 8192
    assert yarn.ropes[0].scaling is not None and yarn.ropes[0].scaling.kind is RopeKind.YARN
    assert yarn.fingerprint != plain.fingerprint, "the same graph turns otherwise: keys differ"
    assert ModelStore(tmp_path / "store").resolve("yarn") == yarn, "the record keeps it"
    with pytest.raises(BrokenModelFile, match="is not what the model's config says"):
        store.resolve(str(as_folder(tiny_model, tmp_path / "wrong", CONFIG | {"rope_theta": 5e5})))
    with pytest.raises(UnsupportedModel, match="by 'longrope'"):
        scaling = {"rope_type": "longrope", "factor": 4.0}
        store.resolve(str(as_folder(tiny_model, tmp_path / "long", CONFIG | {"rope_scaling": scaling})))
