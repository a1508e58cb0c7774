"""Names of mteb's tasks and benchmarks in experiment files: found without loading it."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from mteb_folders import write_tasks
from small_experiment import Project
from wording import refused, worded

from synthbench.config.load import load_experiment
from synthbench_mteb import MTEB, catalogue

OWN = "sts: {evaluator: sts, tasks: [test], exclude: [gold]}"
ENGLISH = "MTEB(eng, v2)"


def test_the_catalogue_equals_mtebs_own() -> None:
    pytest.importorskip("mteb")
    from mteb import get_benchmarks
    from mteb.get_tasks import _TASKS_REGISTRY

    assert len(_TASKS_REGISTRY.keys() - catalogue.task_names()) <= 1
    assert len(catalogue.task_names() - _TASKS_REGISTRY.keys()) < 20
    known = catalogue.benchmarks()
    listed = 0
    for benchmark in get_benchmarks():
        tasks = known[benchmark.name]
        if tasks is not None:
            assert set(tasks) == {task.metadata.name for task in benchmark.tasks}, benchmark.name
            listed += 1
    assert listed > 60
    assert len(known[ENGLISH] or ()) == 41


def test_all_means_the_tasks_of_the_benchmark(project: Project) -> None:
    project.change("baseline:", "table: {averages: {english: [STS12, STS17]}, columns: [english]}\nbaseline:")
    project.change(OWN, f'{OWN}\n    mteb: {{evaluator: mteb, benchmark: "{ENGLISH}", tasks: [all]}}')
    experiment = load_experiment(project.file)
    names = catalogue.benchmark_tasks(ENGLISH)
    assert experiment.tasks == ("test", *names)
    assert tuple(experiment.provided_tasks) == names
    assert MTEB(benchmark="MTEB(eng)").names() == names


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_validate_and_plan_neither_load_mteb_nor_ask_the_hub(project: Project, command: str) -> None:
    project.change(OWN, f"{OWN}\n    mteb: {{evaluator: mteb, tasks: [STS12, NFCorpus]}}")
    code = (
        "import sys, socket\n"
        "socket.socket.connect = None\n"
        "from synthbench.cli.main import main\n"
        f"sys.argv = ['synthbench', '{command}', '{project.file}']\n"
        "try:\n    main()\nexcept SystemExit as end:\n"
        "    print('ended', end.code, sorted({'mteb', 'datasets', 'torch'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project.folder, capture_output=True, text=True, check=True
    )
    assert "ended 0 []" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("section", "facts"),
    [
        ("tasks: [STSBenchmrk]", ("small.yaml", "no task 'STSBenchmrk'", "did you mean 'STSBenchmark'")),
        ("tasks: [nfcorpus]", ("did you mean 'NFCorpus'",)),
        ("tasks: [utterly-unknown]", ("no task 'utterly-unknown'",)),
        ('tasks: ["MTEB(eng, v2)"]', ("is a benchmark", "benchmark: MTEB(eng, v2)", "tasks: [all]")),
        ('benchmark: "MTEB(eng, v3)", tasks: [all]', ("no benchmark 'MTEB(eng, v3)'", "did you mean")),
        ('benchmark: "MTEB(Multilingual, v2)", tasks: [all]', ("chooses its tasks by a rule", "list them")),
        ('benchmark: "MTEB(eng, v2)", tasks: [NFCorpus]', ("'NFCorpus' is no task of benchmark",)),
        ("tasks: [all]", ("needs `benchmark:`",)),
        ("tasks: [all, STS12]", ("'all' stands alone",)),
        ("tasks: [test]", ("'test'", "a source's name", "rename the source")),
        ("tasks: [STS12], if_found: [NFCorpus]", ("if_found", "bring their own data")),
        ("tasks: [STS12], exclude: [gold]", ("exclude", "bring their own data")),
        ("tasks: [STS12, STS12]", ("'STS12' is evaluated already",)),
        ("tasks: [STS12], folder: nowhere", ("nowhere", "no such folder")),
        ("tasks: [STS12], fodler: nowhere", ("fodler", "folder")),
    ],
)
def test_a_wrong_section_is_reported_in_one_line(
    project: Project, section: str, facts: tuple[str, ...]
) -> None:
    project.change(OWN, f"mteb: {{evaluator: mteb, {section}}}")
    called = project.call("validate", project.file)
    assert called.code == 2
    worded([line for line in called.errors if all(fact in line for fact in facts)], *facts)


def test_a_task_without_its_folder_is_reported_in_one_line(project: Project) -> None:
    write_tasks(project.folder / "tasks", ("STS12",))
    project.change(OWN, "mteb: {evaluator: mteb, folder: tasks, tasks: [STS12, NFCorpus]}")
    called = project.call("validate", project.file)
    assert called.code == 2
    worded(called.errors, "NFCorpus", "no folder", "with the files of its data set")


def test_mteb_can_not_select_models(project: Project) -> None:
    project.change("selection: {evaluator: sts", "selection: {evaluator: mteb")
    called = project.call("validate", project.file)
    worded(called.errors[:1], "'mteb' needs an encoder")


def test_a_missing_extra_is_reported_in_one_line_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert catalogue.installed_version() == version("mteb")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    catalogue.task_names.cache_clear()
    catalogue.benchmarks.cache_clear()
    for call in (lambda: MTEB().check_name("STS12"), lambda: MTEB().task_revisions("STS12")):
        with refused("evaluator 'mteb' needs mteb", "pip install 'synthbench[mteb]'"):
            call()
