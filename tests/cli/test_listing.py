"""`synthbench list`: installed plug-ins and their settings."""

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints, entry_points

import pytest
from small_experiment import Project

from synthbench.base import entry_points as base
from synthbench.plugins import loading as plugin_loading
from synthbench.plugins.loading import component

METHODS = "synthbench.methods"
OTHERS = [f"synthbench.{group}" for group in ("steps", "trainers", "evaluators", "worlds")]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Offer these methods in place of the installed ones."""

    def offer(*points: tuple[str, str]) -> None:
        found = [EntryPoint(name, value, METHODS) for name, value in points]
        others = [point for group in OTHERS for point in entry_points(group=group)]
        monkeypatch.setattr(base, "_installed", lambda: EntryPoints([*found, *others]))
        base.offered.cache_clear()
        plugin_loading.installed_component.cache_clear()

    yield offer
    monkeypatch.undo()
    base.offered.cache_clear()
    plugin_loading.installed_component.cache_clear()


@pytest.mark.parametrize(
    ("group", "name", "field"),
    [
        (
            "methods",
            "augsbert",
            "sampler.size: whole number, at least 1; required random: number of pairs",
        ),
        (
            "trainers",
            "cross-encoder",
            "learning_rate: number, above 0, at most 1; default 1e-5 peak learning rate of AdamW",
        ),
        (
            "evaluators",
            "sts",
            "aggregation: all, mean or wmean; default all the Spearman correlation for tables",
        ),
    ],
)
def test_plugins_are_listed_with_version_place_and_settings(
    project: Project, group: str, name: str, field: str
) -> None:
    called = project.call("list", group)
    assert (called.code, called.err) == (0, "")
    version = component(group, name).version
    assert f"\n{name}  version {version}  [" in f"\n{called.out}"
    assert f" {field}" in f" {' '.join(called.out.split())}"


def test_a_listing_fits_into_100_columns(project: Project) -> None:
    for named in ("all", "experiments"):
        assert max(len(line.rstrip()) for line in project.call("list", named).out.splitlines()) <= 100


def test_names_alone_fit_a_screen_and_say_how_to_see_more(project: Project) -> None:
    called = project.call("list")
    assert (called.code, called.err) == (0, "")
    lines = called.out.splitlines()
    assert len(lines) <= 23 and max(map(len, lines)) <= 100
    for text in (
        "methods: augsbert,",
        "trainers: ",
        "bi-encoder",
        "list NAME",
        "list all",
        "list experiments",
    ):
        assert text in called.out


def test_experiments_are_listed_with_their_descriptions(project: Project) -> None:
    lines = project.call("list", "experiments").out.splitlines()
    (quickstart,) = [line for line in lines if line.startswith("quickstart: ")]
    assert "in the sandbox" in quickstart


def test_all_are_listed_on_demand(project: Project) -> None:
    called = project.call("list", "all")
    assert called.code == 0
    for text in ("METHODS\n", "augsbert  ", "TRAINERS\n", "cross-encoder  ", "EVALUATORS\n", "sts  "):
        assert f"\n{text}" in f"\n{called.out}"


def test_a_method_is_listed_with_its_roles_and_record_kind(project: Project) -> None:
    out = project.call("list", "methods").out
    assert "Makes: scored_pair. Roles in `sources:`: gold (scored_pair); dev (scored_pair, may be left" in out


def test_a_plugin_that_does_not_load_is_named_beside_the_others(
    project: Project, install: Callable[..., None]
) -> None:
    install(("broken", "nowhere:Method"), ("augsbert", "synthbench_augsbert:AugSBERT"))
    called = project.call("list", "methods")
    assert called.code == 0
    assert "broken  left out: method 'broken' (nowhere:Method) can't be loaded: No module" in called.out
    assert "augsbert  version 2" in called.out


def test_a_plugin_of_the_wrong_type_is_refused(project: Project, install: Callable[..., None]) -> None:
    install(("augsbert", "pathlib:Path"))
    called = project.call("validate", project.file)
    assert called.code == 2
    assert "pathlib:Path is not a Method, as 'augsbert' must be" in called.errors[0]


def test_two_packages_may_not_offer_plugins_of_the_same_name(
    project: Project, install: Callable[..., None]
) -> None:
    install(
        ("augsbert", "synthbench_augsbert:AugSBERT"),
        ("augsbert", "pathlib:Path"),
        ("dino", "synthbench_dino:DINO"),
    )
    both = "the method 'augsbert': synthbench_augsbert:AugSBERT and pathlib:Path; uninstall one"
    listed = project.call("list", "methods")
    assert (listed.code, listed.err) == (0, "")
    assert f"augsbert  left out: two installed packages offer {both}" in listed.out
    assert "dino  version " in listed.out
    called = project.call("validate", project.file)
    assert (called.code, both in called.errors[0]) == (2, True)


def test_one_component_is_listed_with_its_group_and_every_setting(project: Project) -> None:
    called = project.call("list", "augsbert")
    assert (called.code, called.err) == (0, "")
    assert called.out.startswith("METHODS\n\naugsbert  version 2  [")
    assert "syncse" not in called.out
    assert "sampler.size: whole number, at least 1; required" in " ".join(called.out.split())


def test_an_unknown_component_is_reported_in_one_line(project: Project) -> None:
    called = project.call("list", "augsbrt")
    assert (called.code, called.out) == (2, "")
    assert called.errors == ["nothing installed is called 'augsbrt'; did you mean 'augsbert'?"]
