"""A sequence-to-sequence model for the contract tests, in a package of its own, and places for cases."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract.asking_cases import Place, place_for
from contract.method_cases import T5
from contract.stand_ins import Model
from small_models import random_t5

from synthbench.models import artifact


@pytest.fixture(scope="session", autouse=True)
def t5(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Replace the model named T5 by a random model."""
    root = tmp_path_factory.mktemp("packages")
    package, folder = T5.removeprefix("package:").split("/")
    (root / package / folder).mkdir(parents=True)
    (root / package / "__init__.py").touch()
    random_t5(root / package / folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(root)
        importlib.invalidate_caches()
        yield


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Yield a store for the case that the test names, with fakes for trained models."""
    monkeypatch.setattr(artifact, "load", lambda *_, **__: Model())
    with place_for(request.param, tmp_path) as made:
        yield made
