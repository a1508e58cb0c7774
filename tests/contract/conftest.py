"""A sequence-to-sequence model for the contract tests, in a package of its own."""

import importlib
from collections.abc import Iterator

import pytest
from contract.method_cases import T5
from small_models import random_t5


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
