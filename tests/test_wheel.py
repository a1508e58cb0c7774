"""The wheel holds all that an installation needs, and works outside the clone."""

import csv
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from small_experiment import Called

ROOT = Path(__file__).parents[1]
PARTS = {
    "synthbench": "synthbench",
    "experiments": "synthbench/project/experiments",
    "reports/published": "synthbench/project/reports/published",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def _expected() -> Iterator[str]:
    """Tracked files of packages, experiments and published tables, by their names in the wheel."""
    folders = [*PARTS, "methods", "evaluators"]
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in listed.stdout.splitlines():
        path = PurePosixPath(name)
        if path.parts[0] in ("methods", "evaluators"):
            yield path.relative_to(path.parts[0]).as_posix()
            continue
        part = next(part for part in PARTS if path.is_relative_to(part))
        yield (PurePosixPath(PARTS[part]) / path.relative_to(part)).as_posix()


def test_the_wheel_contains_every_package_file_experiment_and_published_table(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    assert set(_expected()) - held == set()
    assert not [name for name in held if name.startswith(("tests/", "docs/", "benchmarks/"))]


class Installation:
    """An environment with the wheel and this one's dependencies, but nothing of the clone."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder / "environment")
        self.bin = folder / "environment" / "bin"
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--quiet"]
        subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True)
        packages = next((folder / "environment" / "lib").glob("python*")) / "site-packages"
        # A folder in a .pth file is searched, but its own .pth files, such as the clone's, are not read.
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        self.folder = folder / "work"
        self.folder.mkdir()

    def call(self, *command: str) -> Called:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("SYNTHBENCH", "PYTHON"))
        }
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.folder, env=kept | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return Called(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Installation:
    return Installation(tmp_path_factory.mktemp("installation"), wheel)


@pytest.mark.experiments
def test_the_installed_package_comes_from_the_wheel(installation: Installation) -> None:
    found = installation.call("python", "-c", "import synthbench; print(synthbench.__file__)")
    assert Path(found.out).is_relative_to(installation.bin.parent)


@pytest.mark.experiments
def test_a_new_study_runs_immediately(installation: Installation) -> None:
    assert installation.call("synthbench", "init", "my_study").code == 0
    ran = installation.call(
        "synthbench", "run", "my_study/study.yaml", "--profile", "sandbox", "--seeds", "0"
    )
    assert ran.code == 0, ran.err
    for row in ("gold-only", "untrained", "augsbert-bm25", "syncse-partial"):
        assert row in ran.out


SCORED_BY_MTEB = """
import json, sys
from pathlib import Path
from datasets import Dataset
from sentence_transformers import SentenceTransformer
import mteb
from mteb.cache import ResultCache
from synthbench.data.dataset import SyntheticDataset

model, home, results = map(Path, sys.argv[1:])
stages = [(json.loads(file.read_text()), file.parent) for file in home.glob("store/artifacts/*/*/stage.json")]
(test,) = [folder for stage, folder in stages if stage["label"] == "source test"]
pairs = list(SyntheticDataset.read(test / "dataset"))
columns = {name: [getattr(pair, name) for pair in pairs] for name in ("sentence1", "sentence2", "score")}
task = mteb.get_task("STS12")
task.dataset = {"test": Dataset.from_dict(columns)}
task.data_loaded = True
found = mteb.evaluate(
    SentenceTransformer(str(model), device="cpu"), task, cache=ResultCache(results), co2_tracker=False
)
print(len(pairs), found.task_results[0].scores["test"][0]["main_score"])
"""


@pytest.mark.experiments
def test_mteb_gives_an_exported_model_the_scores_of_our_table(
    installation: Installation,
) -> None:
    assert installation.call("synthbench", "init", "leaving").code == 0
    how = ("leaving/study.yaml", "--profile", "sandbox", "--seeds", "0")
    assert installation.call("synthbench", "run", *how, "--output", "out").code == 0
    exported = installation.call(
        "synthbench", "export", "model", how[0], "syncse-partial", *how[1:], "--to", "model"
    )
    assert exported.code == 0, exported.err
    arguments = (str(installation.folder / name) for name in ("model", ".synthbench", "mteb"))
    scored = installation.call("python", "-c", SCORED_BY_MTEB, *arguments)
    assert scored.code == 0, scored.err
    number, score = scored.out.split()[-2:]
    (table,) = (installation.folder / "out").glob("*/*/table.csv")
    (line,) = [
        line
        for line in csv.DictReader(table.read_text("utf-8").splitlines())
        if line["row"] == "syncse-partial"
    ]
    assert (int(number), 100 * float(score)) == (
        int(line["n_items"]),
        pytest.approx(float(line["mean"]), abs=1e-4),
    )


@pytest.mark.experiments
@pytest.mark.parametrize("name", ["my_method", "my_llm_method"])
def test_a_new_study_s_own_methods_run(installation: Installation, name: str) -> None:
    assert installation.call("synthbench", "init", f"with_{name}").code == 0
    row = name.replace("_", "-")
    ran = installation.call(
        *("synthbench", "run", f"with_{name}/{name}.yaml", "--profile", "sandbox", "--allow-code"),
        *("--seeds", "0", "--variant", row),
    )
    assert ran.code == 0, ran.err
    assert row in ran.out


@pytest.mark.experiments
@pytest.mark.parametrize(
    ("paper", "experiment"),
    [("dino", "dino_table3"), ("syncse", "syncse_table13"), ("augsbert", "augsbert_figure5")],
)
def test_a_paper_s_experiment_runs_in_the_sandbox(
    installation: Installation, paper: str, experiment: str
) -> None:
    assert installation.call("synthbench", "init", "--paper", paper).code == 0
    file = f"{paper}/experiments/papers/{paper}/{experiment}.yaml"
    ran = installation.call("synthbench", "run", file, "--profile", "sandbox", "--output", "out")
    assert ran.code == 0, ran.err
    assert (installation.folder / "out" / experiment / "profile-sandbox" / "report.html").is_file()


@pytest.mark.experiments
def test_the_quickstart_is_valid_outside_the_clone(installation: Installation) -> None:
    assert installation.call("synthbench", "init", "--experiment", "quickstart").code == 0
    assert installation.call("synthbench", "validate", "quickstart/experiments/quickstart.yaml").code == 0
