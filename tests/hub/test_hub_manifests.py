"""Every name that ships is on the hub, with the files, formats and columns that we read."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from manifest_hub import MANIFESTS, ROWS, ManifestHub, held, manifest_hub, use_hub
from shipped_files import SHIPPED, TOGETHER_EVERYTHING
from small_experiment import Project

from synthbench.data.records import RetrievalText
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.description import Roots

ROOT = Path(__file__).parents[2]
DOCUMENT = yaml.safe_load(MANIFESTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManifestHub]:
    with manifest_hub() as running, pytest.MonkeyPatch.context() as patch:
        use_hub(running, tmp_path_factory.mktemp("huggingface"), patch)
        patch.delenv("SYNTHBENCH_DATA", raising=False)
        yield running


@pytest.mark.parametrize("name", TOGETHER_EVERYTHING)
def test_a_hub_that_has_what_the_manifests_list_suffices_for_a_file(
    name: str, hub: ManifestHub, tmp_path: Path
) -> None:
    """Downloads all that the file names, and reads the first rows of its data."""
    fetched = Project(tmp_path, tmp_path / "home").call("fetch", SHIPPED[name])
    assert (fetched.code, fetched.errors) == (0, [])


@pytest.mark.parametrize(
    ("name", "revision", "num_passages"),
    [
        ("scifact", "b3b5335604bf5ee3c4447671af975ea25143d4f5", 24),
        ("nfcorpus", None, 24),
        ("nfcorpus", "e28763e".ljust(40, "0"), 24),
        ("fever", None, 48),
    ],
)
def test_a_corpus_of_beir_is_read_in_each_layout_that_the_hub_has_had(
    name: str, revision: str | None, num_passages: int, hub: ManifestHub
) -> None:
    source = CorpusSource(corpus=f"hub:BeIR/{name}", revision=revision, judgements=f"BeIR/{name}-qrels")
    records = source.read(Roots()).records
    queries = [record for record in records if isinstance(record, RetrievalText) and record.is_query]
    assert (len(records) - len(queries), len(queries)) == (num_passages, ROWS["test"])


def test_a_manifest_says_where_it_was_looked_up_or_what_was_assumed() -> None:
    for kind in ("models", "datasets"):
        for name, given in DOCUMENT[kind].items():
            (where,) = {"page", "at", "assumed"} & given.keys()
            if where == "assumed":
                assert any(name in line for line in DOCUMENT["not_looked_up"]), name
            else:
                assert given[where].startswith("https://")


KEYS = r"\b(?:base|corpus|hub|judgements|model|teacher)(?:: |=)['\"]?(?:hub:)?"
NAMED = re.compile(KEYS + r"([A-Za-z][\w.-]+/[\w.-]*\w|(?:bert|gpt2|roberta)\b[\w-]*)")


def test_every_hub_name_on_a_page_is_in_the_manifests_or_said_not_to_be_looked_up() -> None:
    known = {name for each in held() for name in each.names}
    unknown = " ".join(DOCUMENT["not_looked_up"])
    recipes = ("methods/*/recipes.yaml", "synthbench/recipes/*.yaml")
    files = ("README.md", "docs/**/*.md", "synthbench/starter/*.yaml", *recipes)
    pages = [page for pattern in files for page in ROOT.glob(pattern)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for name in NAMED.findall(text):
            if not name.startswith(("sandbox/", "ORG/", "HUB/", "package:", "path/")):
                assert name in known or name in unknown, f"{page.name}: {name}"
