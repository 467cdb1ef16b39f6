"""Int8 runs a model only where its scores stay within the tolerance, and then says so in the revision."""

import logging
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from ragtide.evaluators.encoder import load_encoder, revision_of
from ragtide.evaluators.encoder.windows import WindowedEncoder
from ragtide.evaluators.models import load
from ragtide.evaluators.models import revision_of as model_revision_of
from ragtide.evaluators.runtime.int8 import asks, is_within_tolerance, similarities
from ragtide.evaluators.runtime.int8_sample import PAIRS, TEXTS
from ragtide.evaluators.runtime.nodes import Nodes, Shape, quantize
from ragtide.evaluators.runtime.weights import Weights
from ragtide.evaluators.settings import PACKAGED_MODEL, EncoderSettings, EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import ModelRef, Need, Vectors
from tests.evaluators.models.tiny import LABELS, classifier

REF = ModelRef(Need.NLI, "tiny", LABELS)
LOOSE, STRICT = 2.0, 1e-6  # more than any score, less than any rounding


@cache
def encoder(tolerance: float | None) -> WindowedEncoder:
    return load_encoder(EncoderSettings(model=PACKAGED_MODEL, backend="onnx", int8_tolerance=tolerance))


@cache
def folder() -> Path:
    return classifier(Path(mkdtemp()) / "bert", "bert")


def chosen(tolerance: float | None, backend: str = "auto") -> EvaluatorSettings:
    own = ModelSettings.model_validate({"source": str(folder()), "int8_tolerance": tolerance, "backend": backend})
    return EvaluatorSettings(models={"tiny": own})


def test_a_weight_is_off_by_half_a_step_at_most() -> None:
    weight = np.random.default_rng(0).normal(0, 0.3, (7, 40)).astype(np.float32)
    weight[3] = 0
    given = quantize(weight)
    assert given.whole.dtype == np.int8
    assert given.whole.shape == (40, 7)
    assert np.abs(given.whole).max() == 127
    off = np.abs(given.whole.T * given.scale[:, None] - weight)
    assert np.all(off <= given.scale[:, None] / 2 + 1e-7)


def test_within_is_about_the_worst_score_and_no_number_is_never_within() -> None:
    exact = np.array([[0.5, 0.25], [np.nan, np.nan]], np.float32)
    near = np.array([[0.5, 0.375], [np.nan, np.nan]], np.float32)
    assert is_within_tolerance("m", 0.125, exact, near)
    assert not is_within_tolerance("m", 0.124, exact, near)
    assert not is_within_tolerance("m", 1.0, exact, np.full_like(exact, np.nan))


@pytest.mark.onnx
class TestEncoder:
    def test_within_the_tolerance_it_runs_and_its_revision_tells(self) -> None:
        exact, int8 = encoder(None), encoder(LOOSE)
        assert int8.revision == f"{exact.revision}+int8~{LOOSE:g}"
        off = np.abs(similarities(int8.encode(TEXTS)) - similarities(exact.encode(TEXTS))).max()
        assert 1e-4 < off <= LOOSE
        assert revision_of(EncoderSettings(model=PACKAGED_MODEL, int8_tolerance=LOOSE)) == int8.revision

    def test_beyond_it_float32_runs_and_the_log_says_by_how_much(self, caplog: pytest.LogCaptureFixture) -> None:
        strict = load_encoder(EncoderSettings(model=PACKAGED_MODEL, backend="onnx", int8_tolerance=STRICT))
        assert strict.revision == f"{encoder(None).revision}+int8~{STRICT:g}"
        np.testing.assert_array_equal(strict.encode(TEXTS), encoder(None).encode(TEXTS))
        assert "runs in float32: its int8 scores of a sample differ by at most 0.0" in caplog.text

    def test_a_texts_vector_does_not_depend_on_its_neighbours(self) -> None:
        """ONNX Runtime's own dynamic quantisation has one scale for a batch, and moves vectors by 0.04 so."""
        whole = encoder(LOOSE).encode(TEXTS)
        alone = np.concatenate([encoder(LOOSE).encode([text]) for text in TEXTS])
        np.testing.assert_allclose(alone, whole, rtol=0, atol=2e-6)

    def test_its_scores_are_nearer_than_those_of_onnxruntimes_own_tool(self, tmp_path: Path) -> None:
        import onnx
        from onnxruntime import InferenceSession
        from onnxruntime.quantization import QuantType, quantize_dynamic

        rng = np.random.default_rng(1)
        weight = rng.normal(0, 0.1, (64, 96)).astype(np.float32)
        x = rng.normal(0, 1, (50, 64)).astype(np.float32) * rng.lognormal(0, 1, (50, 1)).astype(np.float32)
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
            "product",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [50, 64])],
            [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [50, 96])],
            [onnx.numpy_helper.from_array(weight, "w")],
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
        onnx.save(model, tmp_path / "float.onnx")
        quantize_dynamic(tmp_path / "float.onnx", tmp_path / "int8.onnx", per_channel=True, weight_type=QuantType.QInt8)
        [theirs] = InferenceSession(tmp_path / "int8.onnx").run(None, {"x": x})
        [ours] = _product(x, weight, tmp_path / "weights.safetensors")
        assert np.abs(ours - x @ weight).max() < np.abs(theirs - x @ weight).max()
        assert np.abs(ours - x @ weight).max() < 0.02 * np.abs(x @ weight).max()


def _product(x: Vectors, weight: Vectors, file: Path) -> list[Vectors]:
    """x W by the graph's int8 layers, by way of a file."""
    from onnxruntime import InferenceSession, OrtValue, SessionOptions
    from safetensors.numpy import save_file

    held = {"layer.weight": np.ascontiguousarray(weight.T), "layer.bias": np.zeros(weight.shape[1], np.float32)}
    save_file(held, file)
    nodes = Nodes(Weights(file), int8=True)
    inputs: dict[str, tuple[type[np.generic], Shape]] = {"x": (np.float32, ("rows", weight.shape[0]))}
    model = nodes.model(inputs, nodes.linear("x", "layer"), "y", ("rows", weight.shape[1]))
    options = SessionOptions()
    values = {name: OrtValue.ortvalue_from_numpy(tensor) for name, tensor in nodes.tensors.items()}
    options.add_external_initializers(list(values), list(values.values()))
    given: list[Vectors] = InferenceSession(model, options).run(None, {"x": x})
    return given


@pytest.mark.onnx
@pytest.mark.models
class TestClassifier:
    def test_within_the_tolerance_it_runs_and_its_revision_tells(self) -> None:
        exact, int8 = load(REF, chosen(None, "onnx")), load(REF, chosen(LOOSE))
        assert int8.revision == f"{exact.revision}+int8~{LOOSE:g}" == model_revision_of(REF, chosen(LOOSE))
        off = np.nanmax(np.abs(int8.answer(PAIRS) - exact.answer(PAIRS)))  # NaN: a pair too long for it
        assert 1e-5 < off <= LOOSE

    def test_beyond_it_float32_runs(self, caplog: pytest.LogCaptureFixture) -> None:
        exact, strict = load(REF, chosen(None, "onnx")), load(REF, chosen(STRICT))
        assert strict.revision == f"{exact.revision}+int8~{STRICT:g}" == model_revision_of(REF, chosen(STRICT))
        np.testing.assert_allclose(strict.answer(PAIRS), exact.answer(PAIRS), rtol=0, atol=1e-5)
        assert "runs in float32" in caplog.text

    def test_where_torch_alone_runs_it_the_log_says_why_there_is_no_int8(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING):
            model = load(REF, chosen(LOOSE, "torch"))
        assert model.revision == load(REF, chosen(LOOSE)).revision
        assert "int8 needs the backend onnx" in caplog.text

    def test_a_model_of_pairs_is_tried_on_pairs_alone(self) -> None:
        assert {len(ask) for ask in asks(pairs_alone=True)} == {2}
        assert {len(ask) for ask in asks(pairs_alone=False)} == {1, 2}
