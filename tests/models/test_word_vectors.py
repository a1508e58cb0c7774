"""Word vectors from a file as a base: formats, sentence vectors, faults, training."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from pydantic import ValidationError
from wording import refused

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.models import reference, word_vectors
from synthbench.models.artifact import load, open_model, save_untrained
from synthbench.models.building import build_cross_encoder, build_encoder
from synthbench.models.interfaces import Encoder
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import training
from synthbench.training.cross_encoder import CrossEncoder
from synthbench.training.simcse import SimCSE

LINES = ("the 0.5 -1 2", "dog 1 0 0", "cat 0 1e1 0", "us 3 3 3", "US 4 4 4", ". 7 7 7")
WORDS = [line.split(" ")[0] for line in LINES]
MATRIX = np.array([[float(number) for number in line.split(" ")[1:]] for line in LINES], np.float32)


def written(path: Path, *lines: str | bytes, end: bytes = b"\n") -> Path:
    content = b"".join((line.encode() if isinstance(line, str) else line) + end for line in lines)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def in_a_folder(path: Path, words: list[str], matrix: "np.ndarray") -> Path:  # type: ignore[type-arg]
    """Write vectors in the form of the package of GloVe's."""
    path.mkdir()
    np.save(path / "glove_emb.npy", matrix)
    parquet.write_table(pa.table({"index": words}), path / "glove_index.parquet")
    return path


def encoder(path: Path, **fields: bool | int) -> Callable[[list[str]], list[list[float]]]:
    model = build_encoder(Pretrained.model_validate({"model": str(path), **fields}), 0, "cpu")
    return lambda texts: model.encode(texts).tolist()


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    return written(tmp_path / "glove.txt", *LINES)


def test_every_file_format_gives_the_same_vectors(tmp_path: Path) -> None:
    forms = [
        written(tmp_path / "a.txt", *LINES),
        written(tmp_path / "b.txt.gz", *LINES),
        written(tmp_path / "c.vec", "6 3", *(f"{line} " for line in LINES)),
        written(tmp_path / "d.vec.gz", "6 3", *LINES, end=b"\r\n"),
        in_a_folder(tmp_path / "e", WORDS, MATRIX),
    ]
    for path in forms:
        assert word_vectors.is_named(str(path))
        found = word_vectors.read(word_vectors.find(str(path)))
        assert list(found.words) == WORDS
        assert np.array_equal(found.matrix, MATRIX), path
        assert found.matrix.dtype == np.float32


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\n\r "), min_size=1),
        st.floats(-9, 9, width=32),
        min_size=1,
    )
)
def test_any_words_survive_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, vectors: dict[str, float]
) -> None:
    path = tmp_path_factory.mktemp("words") / "any.vec"
    written(path, f"{len(vectors)} 2", *(f"{word} {value!r} 1" for word, value in vectors.items()))
    found = word_vectors.read(path)
    assert dict(zip(found.words, found.matrix[:, 0].tolist(), strict=True)) == vectors


def test_a_word_may_hold_spaces(tmp_path: Path) -> None:
    path = written(tmp_path / "glove.txt", LINES[0], ". . . 1 2 3", LINES[1])
    assert list(word_vectors.read(path).words) == ["the", ". . .", "dog"]


def test_a_sentence_is_the_mean_of_its_known_words(glove: Path) -> None:
    encode = encoder(glove)
    assert encode(["The dog, unknown!", "cat", "US us", "unknown words", ""]) == [
        [0.75, -0.5, 1.0],
        [0.0, 10.0, 0.0],
        [3.5, 3.5, 3.5],
        [0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
    ]


def test_stop_words_and_punctuation_can_be_left_out(glove: Path) -> None:
    texts = ["The dog .", "the", "US us"]
    assert encoder(glove, drop_stop_words=True)(texts) == [
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        [4.0, 4.0, 4.0],
    ]


def test_stop_words_are_left_out_as_in_the_librarys_tokenizer(glove: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings

    theirs = WordEmbeddings.from_text_file(str(glove))
    expected = SentenceTransformer(modules=[theirs, Pooling(3, "mean")], device="cpu")
    texts = ["The dog .", "the cat (us)", "a US dog's cat.", "THE"]
    assert encoder(glove, drop_stop_words=True)(texts) == expected.encode(texts).tolist()


def test_the_longest_input_is_measured_in_words(glove: Path) -> None:
    assert encoder(glove, max_length=3)(["dog cat dog cat cat cat"]) == encoder(glove)(["dog cat dog"])


def test_the_identity_depends_only_on_the_content(glove: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other"
    copy.mkdir()
    shutil.copy(glove, copy)
    (own,), (copied,) = (
        Pretrained(model=str(path)).fingerprint().values() for path in (glove, copy / glove.name)
    )
    assert own == copied
    written(copy / glove.name, *LINES[:-1])
    assert Pretrained(model=str(copy / glove.name)).fingerprint() != {str(copy / glove.name): own}


def test_an_untrained_encoder_is_stored_as_a_reference_and_loads(
    glove: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "artifact"
    folder.mkdir()
    save_untrained(Pretrained(model=glove.name), folder)
    monkeypatch.chdir(folder)
    for model in (load(folder, Runtime(device="cpu")), open_model(str(glove), None, Runtime(device="cpu"))):
        assert isinstance(model, Encoder)
        assert model.encode(["dog"]).tolist() == [[1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("name", "lines", "facts"),
    [
        ("a.txt", [*LINES, "bird 1 2"], [":7", "2 found"]),
        ("a.txt", [*LINES, "bird 1 2 x"], [":7", "'x'"]),
        ("a.txt", [*LINES, "bird 1 nan 2"], [":7", "'nan'"]),
        ("a.txt", [*LINES, "bird 1 1_0 2"], [":7", "'1_0'"]),
        ("a.txt", [*LINES, "bird 1 ١ 2"], [":7", "'١'"]),
        ("a.txt", [*LINES, "bird 1 1e39 2"], [":7", "'1e39'"]),
        ("a.txt", [*LINES, "dog 1 2 3"], [":7", "'dog'", "line 2"]),
        ("a.txt", [*LINES, b"\xff 1 2 3"], [":7", "UTF-8"]),
        ("a.txt", [*LINES, "bird\t1\t2\t3"], [":7", "0 found"]),
        ("a.txt", [*LINES, ""], [":7", "0 found"]),
        ("a.txt", ["dog"], [":1", "0 found"]),
        ("a.txt", [], ["empty"]),
        ("a.vec", ["6 3"], [":1", "cut off"]),
        ("a.vec", ["7 3", *LINES], [":1", "7", "6", "cut off"]),
        ("a.vec", ["6 4", *LINES], [":2", "4", "3 found"]),
        ("a.vec", ["9" * 5000 + " 3", *LINES], [":1", "cut off"]),
        ("a.txt", [*LINES, "a 1\t2 3 4", "c  1 2"], [":7", "'1\\t2'"]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_bad_line_is_named(name: str, lines: list[str | bytes], facts: list[str], tmp_path: Path) -> None:
    path = written(tmp_path / name, *lines)
    with refused(name, *facts):
        word_vectors.read(path)


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt.gz", *LINES)
    path.write_bytes(path.read_bytes()[:-10])
    with refused("a.txt.gz"):
        word_vectors.read(path)
    path.write_text("the 1 2")
    with refused("a.txt.gz"):
        word_vectors.check(path)


def test_a_folders_words_and_vectors_must_match_in_number(tmp_path: Path) -> None:
    folder = in_a_folder(tmp_path / "a", ["dog", "cat"], np.zeros((3, 2), np.float32))
    with refused("glove_index.parquet", "2", "3"):
        word_vectors.read(folder)
    with refused("glove_index.parquet", "'dog'", "row 1"):
        word_vectors.read(in_a_folder(tmp_path / "b", ["dog", "dog"], np.zeros((2, 2), np.float32)))
    with refused("glove_emb.npy", "'cat'", "finite"):
        word_vectors.read(in_a_folder(tmp_path / "c", ["dog", "cat"], np.array([[1.0], [np.inf]])))
    with refused("glove_emb.npy", "'dog'", "finite"):
        word_vectors.read(in_a_folder(tmp_path / "e", ["dog"], np.array([[1e39]])))
    with refused("glove_index.parquet", "texts"):
        word_vectors.read(in_a_folder(tmp_path / "f", [7], np.zeros((1, 2))))  # type: ignore[list-item]
    with refused("glove_emb.npy", "dimensions"):
        word_vectors.read(in_a_folder(tmp_path / "d", ["dog", "cat"], np.zeros(2, np.float32)))
    np.save(folder / "more.npy", np.zeros(2))
    with refused("glove_emb.npy", "more.npy"):
        word_vectors.read(folder)


@pytest.mark.parametrize("do", [word_vectors.check, word_vectors.shape, word_vectors.read])
def test_a_folders_numbers_must_be_a_whole_matrix(do: Callable[[Path], object], tmp_path: Path) -> None:
    folder = in_a_folder(tmp_path / "a", ["dog", "cat"], np.zeros((2, 2), np.float32))
    file = folder / "glove_emb.npy"
    content = file.read_bytes()
    for damaged in (content[:-4], content[:20], b"dog 1 2", b""):
        file.write_bytes(damaged)
        with pytest.raises(UserError, match=r"glove_emb\.npy: can't be read"):
            do(folder)
    np.save(file, np.zeros(2))
    with refused("glove_emb.npy", "dimensions"):
        do(folder)


def test_settings_for_checkpoints_are_refused(glove: Path, bert: Path) -> None:
    wrong = {"num_layers": 1, "pooling": "cls", "static": True, "revision": "0" * 40, "prompts": {}}
    for name, value in wrong.items():
        with refused("glove.txt", name):
            Pretrained.model_validate({"model": str(glove), name: value}).check_folder()
    with refused("drop_stop_words"):
        Pretrained(model=str(bert), drop_stop_words=True).check_folder()
    with refused("glove.txt", "layers"):
        build_cross_encoder(Pretrained(model=str(glove)), 0, "cpu")
    with refused("word vectors", "layers", kind=ValidationError):
        CrossEncoder.model_validate({"base": {"model": str(glove)}})
    with refused("sentence", "layers", kind=ValidationError):
        SimCSE.model_validate({"base": {"model": str(glove)}, "learns_from": "sentence"})


def test_missing_vectors_are_named(tmp_path: Path) -> None:
    with refused("nowhere.txt", "no such file"):
        Pretrained(model=str(tmp_path / "nowhere.txt")).check_folder()
    with refused("package:yaml/glove.txt", "no such file"):
        Pretrained(model="package:yaml/glove.txt").check_folder()
    with refused("no_such_glove"):
        Pretrained(model="package:no_such_glove/data", drop_stop_words=True).check_folder()
    with refused("glove.bin", ".vec.gz"):
        reference.resolve(str(written(tmp_path / "glove.bin", *LINES)))


def test_the_training_cost_depends_on_words_and_dimensions(tmp_path: Path) -> None:
    lines = [f"w{row:05} 1 2" for row in range(5000)]
    estimates = {
        training(Pretrained(model=str(path)), 10, 8, 0).operations
        for path in (
            written(tmp_path / "a.txt", *lines),
            written(tmp_path / "b.txt.gz", *lines),
            written(tmp_path / "c.vec", "5000 2", *lines),
            in_a_folder(tmp_path / "d", [f"w{row:05}" for row in range(5000)], np.zeros((5000, 2))),
        )
    }
    assert len(estimates) == 1
    assert None not in estimates
