"""A file of a data set on the hub, out of a local cache that a fixture fills, offline."""

from pathlib import Path

import pytest
from hub_cache import HubCache
from pydantic import ValidationError
from wording import refused

from synthbench.data.records import RecordKind, Sentence, Triplet
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource

COMMIT = "a" * 40
NLI = [
    {"sent0": "A man sings, loudly.", "sent1": "A man sings.", "hard_neg": "A man is silent."},
    {"sent0": 'He said "no".', "sent1": "He refused.", "hard_neg": "He agreed."},
]
COLUMNS = {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"}


@pytest.fixture
def cache(hub_cache: HubCache) -> HubCache:
    hub_cache.add_dataset("org/nli", COMMIT, {"nli.csv": NLI, "some.txt": [{"sentence": "One line."}]})
    return hub_cache


def test_a_hub_file_is_read_like_a_local_one(cache: HubCache) -> None:
    source = FileSource(
        hub="org/nli", revision=COMMIT, file="nli.csv", kind=RecordKind.TRIPLET, columns=COLUMNS
    )
    first, second = source.load(Roots())
    assert isinstance(first, Triplet) and isinstance(second, Triplet)
    assert (first.anchor, first.positive, first.negative) == tuple(NLI[0].values())
    assert second.anchor == 'He said "no".'
    lines = FileSource(hub="org/nli", revision=COMMIT, file="some.txt").load(Roots())
    assert [record.sentence for record in lines if isinstance(record, Sentence)] == ["One line."]


def test_the_identity_is_the_commit_and_defaults_to_the_cached_one(cache: HubCache) -> None:
    given = FileSource(hub="org/nli", revision="b" * 40, file="some.txt")
    assert given.fingerprint(Roots()) == {"org/nli": "b" * 40}
    newest = FileSource(hub="org/nli", file="some.txt")
    assert newest.fingerprint(Roots()) == {"org/nli": COMMIT}
    assert newest.load(Roots()).manifest.revisions == {"org/nli": COMMIT}


def test_a_pattern_must_match_exactly_one_file(hub_cache: HubCache) -> None:
    files = {f"data/train-0000{number}-of-00002.parquet": NLI for number in (0, 1)}
    hub_cache.add_dataset("org/large", COMMIT, files)

    def source(file: str) -> FileSource:
        return FileSource(
            hub="org/large", revision=COMMIT, file=file, kind=RecordKind.TRIPLET, columns=COLUMNS
        )

    assert len(source("data/train-00000-of-*.parquet").load(Roots())) == len(NLI)
    with refused("org/large", "data/*.parquet", "2"):
        source("data/*.parquet").load(Roots())
    with refused("org/large", "dev.csv"):
        source("dev.csv").load(Roots())


def test_a_file_missing_in_the_cache_is_reported_with_the_download_command(hub_cache: HubCache) -> None:
    for revision in (COMMIT, None):
        with refused("org/other"):
            FileSource(hub="org/other", revision=revision, file="a.txt").load(Roots())


def test_hub_sources_need_no_data_folder_and_local_sources_have_no_revision(tmp_path: Path) -> None:
    assert not FileSource(hub="org/nli", file="some.txt").needs_data_folder(Roots())
    with refused("only", kind=ValidationError):
        FileSource(file="some.txt", revision=COMMIT)
    with refused("pattern", kind=ValidationError):
        FileSource(hub="org/nli", file="some.txt", revision="main")
