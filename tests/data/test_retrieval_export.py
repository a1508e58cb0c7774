"""Generated questions as a retrieval test set in BEIR's layout."""

from pathlib import Path

from small_experiment import Project
from wording import refused, worded

from synthbench.data.beir import write_retrieval_task
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, RecordKind, RetrievalText, ScoredPair, Sentence
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.description import Roots

PUMP, OIL, LID = "The pump starts by the lever.", "Oil is changed every year.", "The lid must be shut."
PASSAGES = SyntheticDataset.create(
    RecordKind.SENTENCE,
    [
        Sentence(id="guide.md#Pumps/1", sentence=PUMP),
        Sentence(id="oil.pdf#page 3/1", sentence=OIL),
        Sentence(id="oil.pdf#page 4/1", sentence=LID),
    ],
)
QUESTIONS = SyntheticDataset.create(
    RecordKind.PAIR,
    [
        Pair(anchor="How does the pump start?", positive=PUMP, source_id="guide.md#Pumps/1"),
        Pair(anchor="What needs care each year?", positive=OIL, source_id="a"),
        Pair(anchor="What needs care each year?", positive=PUMP, source_id="a"),
        Pair(anchor="Must it be shut?", positive=LID, source_id="a", split="dev"),
    ],
)


def read(folder: Path, split: str) -> list[RetrievalText]:
    data = CorpusSource.model_validate({"corpus": folder.name, "split": split}).load(
        Roots(base=folder.parent)
    )
    return [record for record in data if isinstance(record, RetrievalText)]


def test_a_question_is_relevant_to_all_passages_that_it_is_paired_with(tmp_path: Path) -> None:
    write_retrieval_task(QUESTIONS, PASSAGES, tmp_path / "made")
    test = read(tmp_path / "made", "test")
    assert {record.id: record.text for record in test if not record.is_query} == {
        "passage/guide.md#Pumps/1": PUMP,
        "passage/oil.pdf#page 3/1": OIL,
        "passage/oil.pdf#page 4/1": LID,
    }
    assert {record.text: record.judged for record in test if record.is_query} == {
        "How does the pump start?": ("passage/guide.md#Pumps/1",),
        "What needs care each year?": ("passage/oil.pdf#page 3/1", "passage/guide.md#Pumps/1"),
    }
    assert [record.text for record in read(tmp_path / "made", "dev") if record.is_query] == [
        "Must it be shut?"
    ]


def test_without_passages_those_with_a_question_are_searched(tmp_path: Path) -> None:
    write_retrieval_task(QUESTIONS, QUESTIONS, tmp_path / "made")
    passages = {record.id: record.text for record in read(tmp_path / "made", "test") if not record.is_query}
    assert passages == {"passage/guide.md#Pumps/1": PUMP, "passage/a": OIL, "passage/a/2": LID}


def test_ids_with_tabs_are_still_one_column_of_the_judgements(tmp_path: Path) -> None:
    passages = [Sentence(id="a\tb.md#top/1", sentence=PUMP), Sentence(id="a b.md#top/1", sentence=OIL)]
    asked = [Pair(anchor="How is it started?", positive=text, source_id="a") for text in (PUMP, OIL)]
    made = SyntheticDataset.create(RecordKind.PAIR, asked)
    write_retrieval_task(made, SyntheticDataset.create(RecordKind.SENTENCE, passages), tmp_path / "made")
    assert read(tmp_path / "made", "test")[-1].judged == (
        "passage/a b.md#top/1", "passage/a b.md#top/1/1"
    )  # fmt: skip


def test_no_two_passages_get_one_id(tmp_path: Path) -> None:
    texts = {"doc/2": PUMP, "doc": OIL, "doc ": LID}
    pairs = [Pair(anchor=text, positive=text, source_id=name) for name, text in texts.items()]
    made = SyntheticDataset.create(RecordKind.PAIR, pairs)
    write_retrieval_task(made, made, tmp_path / "made")
    passages = {record.id: record.text for record in read(tmp_path / "made", "test") if not record.is_query}
    assert passages == {"passage/doc/2": PUMP, "passage/doc": OIL, "passage/doc/3": LID}


def test_what_is_no_test_set_is_refused(tmp_path: Path) -> None:
    pairs = SyntheticDataset.create(
        RecordKind.SCORED_PAIR, [ScoredPair(sentence1=PUMP, sentence2=OIL, score=1.0)]
    )
    with refused("scored_pair"):
        write_retrieval_task(pairs, PASSAGES, tmp_path / "made")
    with refused("scored_pair", "--passages"):
        write_retrieval_task(QUESTIONS, pairs, tmp_path / "made")
    few = SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(id="a", sentence=PUMP)])
    with refused("What needs care each year?"):
        write_retrieval_task(QUESTIONS, few, tmp_path / "made")
    assert not (tmp_path / "made").exists()
    write_retrieval_task(QUESTIONS, PASSAGES, tmp_path / "made")
    with refused("made", "--force"):
        write_retrieval_task(QUESTIONS, PASSAGES, tmp_path / "made")
    write_retrieval_task(QUESTIONS, PASSAGES, tmp_path / "made", force=True)


def test_the_command_searches_all_passages_of_a_folder_of_documents(project: Project) -> None:
    (project.folder / "docs").mkdir()
    (project.folder / "docs" / "a.md").write_text(f"# Care\n\n{OIL} {LID}\n", encoding="utf-8")
    (project.folder / "docs" / "b.txt").write_text(f"{LID} {PUMP}", encoding="utf-8")
    row = f'{{"anchor": "What is done every year?", "positive": "# Care {OIL} {LID}"}}\n'
    (project.folder / "questions.jsonl").write_text(row, encoding="utf-8")
    command = ("data", "export", "questions.jsonl", "made", "--passages", "docs")
    assert project.call(*command, "--format", "beir").code == 0
    test = read(project.folder / "made", "test")
    assert [record.id for record in test] == ["passage/a.md#Care/1", "passage/b.txt#line 1/1", "query/1"]
    assert test[-1].judged == ("passage/a.md#Care/1",)
    worded(project.call(*command, "--format", "jsonl").err, "--passages", "beir")
