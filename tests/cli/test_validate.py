"""`synthbench validate`: every fault at once, with its place and what would be right."""

import pytest
from small_experiment import Place


def test_a_valid_file_is_summed_up(place: Place) -> None:
    called = place.call("validate", place.file)
    assert (called.code, called.err) == (0, "")
    assert called.out == f"{place.file}: valid: 2 variants, seeds 0, 1\n"


def test_overrides_are_validated_with_the_file(place: Place) -> None:
    called = place.call(
        "validate", place.file, "--seeds", "3,4,3", "--variant", "gold-only", "--set", "train.batch_size=4"
    )
    assert (called.code, called.err) == (0, "")
    assert called.out.endswith("valid: 1 variants, seeds 3, 4\n")


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("batch_size: 8\n    l", "batchsize: 8\n    l", 14, "unknown key; did you mean 'batch_size'?"),
        ("rate: 0.02", 'rate: "0.02"', 15, 'train.learning_rate: must be a number, is "0.02"'),
        ("rate: 0.02", "rate: .nan", 15, "train.learning_rate: must be a finite number, is NaN"),
        ("method: augsbert", "method: augsbrt", 25, "unknown method 'augsbrt'; did you mean 'augsbert'?"),
        ("trainer: bi-enc", "trainer: bi-anc", 12, "'bi-ancoder'; did you mean 'bi-encoder'?"),
        ("evaluator: sts, tasks", "evaluator: st, tasks", 20, "did you mean 'sts'?"),
        ("tasks: [test]", "tasks: [tset]", 20, "no source is called 'tset'; did you mean 'test'?"),
        ("{gold: gold, dev", "{gld: gold, dev", 26, "unknown role of the method; did you mean 'gold'?"),
        ("name: bm25", "name: bm26", 27, "bm25"),
        ("k: [1, 2]", "k: [1, 0]", 34, "sampler.k: must be at least 1, is 0"),
        ("variants:\n", "variants:\n  idle: {train.batch_size: 8}\n", 23, "variants.idle: patches nothing"),
        ("split: dev", "split: test", 18, "'dev' is a test set; select on dev"),
        ("seeds: [0, 1]", "seeds: []", 7, "seeds: "),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_file_line_and_cure(
    place: Place, old: str, new: str, line: int, message: str
) -> None:
    place.change(old, new)
    called = place.call("validate", place.file)
    assert (called.code, called.out) == (2, "")
    assert called.errors
    assert all(error.startswith(f"{place.file}:{line}: ") for error in called.errors)
    assert message in called.errors[0]


def test_all_mistakes_are_said_at_once(place: Place) -> None:
    place.change("method: augsbert", "method: augsbrt")
    place.change("max_steps: 8\n    eval", 'max_steps: "8"\n    eval')
    place.change("seeds: [0, 1]", "seeds: [0, 1]\nsedes: 3")
    called = place.call("validate", place.file)
    assert called.code == 2
    assert [error.removeprefix(f"{place.file}:").split(":")[0] for error in called.errors] == [
        "8",
        "17",
        "26",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "train.batch_sise=3"), "unknown key; did you mean 'batch_size'?"),
        (("--set", "seeds"), "--set seeds: must read PATH=VALUE"),
        (("--set", "seeds=[1"), "--set seeds=[1"),
        (("--seeds", "1;2"), "--seeds 1;2: must be whole numbers with commas"),
        (("--seeds", ""), "must be whole numbers"),
        (("--variant", "augsbrt"), "--variant augsbrt: no such variant"),
        (("--profile", "huge"), "--profile huge: no such file"),
    ],
)
def test_wrong_overrides_are_said_like_wrong_files(
    place: Place, arguments: tuple[str, str], message: str
) -> None:
    called = place.call("validate", place.file, *arguments)
    assert (called.code, called.out) == (2, "")
    assert len(called.errors) == 1
    assert message in called.errors[0]


def test_nothing_is_read_or_written(place: Place) -> None:
    for file in ("gold.tsv", "dev.tsv", "test.tsv"):
        (place.folder / file).unlink()
    before = sorted(place.folder.iterdir())
    assert place.call("validate", place.file).code == 0
    assert sorted(place.folder.iterdir()) == before
    assert not place.home.exists()
