"""Studies and data from Python: the same files and code as the command line's."""

import ast
import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from wording import refused

import synthbench
from synthbench.base.errors import UserError
from synthbench.config.load import load_experiment
from synthbench.pipeline.planning import make_outline
from synthbench.python import generating
from synthbench.python.running import run
from synthbench.python.study import Recommended
from synthbench.recommending.outcome import Recommendation

NOTEBOOK = Path(__file__).parents[1] / "examples" / "own_data.ipynb"
SENTENCES = [f"The printer on floor {number} prints nothing." for number in range(40)]
PAIRS = pd.DataFrame(
    {
        "left": [f"Door {number} is open." for number in range(120)],
        "right": [f"Window {number} is closed." for number in range(120)],
        "rating": [number % 6 for number in range(120)],
    }
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("SYNTHBENCH_HOME", raising=False)
    with contextlib.chdir(tmp_path):
        yield tmp_path


def study(**changes: Any) -> synthbench.Study:
    given: Mapping[str, Any] = {
        "base": "sandbox/encoder",
        "sentences": SENTENCES,
        "gold": PAIRS,
        "llm": "sandbox",
        "variants": ["untrained", "gold-only", "syncse-partial"],
        **changes,
    }
    return synthbench.Study(**given)


def identities(file: Path) -> list[str]:
    return sorted(make_outline(load_experiment(file)).stages)


def test_a_study_is_a_short_file_that_the_command_line_reads() -> None:
    made = study(budget=5, more={"seeds": [0, 1]})
    assert made.file.parent.parent == Path(".synthbench/studies")
    experiment = load_experiment(made.file)
    assert [each.name for each in experiment.variants] == ["untrained", "gold-only", "syncse-partial"]
    assert experiment.seeds == (0, 1)


def test_studies_of_one_name_have_files_of_their_own() -> None:
    first, again = study(), study()
    content = first.file.read_bytes()
    assert study(gold=PAIRS[1:]).file != first.file == again.file
    assert study(base={"model": "sandbox/encoder", "size": "small"}).file != first.file
    assert first.file.read_bytes() == content
    assert load_experiment(first.file).name == "study"


def test_equal_data_give_equal_identities_wherever_they_come_from(folder: Path) -> None:
    texts = folder / "texts.jsonl"
    pd.DataFrame({"text": SENTENCES}).to_json(texts, orient="records", lines=True)
    column = pd.DataFrame({"ticket": SENTENCES})["ticket"]
    rows = list(PAIRS.itertuples(index=False, name=None))
    named = PAIRS.set_axis(["sentence1", "sentence2", "score"], axis="columns")
    mappings = [{"score": row[2], "sentence1": row[0], "sentence2": row[1]} for row in rows]
    ours = identities(study(gold=named).file)
    by_name = study(name="e", gold=mappings).file
    (written,) = by_name.parent.glob("gold-*.jsonl")
    assert pd.read_json(written, lines=True)[[*named]].equals(named)
    assert identities(study(name="b", sentences=column, gold=rows).file) == ours
    assert identities(study(name="c", sentences=texts, gold=named).file) == ours
    assert identities(study(name="d", sentences=SENTENCES[1:], gold=named).file) != ours


def test_plan_says_what_is_to_run_and_asked() -> None:
    plan = study().plan(seeds=(0,))
    assert plan["is_to_run"].all()
    (asking,) = plan[plan["requests"] > 0].to_dict("records")
    assert (asking["kind"], asking["requests"], asking["usd"]) == ("generate", 2 * len(SENTENCES), 0.0)
    assert set(plan["kind"]) == {"source", "generate", "train", "evaluate"}


def test_seeds_that_a_file_may_not_have_are_refused() -> None:
    for seeds, fault in (((0, 0), "listed twice"), ((-1,), "at least 0"), ((True,), "whole number")):
        with pytest.raises(UserError, match=f"^--seeds.*{fault}"):
            study().plan(seeds=seeds)


def test_rows_that_are_no_texts_and_no_pairs_are_refused() -> None:
    with refused("gold", "2 values"):
        _ = study(gold=[("one", "two")]).file
    with refused("gold", "unique"):
        _ = study(gold=PAIRS.set_axis(["text", "text", "score"], axis="columns")).file
    with refused("sentences", "surrogates"):
        _ = study(sentences=["half a \ud83d"]).file


def test_a_name_that_is_no_folders_name_writes_nothing(folder: Path) -> None:
    with refused("name", "../elsewhere"):
        _ = study(name="../elsewhere").file
    assert list(folder.iterdir()) == []


def test_a_base_in_the_working_folder_is_found_as_name_and_as_section(folder: Path) -> None:
    (folder / "mine").mkdir()
    for base in ("mine", {"model": "mine", "size": "small"}):
        written = yaml.safe_load(study(base=base).file.read_text(encoding="utf-8"))
        assert str(folder / "mine") in str(written["base"])


def test_generated_data_are_a_frame_with_their_cost_and_cost_nothing_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    frame = synthbench.generate("syncse-then-gold", SENTENCES[:3], llm="sandbox")
    assert list(frame["anchor"]) == SENTENCES[:3]
    assert {"positive", "negative", "generator", "part"} <= {*frame.columns}
    assert (frame.attrs["requests"], frame.attrs["usd"]) == (6, 0.0)
    capsys.readouterr()
    assert synthbench.generate("syncse-then-gold", SENTENCES[:3], llm="sandbox").equals(frame)
    assert " 0 stages executed" in capsys.readouterr().err


def test_generate_returns_its_own_records_beside_other_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_beside_another(file: Path, **options: Any) -> Any:
        monkeypatch.setattr(generating, "run", run)
        synthbench.generate("syncse-then-gold", SENTENCES[3:6], llm="sandbox")
        return run(file, **options)

    monkeypatch.setattr(generating, "run", run_beside_another)
    frame = synthbench.generate("syncse-then-gold", SENTENCES[:3], llm="sandbox")
    assert list(frame["anchor"]) == SENTENCES[:3]


def test_a_recipe_with_its_version_generates_the_same_data() -> None:
    frame = synthbench.generate("syncse-then-gold", SENTENCES[:2], llm="sandbox")
    assert synthbench.generate("syncse-then-gold@1", SENTENCES[:2], llm="sandbox").equals(frame)


def test_a_method_in_a_file_generates_where_its_code_is_allowed(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "from collections.abc import Iterator\n"
        "from synthbench.api import Pair, method\n"
        "@method\n"
        "def twice(sentences: list[str], times: int = 1) -> Iterator[Pair]:\n"
        "    yield from (Pair(anchor=each, positive=each * times) for each in sentences)\n"
    )
    frame = synthbench.generate("mine.py:twice", ["Ha."], allow_code=True, settings={"times": 2})
    assert frame[["anchor", "positive"]].to_numpy().tolist() == [["Ha.", "Ha.Ha."]]
    with refused("mine.py", "not allowed to run"):
        synthbench.generate("mine.py:twice", ["Ha."])


def test_generated_rankings_are_a_frame_with_their_candidates(folder: Path) -> None:
    (folder / "ranked.py").write_text(
        "from collections.abc import Iterator\n"
        "from synthbench.api import Ranking, method\n"
        "@method\n"
        "def ranked(sentences: list[str]) -> Iterator[Ranking]:\n"
        "    yield Ranking(query=sentences[0], candidates=tuple(sentences[1:]), grades=(1.0, 0.0))\n"
    )
    frame = synthbench.generate("ranked.py:ranked", ["One.", "Two.", "Three."], allow_code=True)
    assert [list(each) for each in frame["candidates"]] == [["Two.", "Three."]]


def test_generate_says_what_is_missing_or_too_much() -> None:
    with refused("syncse-partial", "llm"):
        synthbench.generate("syncse-partial", SENTENCES)
    with refused("augsbert-semantic-search", "base"):
        synthbench.generate("augsbert-semantic-search", gold=PAIRS)
    with refused("syncse-naive", "sentences"):
        synthbench.generate("syncse-naive", SENTENCES, llm="sandbox", settings={"size": 10})
    with refused("'syncse'"):
        synthbench.generate("syncse", SENTENCES)
    with refused("gold-only", "generates no data"):
        synthbench.generate("gold-only", gold=PAIRS)
    with refused("missing.py"):
        synthbench.generate("missing.py:twice", SENTENCES)


def test_recommend_needs_a_budget() -> None:
    with refused("budget"):
        study().recommend()


def test_a_notebook_shows_the_answer_of_recommend() -> None:
    found = Recommendation(
        name="study",
        recipe="gold-only",
        score=71.3,
        answer="gold-only: 71.3 <3.1 above untrained>",
        more="more money would buy nothing",
        spent="spent: 2 dollars",
        measured=(),
        left_out={},
        files=(Path("study.final.yaml"),),
        reports={},
        export="synthbench export model",
    )
    shown = Recommended(found, Path("page.html"))._repr_html_()
    assert "gold-only: 71.3 &lt;3.1 above untrained&gt;" in shown


def test_the_notebook_runs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    variables: dict[str, Any] = {}
    shown = [_run("".join(each["source"]), variables) for each in cells if each["cell_type"] == "code"]
    assert "syncse-partial" in shown[2]
    assert {*variables["results"].scores["variant"]} == {"gold-only", "syncse-partial"}
    assert len(variables["triplets"]) == variables["triplets"].attrs["requests"] / 2


def _run(cell: str, variables: dict[str, Any]) -> str:
    """Run a cell; return what a notebook would show of its last line."""
    *lines, last = ast.parse(cell).body
    exec(compile(ast.Module(lines, []), "cell", "exec"), variables)
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), "cell", "exec"), variables)
        return ""
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), variables)
    return str(value._repr_html_() if hasattr(value, "_repr_html_") else value)
