"""One undisturbed run that all end-to-end tests compare with."""

from pathlib import Path

import pytest
from small_experiment import Called, Project, new_project


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory, bert: Path) -> tuple[Project, Called]:
    """A project where the whole experiment has run in one piece; tests leave it as it is."""
    project = new_project(tmp_path_factory.mktemp("finished"), bert)
    return project, project.call("run", project.file)
