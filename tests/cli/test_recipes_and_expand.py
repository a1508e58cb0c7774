"""`synthbench expand`, and the recipes that `synthbench list` shows."""

from small_experiment import Project

from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides
from synthbench.pipeline.planning import make_plan

SHORT = """\
experiment: small
base: sandbox/encoder
sources: {gold: pairs.csv}
variants: [untrained, gold-only, augsbert-bm25]
"""


def test_recipes_are_listed_with_their_needs_and_who_measured_them(project: Project) -> None:
    called = project.call("list", "recipes")
    assert called.code == 0
    (line,) = [each for each in called.out.splitlines() if each.startswith("syncse-then-gold@1: ")]
    assert "First the triplets of syncse-partial, then gold pairs." in line
    assert line.endswith("Needs sentences, gold, dev, llm. Measured: which_method_stages.")


def test_a_printed_file_runs_and_is_the_same_study(project: Project) -> None:
    pairs = [f"Door {n} is open,Window {n} is closed,{n % 6}" for n in range(200)]
    (project.folder / "pairs.csv").write_text(
        "\n".join(["left,right,rating", *pairs]) + "\n", encoding="utf-8"
    )
    project.file.write_text(SHORT, encoding="utf-8")
    expanded = project.call("expand", project.file)
    assert expanded.code == 0
    assert "graded: 0 to 5" in expanded.err
    in_sandbox = Overrides(profile="sandbox")
    short = make_plan(load_experiment(project.file, in_sandbox))
    project.file.write_text(expanded.out, encoding="utf-8")
    long = make_plan(load_experiment(project.file, in_sandbox))
    assert list(long.stages) == list(short.stages)
    assert len(short.stages) > 20


def test_a_file_that_cannot_be_expanded_gets_its_faults(project: Project) -> None:
    project.file.write_text(SHORT, encoding="utf-8")
    called = project.call("expand", project.file)
    assert called.code == 2
    assert called.err.startswith(f"error: {project.file}:3: sources.gold: ")
    assert called.out == ""
