"""Figures are drawn only for tests that check them; other runs get sketches with only the texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from synthbench.reporting.figures import style

DRAWN = {"reporting", "end_to_end", "experiments"}
"""The folders whose tests check figures. Drawing takes longer than the rest of a run of a few steps."""
_drawn = style._saved


@pytest.fixture(scope="module", autouse=True)
def figures_are_sketches(request: pytest.FixtureRequest) -> Iterator[None]:
    """Sketch the figures of a module's runs, except in folders whose tests check them."""
    if request.path.relative_to(Path(__file__).parent).parts[0] in DRAWN:
        yield
    else:
        with saving(_sketch):
            yield


@pytest.fixture
def sketched_figures() -> Iterator[None]:
    """Sketch the figures of a test."""
    with saving(_sketch):
        yield


@contextmanager
def drawn_figures() -> Iterator[None]:
    """Draw figures within the block, whatever the module."""
    with saving(_drawn):
        yield


@contextmanager
def saving(save: Any) -> Iterator[None]:
    """Save figures with `save` within the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "_saved", save)
        yield


def _sketch(figure: Any, extension: str) -> bytes:
    from matplotlib.text import Text

    return "\n".join([extension, *(text.get_text() for text in figure.findobj(Text))]).encode()
