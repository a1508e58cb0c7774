"""The sandbox's checkpoints: what they learn from, that builds repeat, and what ships."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM

from synthbench.errors import UserError
from synthbench.models import reference
from synthbench.sandbox import shipped
from synthbench.sandbox.building import Recipe, Recipes, build_cross_encoder, build_encoder, build_lm
from synthbench.sandbox.building_processes import build_checkpoints
from synthbench.sandbox.documents import (
    INSTRUCTIONS,
    RELATION_WEIGHTS,
    UNCLOSED_SHARE,
    Document,
    compared_pairs,
    instruction_documents,
    paraphrase_documents,
    plain_texts,
    prompt,
)
from synthbench.sandbox.events import WEIGHTS
from synthbench.sandbox.parsing import parse
from synthbench.sandbox.sampling import Relation, split_of

TINY = Recipe(num_steps=3, batch_size=4, learning_rate=1e-3, copying_steps=1, vocabulary_texts=300)
ENDLESS = replace(TINY, num_steps=10**9)
LARGEST = 12_000_000


def sentences_of(document: Document) -> tuple[str, str, str]:
    """Return the label, the first sentence and the second one of a document."""
    task, first, _ = document.prompt.split("\n")
    label = next(label for label, words in INSTRUCTIONS.items() if words in task)
    return (
        label,
        first.removeprefix('Sentence 1: "').removesuffix('"'),
        document.continuation.strip().strip('"'),
    )


def test_a_document_is_a_prompt_as_the_paper_has_it_and_a_second_sentence() -> None:
    assert prompt("same", "A cat sleeps.") == (
        'Task: Write two sentences that mean the same thing.\nSentence 1: "A cat sleeps."\nSentence 2: "'
    )
    for document in islice(instruction_documents(0), 200):
        label, first, second = sentences_of(document)
        assert document.prompt == prompt(label, first)
        assert parse(first) is not None
        assert parse(second) is not None


def test_checkpoints_never_read_what_test_sets_ask_about() -> None:
    documents = islice(instruction_documents(3), 300)
    texts = [text for document in documents for text in sentences_of(document)[1:]]
    texts += [text for several in islice(plain_texts(3), 300) for text in several]
    events = [event for event in map(parse, texts) if event is not None]
    assert len(events) == len(texts)
    assert {split_of(event) for event in events} == {"train"}


def test_documents_follow_their_instruction_as_often_as_is_said() -> None:
    size = 6000
    same: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    unclosed = 0
    for document in islice(instruction_documents(1), size):
        label, first, second = sentences_of(document)
        events = parse(first), parse(second)
        labels[label] += 1
        same[label] += events[0] == events[1]
        unclosed += '"' not in document.continuation
    for label, weights in RELATION_WEIGHTS.items():
        expected = weights[Relation.PARAPHRASE] / sum(weights.values())
        # A hard negative or a related event may by chance be the same one; five standard errors beside it.
        assert same[label] / labels[label] == pytest.approx(expected, abs=0.06)
    assert unclosed / size == pytest.approx(UNCLOSED_SHARE, abs=0.02)


def test_the_lesson_in_copying_always_means_the_same() -> None:
    for document in islice(paraphrase_documents(0), 200):
        label, first, second = sentences_of(document)
        events = parse(first), parse(second)
        assert label == "same"
        assert events[0] is not None and events[0] == events[1]


def test_pairs_to_compare_say_in_which_slots_they_agree() -> None:
    for pair in islice(compared_pairs(0), 200):
        events = parse(pair.first), parse(pair.second)
        assert events[0] is not None and events[1] is not None
        *slots, polarity = pair.agreement
        assert polarity == (events[0].is_negative == events[1].is_negative)
        for slot, agrees in zip(WEIGHTS, slots, strict=True):
            values = [getattr(event, slot) for event in events]
            assert agrees == (None if values == [None, None] else values[0] == values[1])


def note(lines: Path, name: str, line: str) -> None:
    with lines.open("a", encoding="utf-8") as file:
        file.write(f"{name}: {line}\n")


def build_all(folder: Path, seed: int) -> dict[str, dict[str, str]]:
    build_checkpoints(folder, seed, Recipes(TINY, TINY, TINY), say=partial(note, folder.with_suffix(".log")))
    return {name: shipped.checksums(folder / name) for name in ("lm", "encoder", "cross-encoder")}


@pytest.mark.experiments
def test_a_seed_gives_the_same_files_on_any_number_of_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    first = build_all(tmp_path / "first", 0)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert build_all(tmp_path / "again", 0) == first
    lm = AutoModelForCausalLM.from_pretrained(tmp_path / "first" / "lm")
    encoder = AutoModel.from_pretrained(tmp_path / "first" / "encoder")
    assert (lm.dtype, encoder.dtype) == (torch.float32, torch.float32)
    said = (tmp_path / "first.log").read_text(encoding="utf-8").splitlines()
    assert sorted(said) == ["encoder: words of 300 texts", "lm: words of 300 texts"]


def test_another_seed_gives_other_files(tmp_path: Path) -> None:
    for seed in (0, 1):
        build_lm(tmp_path / f"lm{seed}", seed, TINY, say=lambda line: None)
        encoder = tmp_path / f"encoder{seed}"
        build_encoder(encoder, seed, TINY, say=lambda line: None)
        build_cross_encoder(
            tmp_path / f"cross-encoder{seed}", seed, TINY, encoder=encoder, say=lambda line: None
        )
    for name in ("lm", "encoder", "cross-encoder"):
        one, other = (shipped.checksums(tmp_path / f"{name}{seed}")["model.safetensors"] for seed in (0, 1))
        assert one != other


@pytest.mark.experiments
def test_where_one_build_fails_the_other_ends(tmp_path: Path) -> None:
    impossible = replace(TINY, num_steps=-1)
    with pytest.raises(ValueError, match="islice"):
        build_checkpoints(
            tmp_path, 0, Recipes(lm=ENDLESS, encoder=impossible), say=partial(note, tmp_path / "log")
        )


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of shipped checkpoints with one, "lm", that may be damaged."""
    folder = tmp_path / "checkpoints"
    (folder / "lm").mkdir(parents=True)
    (folder / "lm" / "config.json").write_text("{}", encoding="utf-8")
    (folder / "lm" / "model.safetensors").write_bytes(b"weights")
    shipped.write_checksums(folder, ("lm",))
    monkeypatch.setattr(shipped, "CHECKPOINTS", folder)
    shipped.forget()
    yield folder
    shipped.forget()


def test_a_shipped_checkpoint_is_a_model_name(checkpoints: Path) -> None:
    assert reference.resolve("sandbox/lm") == str(checkpoints / "lm")


def test_a_checkpoint_that_is_not_there_names_the_nearest(checkpoints: Path) -> None:
    with pytest.raises(UserError, match="sandbox/ml: the sandbox has no such checkpoint; "):
        reference.resolve("sandbox/ml")


def test_a_damaged_file_and_a_missing_one_are_named(checkpoints: Path) -> None:
    (checkpoints / "lm" / "model.safetensors").write_bytes(b"weighta")
    with pytest.raises(UserError, match=r"sandbox/lm: .*model\.safetensors is damaged; install"):
        reference.resolve("sandbox/lm")
    shipped.forget()
    (checkpoints / "lm" / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model\.safetensors is missing"):
        reference.resolve("sandbox/lm")
    (checkpoints / shipped.CHECKSUMS_FILE).write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"checksums\.json: can't be read"):
        reference.resolve("sandbox/lm")


def test_what_ships_is_whole_and_small() -> None:
    known = json.loads((shipped.CHECKPOINTS / shipped.CHECKSUMS_FILE).read_text(encoding="utf-8"))
    assert set(known) == {"lm", "encoder", "cross-encoder"}
    for name in known:
        assert shipped.folder(f"sandbox/{name}") == shipped.CHECKPOINTS / name
    files = [path for path in shipped.CHECKPOINTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST
