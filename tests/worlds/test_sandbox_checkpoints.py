"""The sandbox's checkpoints: training data, reproducible builds, shipped files."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise, product
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM
from wording import refused

from synthbench.models import reference
from synthbench.worlds.sandbox import shipped
from synthbench.worlds.sandbox.building import (
    Recipes,
    Training,
    build_checkpoints,
    build_cross_encoder,
    build_encoder,
    build_lm,
)
from synthbench.worlds.sandbox.documents import (
    INSTRUCTIONS,
    RELATION_WEIGHTS,
    UNCLOSED_SHARE,
    InstructionDocument,
    compared_pairs,
    instruction_documents,
    paraphrase_documents,
    plain_texts,
    prompt,
)
from synthbench.worlds.sandbox.events import WEIGHTS, Event
from synthbench.worlds.sandbox.morphology import gerund, participle, plural, third_person
from synthbench.worlds.sandbox.parsing import parse, parses
from synthbench.worlds.sandbox.realisation import Wording, object_phrase, place_phrase
from synthbench.worlds.sandbox.sampling import Relation, split_of

TINY = Training(num_steps=3, batch_size=4, learning_rate=1e-3, copying_steps=1, vocabulary_texts=300)
ENDLESS = replace(TINY, num_steps=10**9)
LARGEST = 12_000_000


@dataclass(frozen=True)
class Read:
    """A document: its kind, the label of its instruction, its two sentences and their events."""

    kind: str
    label: str
    sentences: tuple[str, str]
    events: tuple[Event, Event]


def read(document: InstructionDocument) -> Read:
    task, opened, _ = document.prompt.split("\n")
    kind, _, instruction = task.partition(": ")
    label = next(label for label, words in INSTRUCTIONS.items() if words in instruction)
    first = opened.removeprefix('Sentence 1: "').removesuffix('"')
    second = document.continuation.strip().strip('"')
    return Read(kind, label, (first, second), (event_of(first), event_of(second)))


def event_of(text: str) -> Event:
    event = parse(text)
    assert event is not None, text
    return event


def test_a_document_is_the_papers_prompt_and_a_second_sentence() -> None:
    assert prompt("same", "A cat sleeps.") == (
        'Task: Write two sentences that mean the same thing.\nSentence 1: "A cat sleeps."\nSentence 2: "'
    )
    for document in islice(instruction_documents(0), 200):
        found = read(document)
        assert document.prompt == prompt(found.label, found.sentences[0], found.kind)


def test_four_of_ten_documents_are_of_a_textbook() -> None:
    kinds = Counter(read(document).kind for document in islice(instruction_documents(0), 2000))
    assert kinds.keys() == {"Task", "Textbook"}
    assert kinds["Textbook"] / 2000 == pytest.approx(0.4, abs=0.05)


def test_checkpoints_are_never_trained_on_events_of_the_test_sets() -> None:
    events = [event for document in islice(instruction_documents(3), 300) for event in read(document).events]
    texts = [text for several in islice(plain_texts(3), 300) for text in several]
    texts += [text for pair in islice(compared_pairs(3), 300) for text in pair.sentences]
    events += map(event_of, texts)
    assert {split_of(event) for event in events} == {"train"}


def test_documents_follow_their_instruction_as_often_as_stated() -> None:
    size = 6000
    found = [read(document) for document in islice(instruction_documents(1), size)]
    for kind, label in product(RELATION_WEIGHTS, INSTRUCTIONS):
        asked = [each.events for each in found if (each.kind, each.label) == (kind, label)]
        weights = RELATION_WEIGHTS[kind][label]
        assert sum(weights.values()) == pytest.approx(1.0)
        same = sum(first == second for first, second in asked) / len(asked)
        # Tolerance: a related event may by chance be the same one, plus four standard errors.
        assert same == pytest.approx(weights.get(Relation.PARAPHRASE, 0.0), abs=0.08)
        elsewhere = sum(first.domain != second.domain for first, second in asked) / len(asked)
        assert elsewhere == pytest.approx(weights.get(Relation.UNRELATED, 0.0), abs=0.05)


def test_some_documents_have_no_closing_quote() -> None:
    continuations = [document.continuation for document in islice(instruction_documents(1), 2000)]
    unclosed = sum('"' not in text for text in continuations)
    assert unclosed / 2000 == pytest.approx(UNCLOSED_SHARE, abs=0.025)


def test_a_textbook_always_follows_its_instruction() -> None:
    textbook = (each for each in map(read, instruction_documents(2)) if each.kind == "Textbook")
    for each in islice(textbook, 400):
        first, second = each.events
        if each.label == "same":
            assert first == second
        else:
            assert (first.domain == second.domain) == (each.label == "similar")


def test_copying_documents_always_hold_two_sentences_of_one_event() -> None:
    for document in islice(paraphrase_documents(0), 200):
        found = read(document)
        assert found.label == "same"
        assert found.events[0] == found.events[1]


def test_compared_pairs_list_the_slots_in_which_they_agree() -> None:
    for pair in islice(compared_pairs(0), 200):
        events = [event_of(text) for text in pair.sentences]
        *slots, polarity = pair.agreement
        assert polarity == (events[0].is_negative == events[1].is_negative)
        for slot, agrees in zip(WEIGHTS, slots, strict=True):
            values = [getattr(event, slot) for event in events]
            assert agrees == (None if values == [None, None] else values[0] == values[1])


def test_exactly_the_words_of_each_slot_are_marked() -> None:
    for pair in islice(compared_pairs(1), 300):
        agreement = dict(zip(WEIGHTS, pair.agreement, strict=False))
        for text, marked in zip(pair.sentences, pair.spans, strict=True):
            (worded,) = parses(text)
            event, wording = worded.event, worded.wording
            expected = [(words, agreement[slot]) for slot, words in told_words(wording).items()]
            found = [(text[slot.start : slot.end].lower(), slot.agrees) for slot in marked]
            assert sorted(found) == sorted(expected), (text, event)
            # No word expresses two slots.
            spans = sorted((slot.start, slot.end) for slot in marked)
            assert all(one[1] <= other[0] for one, other in pairwise(spans)), text


def told_words(wording: Wording) -> dict[str, str]:
    """Return the words, in small letters, by which a sentence tells each slot; an article tells no number."""
    register, verb, tokens = wording.form.register, wording.action, wording.form.tokens
    is_single = wording.quantity in ("a", "")
    action = verb
    if "acting" in tokens:
        action = gerund(verb)
    elif "acted" in tokens:
        action = participle(verb)
    elif "acts" in tokens and is_single:
        action = third_person(verb)
    words = {
        "object": object_phrase(wording.object, register),
        "action": action,
        "agent": wording.agent if is_single else plural(wording.agent),
        "place": place_phrase(wording.place, register),
        "attribute": wording.attribute,
        "number": "" if is_single else wording.quantity,
        "time": wording.time,
    }
    return {slot: each.lower() for slot, each in words.items() if each}


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
    assert sorted(said) == [f"{name}: words of 300 texts" for name in ("encoder", "lm")]


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
def test_a_failed_build_ends_the_other_build(tmp_path: Path) -> None:
    impossible = replace(TINY, num_steps=-1)
    with pytest.raises(ValueError, match="islice"):
        build_checkpoints(
            tmp_path, 0, Recipes(lm=ENDLESS, encoder=impossible), say=partial(note, tmp_path / "log")
        )


def forget() -> None:
    shipped._checksums.cache_clear()
    shipped._damage.cache_clear()


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of shipped checkpoints with one, "lm", that may be damaged."""
    folder = tmp_path / "checkpoints"
    (folder / "lm").mkdir(parents=True)
    (folder / "lm" / "config.json").write_text("{}", encoding="utf-8")
    (folder / "lm" / "model.safetensors").write_bytes(b"weights")
    shipped.write_checksums(folder, ("lm",))
    monkeypatch.setattr(shipped, "CHECKPOINTS", folder)
    forget()
    yield folder
    forget()


def test_a_shipped_checkpoint_can_be_used_as_a_model_name(checkpoints: Path) -> None:
    assert reference.resolve("sandbox/lm") == str(checkpoints / "lm")


def test_a_missing_checkpoint_is_an_error_with_the_nearest_name(checkpoints: Path) -> None:
    with refused("sandbox/ml"):
        reference.resolve("sandbox/ml")


def test_damaged_and_missing_files_are_named(checkpoints: Path) -> None:
    (checkpoints / "lm" / "model.safetensors").write_bytes(b"weighta")
    with refused("sandbox/lm", "model.safetensors"):
        reference.resolve("sandbox/lm")
    forget()
    (checkpoints / "lm" / "model.safetensors").unlink()
    with refused("model.safetensors"):
        reference.resolve("sandbox/lm")
    forget()
    (checkpoints / shipped.CHECKSUMS_FILE).write_text("{", encoding="utf-8")
    with refused("checksums.json"):
        reference.resolve("sandbox/lm")


def test_the_shipped_checkpoints_are_intact_and_small() -> None:
    known = json.loads((shipped.CHECKPOINTS / shipped.CHECKSUMS_FILE).read_text(encoding="utf-8"))
    assert set(known) == {"lm", "encoder", "cross-encoder"}
    for name in known:
        assert shipped.folder(f"sandbox/{name}") == shipped.CHECKPOINTS / name
    files = [path for path in shipped.CHECKPOINTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST
