"""A paper's figures beside ours: exact digits, marked if measured differently, omitted if incomparable."""

import csv
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from wording import refused

from synthbench.base.errors import UserError
from synthbench.config.published_tables import PublishedValue, chosen_values, read_published
from synthbench.config.table_options import PublishedOptions
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.render.csv_files import csv_table
from synthbench.reporting.render.latex import latex_table
from synthbench.reporting.render.markdown import markdown_table
from synthbench.reporting.render.terminal import terminal_table
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult
from synthbench_reranking import Reranking
from synthbench_retrieval import Retrieval
from synthbench_transfer import Transfer

PUBLISHED = sorted((Path(__file__).parents[2] / "reports" / "published").glob("*.csv"))
HEADER = "paper,table,row,encoder,generator,column,metric,split,aggregation,n,value,sd,flag\n"
ROWS = {"plain": "full", "small": "no smoothing"}
MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
Study = Callable[..., ExperimentResult]


def value(column: str = "STSb", row: str = "full", **changed: Any) -> PublishedValue:
    fields: Mapping[str, Any] = {
        "paper": "Doe 2021", "table": "2", "row": row, "encoder": "roberta-base", "generator": "gpt2-xl",
        "column": column, "metric": "spearman", "split": "test", "aggregation": "all", "n": 100,
        "value": "76.09", "sd": "", "flag": "",
    }  # fmt: skip
    return PublishedValue.model_validate({**fields, **changed})


@pytest.fixture
def study(make_runs: MakeRuns, make_result: MakeResult) -> Study:
    def made(
        *values: PublishedValue,
        base: str = "roberta-base",
        overrides: tuple[str, ...] = (),
        main_score: str = "spearman_all",
        **settings: Any,
    ) -> ExperimentResult:
        """Two rows and two test sets of 100 pairs each, trained like the published ones."""
        parameters = {"train.base.model": base, "data.x2.language_model.model": "gpt2-xl", **settings}
        scores = {"STSb": (0.75, 0.77), "STS12": (0.6, 0.62)}
        rows = []
        for name in ("plain", "small"):
            runs = make_runs(name, scores)
            rows.append(tuple(_changed(run, main_score, parameters) for run in runs))
        options = {"file": "doe.csv", "rows": ROWS}
        result = make_result(*rows, tasks=("STSb", "STS12"), published=options)
        return result.model_copy(update={"published": values, "overrides": overrides})

    return made


def _changed(run: RunResult, main_score: str, parameters: Mapping[str, Any]) -> RunResult:
    scores = tuple(
        score.model_copy(
            update={"main_score": main_score, "scores": {main_score: max(score.scores.values())}}
        )
        for score in run.scores
    )
    return run.model_copy(update={"scores": scores, "parameters": dict(parameters)})


def lines(result: ExperimentResult) -> list[tuple[str, ...]]:
    return [row.published_line for row in build_table(Analysis(result)).rows]


def notes(result: ExperimentResult) -> list[str]:
    words = ("Published", "‡", "§", "*", "?", "!")
    return [note for note in build_table(Analysis(result)).notes if note.startswith(words)]


def test_a_published_figure_is_shown_as_printed(study: Study) -> None:
    result = study(value(value="76.10"), value(row="no smoothing", value="74.5", sd="0.30"))

    assert lines(result) == [("published", "76.10", ""), ("published", "74.5 ± 0.30", "")]
    assert notes(result) == ["Published: Doe 2021, Table 2."]


def test_a_row_without_published_figures_has_no_second_line(study: Study) -> None:
    assert lines(study(value())) == [("published", "76.09", ""), ()]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"base": "sandbox/encoder"}, "published roberta-base, here sandbox/encoder"),
        ({"base": "roberta-large"}, "published roberta-base, here roberta-large"),
        ({"train.base.num_layers": 2}, "published roberta-base, here roberta-base, 2 layers"),
        ({"train.base.static": True}, "published roberta-base, here roberta-base, token embeddings"),
        (
            {"data.x2.language_model.model": "sandbox/lm"},
            "published data of gpt2-xl, here of sandbox/lm",
        ),
        ({"data.x2.seq2seq.model": "org/t5"}, "published data of gpt2-xl, here of gpt2-xl and org/t5"),
        ({"overrides": ("--profile sandbox",)}, "ours are of the experiment with --profile sandbox"),
        ({"overrides": ("--set train.epochs=2",)}, "ours are of the experiment with --set train.epochs=2"),
    ],
)
def test_figures_measured_differently_have_a_mark_and_a_reason(
    study: Study, settings: Mapping[str, Any], why: str
) -> None:
    result = study(value(), **settings)

    assert lines(result)[0] == ("published ‡", "76.09", "")
    assert f"‡ Measured differently: {why}." in notes(result)


def test_another_llm_than_the_published_one_gets_a_mark(study: Study) -> None:
    result = study(value(generator="gpt-3.5-turbo-0301"), **{"data.x2.language_model.model": "gpt-3.5-turbo"})
    runs = [
        run.model_copy(update={"datasets": (written_by_an_llm(),), "parameters": {}}) for run in result.runs
    ]

    changed = result.model_copy(update={"runs": tuple(runs)})

    why = "published data of gpt-3.5-turbo-0301, here of gpt-4o-mini"
    assert f"‡ Measured differently: {why}." in notes(changed)


def test_the_generating_llm_is_named_once(study: Study) -> None:
    result = study()
    runs = [run.model_copy(update={"datasets": (written_by_an_llm(),)}) for run in result.runs]

    told = build_table(Analysis(result.model_copy(update={"runs": tuple(runs)}))).notes

    assert [note for note in told if note in ("LLM: gpt-4o-mini (openai).", "Made by hand.")] == [
        "LLM: gpt-4o-mini (openai).",
        "Made by hand.",
    ]


def written_by_an_llm() -> DatasetSummary:
    return DatasetSummary(
        part="x2",
        kind="triplet",
        method="own",
        num_records=1,
        llm="gpt-4o-mini",
        notes=("LLM: gpt-4o-mini (openai).", "Made by hand."),
        content_hash="",
        stage="",
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"base": "FacebookAI/roberta-base"},
        {"base": "sentence-transformers/roberta-base-nli-mean-tokens"},
        {"overrides": ("--seeds 0", "--variant plain")},
    ],
)
def test_another_spelling_of_the_model_or_fewer_seeds_get_no_mark(
    study: Study, settings: Mapping[str, Any]
) -> None:
    assert lines(study(value(), **settings))[0] == ("published", "76.09", "")


def test_a_column_with_different_items_gets_a_mark(study: Study) -> None:
    result = study(value(), value("STS12", n=3108))

    assert lines(result)[0] == ("published", "76.09", "76.09‡")
    assert "‡ Measured differently: STS12: 3108 items published, 100 here." in notes(result)


def scored(result: ExperimentResult, **changed: Any) -> ExperimentResult:
    """The result with all scores of STSb measured otherwise."""
    runs = [
        run.model_copy(
            update={
                "scores": tuple(
                    score.model_copy(update=changed if score.task == "STSb" else {}) for score in run.scores
                )
            }
        )
        for run in result.runs
    ]
    return result.model_copy(update={"runs": tuple(runs)})


@pytest.mark.parametrize(
    ("published", "here", "why"),
    [
        (
            {"classifier": "senteval"},
            {"classifier": "logistic-regression", "folds": 10},
            "classifier: published senteval, here logistic-regression",
        ),
        ({"queries": "mixed"}, {"queries": "answerable"}, "queries: published mixed, here answerable"),
        ({"relevant_from": "0.9"}, {"relevant_from": 0.5}, "relevant_from: published 0.9, here 0.5"),
    ],
)
def test_different_evaluator_settings_get_a_mark(
    study: Study, published: Mapping[str, str], here: Mapping[str, Any], why: str
) -> None:
    result = scored(study(value(settings=published)), settings=here)

    assert lines(result)[0] == ("published ‡", "76.09", "")
    assert f"‡ Measured differently: STSb: {why}." in notes(result)


@pytest.mark.parametrize("here", [{}, {"classifier": "senteval", "folds": 10}, {"folds": 10}])
def test_equal_or_unknown_evaluator_settings_get_no_mark(study: Study, here: Mapping[str, Any]) -> None:
    result = scored(study(value(settings={"classifier": "senteval"})), settings=here)

    assert lines(result)[0] == ("published", "76.09", "")


def test_sampled_items_get_a_mark(study: Study) -> None:
    result = scored(study(value(), value("STS12")), drawn="divided by chance (by record)")

    why = "STSb: other items than the published ones, ours are divided by chance (by record)"
    assert lines(result)[0] == ("published", "76.09‡", "76.09")
    assert f"‡ Measured differently: {why}." in notes(result)


def test_a_figure_of_another_split_is_refused(study: Study) -> None:
    on_dev = scored(study(value(split="dev"), value("STS12")), split="test")
    unknown = (study(value(split="dev")), scored(study(value(split="")), split="test"))

    assert lines(on_dev)[0] == ("published", "", "76.09")
    assert (
        "Published values left out, since they measure something else: STSb: published dev, here test."
        in notes(on_dev)
    )
    assert [lines(result)[0] for result in unknown] == [("published", "76.09", "")] * 2


def test_rows_without_overrides_have_no_mark(study: Study) -> None:
    result = study(value(), value(row="no smoothing"), overrides=("--set variants.other=null",))
    runs = [run.model_copy(update={"is_of_file": run.variant == "plain"}) for run in result.runs]

    changed = result.model_copy(update={"runs": tuple(runs)})

    assert [line[0] for line in lines(changed)] == ["published", "published ‡"]
    why = "ours are of the experiment with --set variants.other=null: small"
    assert f"‡ Measured differently: {why}." in notes(changed)


def test_a_mean_over_unknown_subsets_gets_a_mark(study: Study) -> None:
    result = study(value(aggregation="mean"), main_score="spearman_mean")

    assert "‡ Measured differently: STSb: a mean over subsets, unknown here." in notes(result)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"metric": "f1"}, "published f1, here spearman"),
        ({"aggregation": "mean"}, "published aggregation mean, here all"),
    ],
)
def test_a_figure_of_another_metric_or_set_is_refused(
    study: Study, changed: Mapping[str, Any], why: str
) -> None:
    result = study(value(), value("STS12", **changed))

    assert lines(result)[0] == ("published", "76.09", "")
    note = f"Published values left out, since they measure something else: STS12: {why}."
    assert note in notes(result)


def test_a_metric_whose_name_includes_a_threshold_is_compared_as_a_whole(study: Study) -> None:
    alike = study(value(metric="auc_0.05", aggregation="none"), main_score="auc_0.05")
    other = study(value(metric="auc_0.05", aggregation="none"))

    assert lines(alike)[0] == ("published", "76.09", "")
    assert "STSb: published auc_0.05, here spearman." in " ".join(notes(other))


def test_aggregation_does_not_matter_for_a_set_without_subsets(study: Study) -> None:
    assert lines(study(value(aggregation="none")))[0] == ("published", "76.09", "")


@pytest.mark.parametrize(
    ("flag", "mark"),
    [("reported-elsewhere", "§"), ("test-selected-k", "*"), ("paste-error", "!"), ("unclear", "?")],
)
def test_a_doubtful_figure_has_its_mark(study: Study, flag: str, mark: str) -> None:
    one = study(value(), value("STS12", flag=flag))
    both = study(value(flag=flag), value("STS12", flag=flag))

    assert lines(one)[0] == ("published", "76.09", f"76.09{mark}")
    assert lines(both)[0] == (f"published {mark}", "76.09", "76.09")
    assert any(note.startswith(f"{mark} ") for note in notes(one))


def test_an_average_has_its_own_published_figure(study: Study) -> None:
    result = study(value("both years", n=None))
    options = {**result.table, "averages": {"Mean": ["STSb", "STS12"]}}
    options["published"] = {**options["published"], "columns": {"Mean": "both years"}}

    table = build_table(Analysis(result.model_copy(update={"table": options})))

    assert table.rows[0].published_line == ("published", "", "", "76.09")


def test_an_average_is_measured_like_its_columns(study: Study) -> None:
    result = scored(
        study(value(n=1379), value("STS12"), value("both", n=None)), drawn="a random sample of 100"
    )
    options = {**result.table, "averages": {"Mean": ["STSb", "STS12"]}}
    options["published"] = {**options["published"], "columns": {"Mean": "both"}}

    changed = result.model_copy(update={"table": options})

    assert lines(changed)[0] == ("published", "76.09‡", "76.09", "76.09‡")
    drawn = "other items than the published ones, ours are a random sample of 100"
    told = f"STSb: 1379 items published, 100 here; Mean: 1379 items published, 100 here (STSb); STSb: {drawn}"
    (note,) = (note for note in notes(changed) if note.startswith("‡"))
    assert {*note.removeprefix("‡ Measured differently: ").removesuffix(".").split("; ")} == {
        *told.split("; "),
        f"Mean: {drawn}",
    }


def test_each_grid_value_shows_the_published_figures_of_its_encoder(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [make_runs("plain", {"STSb": (0.7, 0.8)}, base=name) for name in ("base", "large", "tiny")]
    published = {
        "file": "doe.csv",
        "rows": ROWS,
        "encoders": {"base": "roberta-base", "large": "roberta-large"},
    }
    figures = [
        value(value=text, encoder=f"roberta-{size}") for text, size in (("1.0", "base"), ("2.0", "large"))
    ]
    result = make_result(*rows, tasks=("STSb",), published=published).model_copy(
        update={"published": (*figures, value(value="3.0", encoder="bert-base"))}
    )

    shown = [row.published[0] for row in build_table(Analysis(result)).rows]

    assert [cell.value if cell else None for cell in shown] == ["1.0", "2.0", None]


def test_a_published_figure_needs_a_score_of_ours(study: Study) -> None:
    result = study(value(), value("STS12"))
    runs = [
        run.model_copy(update={"scores": tuple(s for s in run.scores if s.task == "STSb")})
        if run.variant == "plain"
        else run
        for run in result.runs
    ]

    assert lines(result.model_copy(update={"runs": tuple(runs)}))[0] == ("published", "76.09", "")


def test_a_note_says_that_no_published_figure_fits(study: Study) -> None:
    said = "No published value belongs to a row and a column of this table."
    assert said in build_table(Analysis(study(value(column="STSb-dev")))).notes
    assert said not in build_table(Analysis(study(value()))).notes
    assert said not in build_table(Analysis(study())).notes


def test_every_format_separates_published_figures_from_ours(study: Study) -> None:
    result = study(value(), base="sandbox/encoder")
    table = build_table(Analysis(result))

    assert "| *published ‡* | *76.09* |  |" in markdown_table(table)
    latex = latex_table(table, Analysis(result))
    assert r"\quad {\footnotesize\itshape published ‡} & \footnotesize\itshape 76.09 & " in latex
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(terminal_table(table, console).renderable)
    assert "  published ‡" in console.export_text()
    first = next(csv.DictReader(io.StringIO(csv_table(table))))
    assert (first["published"], first["published_source"]) == ("76.09", "Doe 2021, Table 2")
    assert first["published_differs"] == "published roberta-base, here sandbox/encoder"


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda path: path.stem)
def test_the_projects_own_files_are_valid(file: Path) -> None:
    values = read_published(file)

    assert all(float(each.value) >= 0 for each in values)
    keys = [(each.row, each.encoder, each.column, each.split) for each in values]
    assert len(set(keys)) == len(keys)


def test_the_papers_tables_exist() -> None:
    dino = {f"dino_table{number}" for number in (1, 2, 3, 5)}
    augsbert = {f"augsbert_table{number}" for number in (1, 4, 5, 6, 9, 10, 11, 12, 13)}
    syncse = {f"syncse_table{number}" for number in (*range(2, 10), 13, 14)}
    later = {"claif_readme", "gpl_table1", "gecko_table3", "personas_table5", "encoders_pylate"}
    assert dino | augsbert | syncse | later == {file.stem for file in PUBLISHED}


@pytest.mark.parametrize(
    ("table", "page"),
    [("gecko_table3", "gecko"), ("personas_table5", "personas"), ("gpl_table1", "negatives")],
)
def test_the_published_figures_of_a_page_are_those_of_its_table(table: str, page: str) -> None:
    text = (PUBLISHED[0].parents[2] / "docs" / f"{page}.md").read_text(encoding="utf-8")
    printed = {each.value for each in published(table)}
    (passage,) = re.findall(rf"reports/published/{table}\.csv.+?\n#", text, re.DOTALL)
    figures = re.findall(r"\b\d\d\.\d+\b", passage)
    assert len(figures) >= 4
    assert printed >= {*figures}


def published(name: str) -> tuple[PublishedValue, ...]:
    return read_published(next(file for file in PUBLISHED if file.stem == name))


def test_augsberts_published_sizes_are_shown_with_its_figures() -> None:
    """Tables 1 and 4 print them, of dev and test."""
    in_domain = {(one.column, one.split): int(one.value) for one in published("augsbert_table1")}
    forums = {(one.row, one.split): int(one.value) for one in published("augsbert_table4")}
    for number in (5, 6, 9, 10, 11, 12, 13):
        of_sets = forums if number in (6, 13) else in_domain
        for one in published(f"augsbert_table{number}"):
            if one.metric != "count":
                assert one.n == of_sets[one.column.rpartition("->")[2], one.split]


def test_figures_with_a_known_protocol_name_the_protocol() -> None:
    assert {str(one.settings) for one in published("syncse_table7")} == {"{'classifier': 'senteval'}"}
    assert {str(one.settings) for one in published("syncse_table3")} == {"{'queries': 'mixed'}"}


def test_protocols_use_our_evaluators_names() -> None:
    for one in published("gpl_table1"):
        assert Retrieval.model_validate(one.settings).model_dump().items() >= one.settings.items()
    for one in published("syncse_table7"):
        assert Transfer.model_validate(one.settings).model_dump().items() >= one.settings.items()
    for one in published("syncse_table3"):
        assert Reranking.model_validate(one.settings).model_dump().items() >= one.settings.items()


def test_the_judgements_of_five_people_on_safety_are_published() -> None:
    """Table 9 of SynCSE, of 100 sentences."""
    found = published("syncse_table9")

    assert [(one.column, one.value, one.n) for one in found] == [
        ("Counselor 1", "1", 100),
        ("H2", "0", 100),
        ("H3", "0", 100),
        ("H4", "1", 100),
        ("H5", "0", 100),
        ("Avg", "0.4", 100),
    ]


def write(folder: Path, *lines: str) -> Path:
    file = folder / "doe.csv"
    file.write_text(HEADER + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


FULL = "Doe 2021,2,full,{},gpt2-xl,STSb,spearman,test,all,100,76.09,,"


def test_an_invalid_file_is_reported_in_one_line(tmp_path: Path) -> None:
    with refused("none.csv"):
        read_published(tmp_path / "none.csv")
    with refused("doe.csv"):
        read_published(write(tmp_path))
    with refused("doe.csv", "3"):
        read_published(write(tmp_path, FULL.format(""), FULL.format("").replace("all", "some")))
    header, line = HEADER.replace(",n,", ",settings,n,"), FULL.format("")
    faulty = line.replace(",all,", ",all,queries mixed,")
    (tmp_path / "doe.csv").write_text(f"{header}{faulty}\n", encoding="utf-8")
    with refused("doe.csv", "2", "'queries mixed'"):
        read_published(tmp_path / "doe.csv")
    (tmp_path / "doe.csv").write_text("paper,table\nDoe,2\n", encoding="utf-8")
    with refused("doe.csv", "2"):
        read_published(tmp_path / "doe.csv")


@pytest.mark.parametrize(
    ("wanted", "faults"),
    [
        ({"rows": {"plain": "fulll"}}, ["rows.plain: no 'fulll'; did you mean 'full'?"]),
        (
            {"rows": {"plain": "full"}, "columns": {"A": "STSB"}, "encoder": "bert-base"},
            ["columns.A: no 'STSB'; did you mean 'STSb'?"],
        ),
        ({"rows": {"plain": "full"}, "encoder": "bert"}, ["encoder: 'bert' is not there"]),
        (
            {"rows": {"plain": "full"}, "encoders": {"base": "bert-base", "large": "bert"}},
            ["encoders.large: 'bert' is not there"],
        ),
        (
            {"rows": {"plain": "full"}},
            ["rows: 'full' is there for several encoders or splits; name the `encoder:`"],
        ),
    ],
)
def test_a_missing_row_is_named(tmp_path: Path, wanted: Mapping[str, Any], faults: list[str]) -> None:
    values = read_published(write(tmp_path, FULL.format("bert-base"), FULL.format("bert-large")))
    with pytest.raises(UserError) as raised:
        chosen_values(PublishedOptions(file="doe.csv", **wanted), values)
    assert [fault.partition("; did")[0] for fault in raised.value.messages] == [
        fault.partition("; did")[0] for fault in faults
    ]
