"""`synthbench data`: the commands from end to end."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
from toy_tokenizers import by_bytes
from typer.testing import CliRunner, Result

from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.cli import inspecting
from synthbench.cli.data import app
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.exchange import open_dataset
from synthbench.data.records import Failure, RecordKind, ScoredPair, Triplet
from synthbench.engine.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four pairs, one failure; labels that look like markup."""
    rows = [
        ("a man", "a person", 0.9),
        ("a man", "a tree", 0.1),
        ("a dog", "a dog", 0.9),
        ("a dog", "rain", 0.5),
    ]
    records = [
        ScoredPair(id=str(number), sentence1=first, sentence2=second, score=score, label="[/red]")
        for number, (first, second, score) in enumerate(rows)
    ]
    target = tmp_path / "pairs"
    target.mkdir()
    SyntheticDataset.create(RecordKind.SCORED_PAIR, records, failures=[Failure(reason="[bold]")]).write(
        target
    )
    return target


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments: str | Path) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output or result.exception
    return result.output


def test_inspect_shows_the_figures_and_writes_them(folder: Path, tmp_path: Path) -> None:
    output = succeed("inspect", "--quick", folder, "--json", tmp_path / "figures.json")
    for text in ("scored_pair", "identical sentences", "1 (25.0%)", "[/red]", "[bold]", "sentence1", "0.9"):
        assert text in output
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert (figures["num_records"], figures["scores"]) == (4, {"0.1": 1, "0.5": 1, "0.9": 2})


def test_inspect_counts_the_words_of_a_named_splitter(tmp_path: Path) -> None:
    (tmp_path / "zh.jsonl").write_text('{"sentence": "我喜欢北京。"}\n', encoding="utf-8")
    for words, number in (("pairs", 4), ("icu", 3)):
        result = call(
            "inspect", tmp_path / "zh.jsonl", "--quick", "--words", words, "--json", tmp_path / "out"
        )
        assert result.exit_code == 0, result.exception
        assert (
            json.loads((tmp_path / "out").read_text(encoding="utf-8"))["words"]["sentence"]["mean"] == number
        )


def test_two_data_sets_are_shown_side_by_side(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"sentence": "a man"}\n{"sentence": "snow"}\n', encoding="utf-8")
    output = succeed("inspect", "--quick", folder, other, "--json", tmp_path / "both.json")
    row = next(line for line in output.splitlines() if "distinct sentences" in line)
    assert re.findall(r"\d+", row) == ["5", "2"]
    assert "sentences in both: 1 (20.0% of" in output
    figures = json.loads((tmp_path / "both.json").read_text(encoding="utf-8"))
    assert [each["num_records"] for each in figures["data_sets"].values()] == [4, 2]
    assert figures["shared_sentences"] == 1


@pytest.mark.parametrize(
    ("limit", "prompt", "shown"),
    [
        (4, None, "cut by the encoder 3 (2 equal then)"),
        (8, None, "cut by the encoder 0 (0 equal then)"),
        (8, "query", "cut by the encoder 2 (2 equal then)"),
        (None, None, None),
    ],
)
def test_with_an_encoder_truncated_texts_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None, prompt: str | None, shown: str | None
) -> None:
    """With the blank that is added "a man" and "a mat" are six bytes, the first five of them the same."""
    model = SimpleNamespace(
        tokenizer=by_bytes(tmp_path),
        max_seq_length=limit,
        default_prompt_name=prompt,
        prompts={"query": "q: "},
    )
    encoder = SimpleNamespace(encode=lambda texts: np.eye(len(texts), dtype=np.float32), model=model)
    monkeypatch.setattr(inspecting, "loaded_encoder", lambda name: encoder)
    file = tmp_path / "texts.tsv"
    file.write_text("sentence\na man\na mat\nrain\nmy\n", encoding="utf-8")
    output = succeed("inspect", file, "--encoder", "some", "--json", tmp_path / "figures.json")
    rows = (" ".join(re.findall(r"[\w(),]+", line)) for line in output.splitlines())
    assert next((row for row in rows if row.startswith("cut by")), None) == shown
    figures = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert figures.get("truncation", {}).get("texts") == (shown and 4)


@pytest.mark.experiments
def test_every_split_shows_its_overlap_with_train(tmp_path: Path) -> None:
    """One of two test sentences is also in train, and both dev sentences are."""
    file = tmp_path / "splits.tsv"
    rows = [
        "sentence\tsplit",
        "a man\ttrain",
        "a dog\ttrain",
        "A man\tdev",
        "a dog\tdev",
        "a dog\ttest",
        "rain\ttest",
    ]
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    lines = succeed("inspect", file).splitlines()
    shares = {
        name: next(re.findall(r"[\d.]+%", line)[0] for line in lines if name in line)
        for name in ("dev in train", "dev at 0.95 or more", "test in train", "test at 0.95 or more")
    }
    assert [*shares.values()] == ["100.0%", "100.0%", "50.0%", "50.0%"]


@pytest.mark.experiments
def test_figures_on_samples_name_their_sizes_seed_and_encoder(folder: Path, tmp_path: Path) -> None:
    output = succeed("inspect", folder, "--json", tmp_path / "figures.json")
    for text in ("self-BLEU", "Vendi score", "(5 sentences)", "the same words", "25.0% of 4 pairs", "static"):
        assert text in output
    samples = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["samples"]
    assert (samples["seed"], samples["vendi_sentences"], samples["near_sentences"]) == (0, 5, 5)
    assert 1 < samples["vendi_score"] < 5
    assert succeed("inspect", folder) == output


def test_export_and_import_give_the_same_records(folder: Path, tmp_path: Path) -> None:
    for suffix in ("jsonl", "csv"):
        file, target = tmp_path / f"out.{suffix}", tmp_path / f"from_{suffix}"
        assert "4 scored_pair records" in succeed("export", folder, file, "--format", suffix)
        succeed("import", file, target, "--kind", "scored_pair")
        assert list(open_dataset(target)) == list(open_dataset(folder))
        succeed("inspect", "--quick", file)


def test_the_file_ending_of_the_target_determines_the_format(folder: Path, tmp_path: Path) -> None:
    succeed("export", folder, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").startswith("sentence1,")
    for target, options, message in (
        (
            "out",
            (),
            "say what to write: --format jsonl, csv, huggingface, beir or one of `synthbench list importers`",
        ),
        ("more.csv", ("--format", "jsonl"), "the name ends in .csv, the format is jsonl"),
        ("more.tsv", ("--format", "csv"), "the name ends in .tsv, the format is csv"),
    ):
        problem = call("export", folder, tmp_path / target, *options).exception
        assert isinstance(problem, UserError)
        assert str(problem).endswith(message)


def test_costs_and_measurements_are_shown_if_there_are_any(folder: Path, tmp_path: Path) -> None:
    assert "US dollars" not in succeed("inspect", "--quick", folder)
    records = list(open_dataset(folder))
    (tmp_path / "paid").mkdir()
    dataset = SyntheticDataset.create(
        RecordKind.SCORED_PAIR, records, cost_usd=1.5, measured={"kde: bandwidth, gold": 0.071239}
    )
    dataset.write(tmp_path / "paid")
    output = succeed("inspect", "--quick", tmp_path / "paid")
    assert "1.50 US dollars" in output
    assert "kde: bandwidth, gold" in output and "0.07124" in output


def test_a_prefix_of_a_stages_identity_selects_its_data(folder: Path) -> None:
    store = Store(home() / "store")
    for identity, name in (("abc" + "0" * 61, "dataset"), ("abc" + "1" * 61, "model")):
        output = store.workspace(identity) / "output"
        shutil.copytree(folder, output / name)
        store.commit(identity, {"label": f"generate {name}"})
    assert "abc000: generate dataset" in succeed("inspect", "--quick", "abc000")
    for name, message in {
        "abc111": "abc111: the stage 'generate model' made no data set",
        "abcdef": f"abcdef: neither a file nor a folder, nor a stage in {store.root}; a stage that "
        "`synthbench plan` shows as to run has no data yet: run it first",
    }.items():
        problem = call("inspect", name).exception
        assert isinstance(problem, UserError)
        assert str(problem) == message


def test_an_unwritable_target_is_reported_before_any_work(tmp_path: Path) -> None:
    problem = call("import", "nothing.csv", tmp_path / "no" / "folder").exception
    assert "the folder" in str(problem)


def test_export_to_hugging_face(folder: Path, tmp_path: Path) -> None:
    succeed("export", folder, tmp_path / "hub", "--format", "huggingface", "--provenance")
    assert datasets.load_from_disk(tmp_path / "hub")["train"]["id"][:] == ["0", "1", "2", "3"]


def test_export_to_hugging_face_says_what_is_left_out(tmp_path: Path) -> None:
    triplets = [
        Triplet(anchor="a", positive="b", negative="c", scores=(2.0, 1.0)),
        Triplet(anchor="d", positive="e", negative="f", further_negatives=("g",), scores=(3.0, 2.0, 1.0)),
    ]
    SyntheticDataset.create(RecordKind.TRIPLET, triplets).write(tmp_path)
    output = succeed("export", tmp_path, tmp_path / "hub", "--format", "huggingface")
    for name in ("further negatives", "a teacher's scores"):
        assert f"left out: {name}, since not all records have as many; --provenance" in output
    assert "as many: further negatives, a teacher's scores." in (tmp_path / "hub" / "README.md").read_text()
    output = succeed("export", tmp_path, tmp_path / "all", "--format", "huggingface", "--provenance")
    assert "left out" not in output
    row = datasets.load_from_disk(tmp_path / "all")["train"][1]
    assert (row["further_negatives"], row["scores"]) == (["g"], [3.0, 2.0, 1.0])


def test_convert_says_what_was_lost(folder: Path, tmp_path: Path) -> None:
    output = succeed("convert", folder, tmp_path / "triplets", "--to", "triplet")
    assert "lost: the scores and the pairs without a partner" in output
    assert "1 triplet records" in output
    succeed("convert", folder, tmp_path / "more", "--to", "triplet", "--low", "0.5")
    assert len(open_dataset(tmp_path / "more")) == 2
    assert [one.reason for one in open_dataset(tmp_path / "more").failures()] == ["[bold]"]


def test_existing_targets_are_replaced_only_by_force(folder: Path, tmp_path: Path) -> None:
    arguments = ("convert", folder, tmp_path / "out", "--to", "sentence")
    succeed(*arguments)
    assert isinstance(call(*arguments).exception, UserError)
    succeed(*arguments, "--force")
    assert len(open_dataset(tmp_path / "out")) == 5


def test_a_data_set_may_be_converted_in_place(folder: Path) -> None:
    succeed("convert", folder, folder, "--to", "sentence", "--force")
    assert open_dataset(folder).kind == RecordKind.SENTENCE


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "nothing"),
        ("import", "nothing.csv", "out"),
        ("export", "nothing", "out", "--format", "csv"),
        ("convert", "nothing", "out", "--to", "pair"),
    ],
)
def test_user_mistakes_raise_user_errors(arguments: tuple[str, ...]) -> None:
    assert isinstance(call(*arguments).exception, UserError)


def test_unknown_formats_and_kinds_are_refused(folder: Path) -> None:
    assert "unknown importer 'xml'" in str(call("export", folder, "out", "--format", "xml").exception)
    assert call("convert", folder, "out", "--to", "failure").exit_code == 2


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from synthbench.cli import data; "
        "print(sorted({'torch', 'pyarrow', 'pandas', 'numpy', 'datasets', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_dinos_format_is_imported_and_exported(tmp_path: Path) -> None:
    released = tmp_path / "released.jsonl"
    rows = ['{"text_a": "a", "text_b": "ä", "label": "0.5"}', '{"text_a": "b", "text_b": "c", "label": "1"}']
    blank = '{"text_a": "b", "text_b": " ", "label": "1"}'
    released.write_text("".join(f"{row}\n" for row in (*rows, blank)), encoding="utf-8")
    output = succeed("import", released, tmp_path / "made", "--format", "dino")
    assert "left out: 1 (blank text)" in output
    assert "2 scored_pair records" in output
    succeed("export", tmp_path / "made", tmp_path / "back.jsonl", "--format", "dino")
    assert (tmp_path / "back.jsonl").read_text(encoding="utf-8").split("\n") == [*rows, ""]
    problem = call("export", tmp_path / "made", tmp_path / "back.csv", "--format", "dino").exception
    assert isinstance(problem, UserError)
    assert str(problem).endswith("the name ends in .csv, the format is dino")


SICK = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tjudgment\n"
    "1\ta man\ta person\t5\tENTAILMENT\n2\ta dog\tthe rain\t1\tNEUTRAL\n3\ta cat\t \t3\tNEUTRAL\n"
)
NAMES = ("--column", "sentence1=sentence_A", "--column", "sentence2=sentence_B")


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    """A table whose columns and scores are not ours."""
    file = tmp_path / "sick.tsv"
    file.write_text(SICK, encoding="utf-8")
    return file


def test_import_and_inspect_take_columns_and_a_score_range(sick: Path, tmp_path: Path) -> None:
    options = (*NAMES, "--column", "score=relatedness_score", "--score-range", "1,5", "--skip-blank")
    output = succeed("import", sick, tmp_path / "set", *options)
    assert "left out: 1 (blank text)" in output
    assert [pair.score for pair in open_dataset(tmp_path / "set")] == [1.0, 0.0]
    assert "scored_pair" in succeed("inspect", "--quick", sick, *options)


def test_import_takes_scores_of_classes_and_columns_by_number(sick: Path, tmp_path: Path) -> None:
    classes = ("--column", "score=judgment", "--score", "ENTAILMENT=1")
    assert "left out: 2 (of class NEUTRAL)" in succeed("import", sick, tmp_path / "set", *NAMES, *classes)
    (tmp_path / "bare.csv").write_text("a dog,a hound\n", encoding="utf-8")
    numbers = ("--column", "anchor=0", "--column", "positive=1")
    assert "1 pair records" in succeed("import", tmp_path / "bare.csv", tmp_path / "pairs", *numbers)


def test_import_reads_classes_in_dinos_format(tmp_path: Path) -> None:
    file = tmp_path / "nli.jsonl"
    file.write_text(
        json.dumps({"text_a": "a", "text_b": "b", "label": "entailment"}) + "\n", encoding="utf-8"
    )
    succeed("import", file, tmp_path / "set", "--format", "dino", "--score", "entailment=1")
    assert [pair.score for pair in open_dataset(tmp_path / "set")] == [1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--score-range", "5"), "--score-range 5: must read LOW,HIGH, such as 0,5"),
        (("--score-range", "1,x"), "--score-range: 'x' is not a number"),
        (("--score-range", "5,1"), "score_range must be [lowest, highest]"),
        (("--column", "sentence1"), "--column sentence1: must read FIELD=NAME"),
        (("--column", "text=a"), "--column: no kind of records has all of text; give --kind"),
        (("--score", "yes"), "--score yes: must read CLASS=SCORE"),
        (
            ("--column", "sentence1=sentence_a"),
            "no column 'sentence_a' for sentence1; did you mean 'sentence_",
        ),
        (
            (*NAMES, "--column", "score=relatedness_score", "--score-range", "1,5"),
            "`skip_blank: true` leaves",
        ),
        (("--format", "dino", "--column", "sentence1=a"), "--format dino knows its columns"),
        (("--format", "dino", "--skip-blank"), "--format dino knows its columns"),
    ],
)
def test_invalid_options_of_a_table_are_refused(
    sick: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    result = call("import", sick, tmp_path / "set", *options)
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)


def test_an_unusable_file_of_figures_is_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    content = sorted(folder.iterdir())
    for command in (("inspect",), ("contamination", "--against", "unknown")):
        for file in (folder, tmp_path / "nowhere" / "figures.json"):
            problem = call(*command, folder, "--json", file).exception
            assert isinstance(problem, UserError)
            assert str(problem).startswith(f"--json {file}: ")
    assert sorted(folder.iterdir()) == content


def test_options_of_a_table_without_a_file_are_refused(folder: Path) -> None:
    result = call("inspect", "--quick", folder, "--score-range", "0,5")
    assert isinstance(result.exception, UserError)
    assert "say how a file is read; there is none" in str(result.exception)
