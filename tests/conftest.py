"""Fixtures of all tests: no network calls; real data are found through SYNTHBENCH_DATA."""

import gc
import itertools
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

from synthbench.base.processes import disable_telemetry
from synthbench.plugins.files import ALLOWED

# Collecting makes a million objects and hardly any garbage.
gc.disable()
disable_telemetry()
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Examples are the same in every run, so that failures come from changes; only "search" draws new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=1_000, deadline=None)
settings.load_profile("steady")

pytest_plugins = [
    "disks",
    "hub_cache",
    "run_fixtures",
    "sketched_figures",
    "shared_certificates",
    "small_experiment",
    "tracked_only",
    "tracking_databases",
    "wording",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="write what is pinned anew instead of comparing it")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules that hold nothing but heavy tests where these are left out."""
    if config.option.markexpr != "not experiments" or not collection_path.name.startswith("test_"):
        return None
    return "\npytestmark = pytest.mark.experiments\n" in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_finish() -> None:
    """Collect garbage again, and look for modules no longer in folders that hold nothing but tests.

    Libraries look for modules that are not installed at each training step, and read the whole path for it.
    """
    gc.enable()
    sys.path[:] = [folder for folder in dict.fromkeys(sys.path) if not _holds_only_tests(Path(folder))]


def _holds_only_tests(folder: Path) -> bool:
    modules = [file.name for file in folder.glob("*.py")] if Path(__file__).parent in folder.parents else []
    return all(name.startswith(("test_", "conftest")) for name in modules) and bool(modules)


@pytest.fixture(autouse=True, scope="module")
def own_folder_on_the_path(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let other processes import the module whose tests started them."""
    sys.path.insert(0, str(request.path.parent))
    yield
    sys.path.remove(str(request.path.parent))


@pytest.fixture
def real_data() -> Path:
    """The folder of real data sets that SYNTHBENCH_DATA names; without it the test is skipped."""
    folder = os.environ.get("SYNTHBENCH_DATA", "")
    if not Path(folder).is_dir() or not folder:
        pytest.skip("needs the real data sets: set SYNTHBENCH_DATA to their folder")
    return Path(folder)


@pytest.fixture(autouse=True)
def code_allowed_by_a_test_is_not_allowed_in_the_next() -> Iterator[None]:
    """Restore the folders whose code may run, which `--allow-code` allows for its whole process."""
    before = os.environ.get(ALLOWED)
    yield
    os.environ.pop(ALLOWED, None)
    if before is not None:
        os.environ[ALLOWED] = before


_MODULES_THAT_MATTER = 300
_frozen = 0
_homes = itertools.count()


@pytest.fixture(scope="session")
def training_libraries() -> None:
    """Import what trainings need, for fixtures that train more than once before the first test begins."""
    for name in ("mlflow", "synthbench.models.encoder", "synthbench.training.loop"):
        import_module(name)
    _freeze()


@pytest.fixture(autouse=True, scope="module")
def earlier_files_cost_no_collection() -> None:
    """Keep what earlier files' tests have left, such as cached trees, from the garbage collector.

    Each training calls it, and it takes half a second for a million objects.
    """
    _freeze()


@pytest.fixture(autouse=True)
def libraries_cost_no_collection() -> None:
    """Keep libraries that a test has imported from the garbage collector, which each training calls."""
    if len(sys.modules) >= _frozen + _MODULES_THAT_MATTER:
        _freeze()


def _freeze() -> None:
    global _frozen
    gc.collect()
    gc.freeze()
    _frozen = len(sys.modules)


@pytest.fixture(autouse=True)
def own_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put every test's store and tracking database into a folder of its own, created on demand."""
    if "tmp_path" in request.fixturenames:
        folder = request.getfixturevalue("tmp_path")
    else:
        folder = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    monkeypatch.setenv("SYNTHBENCH_HOME", str(folder / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
