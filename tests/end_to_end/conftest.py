"""One undisturbed run that all end-to-end tests compare with."""

from pathlib import Path

import pytest
from small_experiment import Called, Place, new_place


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory, bert: Path) -> tuple[Place, Called]:
    """A place where the whole experiment has run in one piece; tests leave it as it is."""
    place = new_place(tmp_path_factory.mktemp("finished"), bert)
    return place, place.call("run", place.file)
