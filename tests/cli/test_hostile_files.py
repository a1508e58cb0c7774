"""Files made to do harm: one clear line, exit code 2, and nothing is read or computed without end."""

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from small_experiment import Project

LEVELS = "abcdefgh"


def bomb() -> str:
    """Return under 400 bytes of YAML that expand to a hundred million values."""
    lines = [f"a: &a [{','.join('x' * 10)}]"]
    for old, new in itertools.pairwise(LEVELS):
        lines.append(f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (bomb(), ":5: not valid YAML: more than 20,000 values; an alias counts as all that it stands for"),
        ("a: &a [*a]\n", ":1: not valid YAML: an alias is inside the value that it stands for"),
        ("a: &a {<<: *a}\n", ":1: not valid YAML: an alias is inside the value that it stands for"),
        ("a: " + "[" * 100_000, ":1: not valid YAML: nested too deeply: more than 50 levels"),
        ("seeds: [" + "1," * 30_000 + "]\n", ":1: not valid YAML: more than 20,000 values"),
        ("a: " + "9" * 5_000, ":1: not valid YAML: a number of 5,000 digits"),
        ("a: 2024-13-45\n", ":1: not valid YAML: month must be in 1..12"),
        ("#" * 1_000_001, ": is larger than 1,000 kB; settings are not"),
    ],
    ids=["bomb", "own alias", "own merge", "deep", "long", "digits", "date", "large"],
)
@pytest.mark.parametrize("role", ["experiment", "include", "profile"])
def test_yaml_that_expands_too_far_is_refused_with_its_line(
    project: Project, role: str, text: str, fault: str
) -> None:
    (project.folder / "profiles").mkdir()
    other = project.folder / ("profiles/x.yaml" if role == "profile" else "x.yaml")
    evil = project.file if role == "experiment" else other
    if role == "include":
        project.change("experiment: small\n", "include: [x.yaml]\nexperiment: small\n")
    evil.write_text(text, encoding="utf-8")
    called = project.call("validate", project.file, *(["--profile", "x"] if role == "profile" else []))
    assert (called.code, called.out, called.errors) == (2, "", [f"{evil}{fault}"])


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("seeds: [0, 1]", f"seeds: {list(range(1_001))}", "seeds: must hold at most 1,000 values"),
        ("baseline: gold-only", "baseline: [gold-only]", "baseline: must be text, is a list"),
        ("baseline: gold-only", "baseline: " + "x" * 5_000, "baseline: must have at most 100 characters"),
        ("runtime: {", "table: text\nruntime: {", "table: must be a mapping"),
        ("file: gold.tsv", f"file: {'../' * 2_000}gold.tsv", "sources.gold: "),
        ("file: gold.tsv", "file: ~nobody-of-this-name/gold.tsv", "sources.gold: "),
        (
            "baseline: gold-only\n",
            "baseline: gold-only\ngrid:\n"
            + "".join(f"  a{n}: {{x: {{train.seed: 1}}, y: {{train.seed: 2}}}}\n" for n in range(40)),
            "grid: 2,199,023,255,552 rows, variants crossed with the grid; at most 1,000 are compared",
        ),
        (
            "over: {data.silver.sampler.k: [1, 2]}",
            "over: {data.silver.sampler.k: [" + "1, " * 500 + "2]}",
            "select.over: 501 combinations in each row; at most 1,000 in all rows together are tried",
        ),
    ],
    ids=["seeds", "list", "long name", "text", "long path", "nobody", "grid", "select"],
)
def test_absurd_amounts_and_shapes_are_refused(project: Project, old: str, new: str, fault: str) -> None:
    project.change(old, new)
    called = project.call("validate", project.file)
    assert (called.code, called.out) == (2, "")
    assert any(fault in error for error in called.errors), called.errors
    assert max(map(len, called.errors)) < 2_200


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(10**13)


NO_FILES: tuple[Callable[[Path], None], ...] = (pipe, device, Path.mkdir)


@pytest.mark.parametrize("make", NO_FILES, ids=["pipe", "device", "folder"])
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("small.yaml", "", ""),
        ("x.yaml", "experiment: small\n", "include: [x.yaml]\nexperiment: small\n"),
        ("gold.tsv", "", ""),
        ("x.csv", "runtime: {", "table: {published: {file: x.csv, rows: {augsbert: a}}}\nruntime: {"),
        ("x.csv", "runtime: {", "table: {costs: {file: x.csv, row: a, columns: {gold: [a]}}}\nruntime: {"),
        ("sheet.csv", "baseline:", "  audit: {labels: {part: gold, sheets: [sheet.csv]}}\nbaseline:"),
    ],
    ids=["experiment", "include", "data", "published", "costs", "sheet"],
)
def test_special_files_are_never_read(
    project: Project, make: Callable[[Path], None], name: str, old: str, new: str
) -> None:
    if old:
        project.change(old, new)
    evil = project.folder / name
    evil.unlink(missing_ok=True)
    make(evil)
    called = project.call("validate", project.file)
    assert (called.code, called.out) == (2, "")
    what = "is a folder, not a file" if make is Path.mkdir else "is a pipe or a device, not a file"
    assert any(what in error and name in error for error in called.errors), called.errors


@pytest.mark.parametrize("name", ["gold.tsv", "small.yaml"])
def test_a_file_larger_than_the_machine_is_refused(project: Project, name: str) -> None:
    (project.folder / name).unlink()
    sparse(project.folder / name)
    called = project.call("validate", project.file)
    assert called.code == 2
    assert any("has 10,000 GB, more than this machine's memory" in error for error in called.errors)


def test_lines_of_json_that_break_parsers_are_named(project: Project) -> None:
    lines = ["[" * 100_000, f'{{"sentence1": {"9" * 5_000}}}', '{"sentence1": 1}']
    (project.folder / "gold.jsonl").write_text("\n".join(lines), encoding="utf-8")
    project.change("file: gold.tsv", "file: gold.jsonl")
    called = project.call("validate", project.file)
    assert called.code == 2
    assert [error.split(": ")[2].rpartition(":")[2] for error in called.errors] == ["1", "2", "3"]


def test_escapes_in_names_are_written_out(project: Project) -> None:
    project.change("description: What", 'description: "\\e]0;title\\a\\e[2J What')
    project.change("smallest world", 'smallest world"')
    project.change("  augsbert:\n", '  "\\e[31maugsbert":\n')
    called = project.call("validate", project.file)
    assert called.code == 2
    assert "\x1b" not in called.err
    assert "\\u001b[31maugsbert" in called.err


def test_the_first_hundred_of_many_faults_are_printed_and_the_rest_counted(project: Project) -> None:
    wrong = "".join(f"k{number}: 1\n" for number in range(150))
    project.file.write_text(project.file.read_text(encoding="utf-8") + wrong, encoding="utf-8")
    called = project.call("validate", project.file)
    assert (called.code, len(called.errors), called.errors[-1]) == (2, 101, "... and 50 more")
