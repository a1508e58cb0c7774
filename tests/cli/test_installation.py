"""Faulty installations are diagnosed."""

from importlib.metadata import EntryPoint

import pytest

from synthbench.cli import diagnosis
from synthbench.cli.diagnosis import Level
from synthbench.plugins import loading as plugin_loading

WANTED = ["torch>=2.6", "numpy>=99", "no-such-package>=1", "gone; extra == 'dev'"]


def test_the_installed_packages_fit() -> None:
    findings = [*diagnosis.packages(), *diagnosis.plugins()]
    assert {finding.level for finding in findings} == {Level.OK}
    assert "torch 2." in findings[0].text
    assert [finding.subject for finding in findings[1:]] == [*plugin_loading.GROUPS]


def test_each_package_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "requires", lambda _: WANTED)
    numpy, missing = diagnosis.packages()
    assert numpy.text.startswith("numpy 2")
    assert numpy.text.endswith("does not fit; needed: numpy>=99")
    assert missing.text == "no-such-package is missing; needed: no-such-package>=1"
    assert {numpy.level, missing.level} == {Level.PROBLEM}


def test_plugins_that_do_not_load_are_named_and_the_others_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "synthbench.methods"
    points = {
        "gone": EntryPoint("gone", "no_such_module:Method", group),
        "wrong": EntryPoint("wrong", "pathlib:Path", group),
    }
    plugin_loading.installed_component.cache_clear()
    monkeypatch.setattr(plugin_loading, "installed", lambda name: points if name == "methods" else {})
    monkeypatch.setattr(diagnosis, "installed", plugin_loading.installed)
    gone, wrong, *others = diagnosis.plugins()
    assert "'gone' (no_such_module:Method) can't be loaded: No module named 'no_such_module'" in gone.text
    assert "pathlib:Path is not a Method" in wrong.text
    assert [other.text for other in others] == ["none are installed"] * (len(plugin_loading.GROUPS) - 1)
    plugin_loading.installed_component.cache_clear()
