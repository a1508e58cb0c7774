"""Registrations before the first score, and what they say after it."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fake_stages import RUNTIME
from fakes import Lines
from faulty_s3 import faulty_s3
from s3 import log_in, make_bucket, s3_server
from shared_stores import new_prefix, on_machine

from synthbench.base.durability import seal, unseal
from synthbench.engine.cleaning import clean
from synthbench.engine.local_executors import InProcess
from synthbench.engine.objects import FolderObjects
from synthbench.engine.plan import Plan
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.store import Store
from synthbench.pipeline.planning import make_plan
from synthbench.registration.declaring import claims, compared, num_primary_columns
from synthbench.registration.history import stored_scores
from synthbench.registration.record import DeclaredSet, Registered, Registration
from synthbench.registration.registering import Registering
from synthbench.registration.stored_registrations import Registrations
from synthbench.reporting.model.registration_note import (
    DECLARED,
    NOT_REGISTERED,
    ROWS_DECLARED,
    registration_notes,
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server with a bucket."""
    with s3_server() as address:
        make_bucket(address)
        yield address


@pytest.fixture(params=["local", "folder", "s3"])
def kind_of_store(request: pytest.FixtureRequest) -> str:
    """The kind of store; tests in which one machine writes at a time leave out S3, which costs seconds."""
    return str(request.param)


@pytest.fixture
def machines(
    kind_of_store: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[Store, Store]:
    """One store as two machines see it."""
    if kind_of_store == "local":
        return Store(tmp_path / "store"), Store(tmp_path / "store")
    name = str(tmp_path / "network")
    if kind_of_store == "s3":
        log_in(monkeypatch, request.getfixturevalue("server"))
        name = new_prefix()
    else:
        Path(name).mkdir()
    return on_machine(name, tmp_path / "here"), on_machine(name, tmp_path / "there")


def registering(plan: Plan, store: Store, *overrides: str) -> Registering:
    return Registering(plan, store, overrides, Lines().say)


def run(
    experiment: ExperimentFile, store: Store, *assignments: str, expect_scores: bool = True
) -> tuple[Registered, RunReport]:
    """Run as `synthbench run` does."""
    plan = make_plan(experiment.load(*assignments))
    own = registering(plan, store, *assignments)
    before: list[int] = []

    def once_read() -> None:
        before.append(len(list(stored_scores(store))))
        assert own.registered is not None

    runner = Runner(store, InProcess(), RUNTIME, Lines())
    report = runner.run(plan, also=own.unread, once_read=once_read)
    own.mark_scored()
    store.addresses.remember(plan.experiment.name, plan.addresses)
    assert before
    assert own.registered is not None
    assert bool(list(stored_scores(store))) is expect_scores
    return own.registered, report


def notes(registered: Registered) -> list[str]:
    return list(registration_notes(registered))


def records(store: Store) -> dict[str, Registration]:
    return dict(Registrations(store, Lines().say).known().records)


@pytest.mark.parametrize("kind_of_store", ["local", "folder"])
def test_comparisons_are_declared_before_the_first_score(
    experiment: ExperimentFile, machines: tuple[Store, Store]
) -> None:
    here, there = machines
    registered, report = run(experiment, here)
    assert notes(registered) == [DECLARED]
    assert report.executed
    again, report = run(experiment, there)
    assert again == registered
    assert not report.executed
    (record,) = records(there).values()
    assert record.seeds == (0, 1)
    assert record.compared == (("silver", "plain"),)
    assert record.num_comparisons == 1
    assert "seeds and test items" in record.rule
    assert "family" in record.rule
    assert [(test.name, test.num_items) for test in record.tests] == [("test", 5)]
    assert record.rows_by_label["silver"].settings["data.silver.size"] == 3
    assert record.rows_by_label["silver"].settings["train.strength"] == 0.5
    assert record.rows_by_label["silver"].code["train fake"] == "version 1"
    assert {"gold", "dev", "org/small"} <= record.rows_by_label["silver"].reads.keys()


def test_the_registration_is_written_before_anything_is_scored(
    experiment: ExperimentFile, store: Store
) -> None:
    plan = make_plan(experiment.load())
    own = registering(plan, store)
    there: list[object] = []

    def once_read() -> None:
        assert own.registered is not None
        there.extend([list(stored_scores(store)), len(records(store))])

    Runner(store, InProcess(), RUNTIME, Lines()).run(plan, once_read=once_read)
    assert there == [[], 1]


def test_invalid_data_register_nothing(experiment: ExperimentFile, store: Store) -> None:
    (experiment.folder / "test.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t7\n")
    plan = make_plan(experiment.load())
    own = registering(plan, store)
    report = Runner(store, InProcess(), RUNTIME, Lines()).run(plan, once_read=lambda: own.registered)
    assert report.is_data_faulty
    assert records(store) == {}


def test_a_changed_setting_is_named_with_the_pilot(experiment: ExperimentFile, store: Store) -> None:
    first, _ = run(experiment, store)
    changed, _ = run(experiment.change("size: 3", "size: 4"), store)
    assert notes(changed) == [
        "Changed after scores had been seen: silver: data.silver.size 3 → 4.",
        "Pilots: study (2 seeds, 1 comparison).",
        "Items seen: test 5 of 5; neither seeds nor items are fresh.",
    ]
    assert records(store)[changed.hash].before == first.hash
    third, _ = run(experiment.change("size: 4", "size: 2"), store, "seeds=[4]")
    assert notes(third)[:2] == [
        "Changed after scores had been seen: seeds 0, 1 → 4; silver: data.silver.size 3 → 2.",
        "Pilots: study (2 seeds, 1 comparison); study (2 seeds, 1 comparison).",
    ]
    back, _ = run(experiment.change("size: 2", "size: 3"), store)
    assert back == first


def test_long_texts_of_strangers_are_cut(experiment: ExperimentFile, store: Store) -> None:
    run(experiment, store)
    (file,) = (store.root / "registrations").glob("*.json")
    stranger = seal({**unseal(file.read_bytes()), "experiment": "long " * 9_999}).encode()
    file.unlink()
    (file.parent / f"{hashlib.sha256(stranger).hexdigest()}.json").write_bytes(stranger)
    registered, _ = run(experiment, store, "seeds=[4]")
    assert max(map(len, notes(registered))) < 1_000


def test_other_seeds_are_fresh_over_seeds_only(experiment: ExperimentFile, store: Store) -> None:
    run(experiment, store)
    fresh, _ = run(experiment, store, "seeds=[2, 3]")
    assert notes(fresh) == [
        "Changed after scores had been seen: seeds 0, 1 → 2, 3.",
        "Pilots: study (2 seeds, 1 comparison).",
        "Items seen: test 5 of 5; the seeds are fresh, which supports claims over seeds only.",
    ]
    more, _ = run(experiment, store, "seeds=[0, 1, 2]")
    assert notes(more)[0] == "Changed after scores had been seen: seeds 0, 1 → 0, 1, 2."
    assert notes(more)[1].startswith("Pilots: study (2 seeds, 1 comparison); study seeds=[2, 3] (2 seeds, ")


def test_other_names_hide_nothing(experiment: ExperimentFile, store: Store) -> None:
    """Another file, name of the experiment, and test file in another order."""
    first, _ = run(experiment, store)
    lines = (experiment.folder / "test.tsv").read_text("utf-8").splitlines()
    (experiment.folder / "copy.tsv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    experiment.change("experiment: study", "experiment: fresh").change("file: test.tsv", "file: copy.tsv")
    again, report = run(experiment, store)
    assert {stage.kind for stage in report.executed} == {"source", "evaluate"}
    assert again == first
    other, _ = run(experiment, store, "seeds=[7]")
    assert notes(other)[:2] == [
        "Changed after scores had been seen: seeds 0, 1 → 7.",
        "Pilots: study (2 seeds, 1 comparison).",
    ]


def test_a_part_of_the_items_is_found(experiment: ExperimentFile, store: Store) -> None:
    lines = (experiment.folder / "test.tsv").read_text("utf-8").splitlines()
    (experiment.folder / "test.tsv").write_text("\n".join(lines[:4]) + "\n")
    run(experiment, store)
    (experiment.folder / "test.tsv").write_text("\n".join(lines) + "\n")
    whole, _ = run(experiment, store)
    assert notes(whole) == [
        "Changed after scores had been seen: test: 3 → 5 items.",
        "Pilots: study (2 seeds, 1 comparison).",
        "Items seen: test 3 of 5; neither seeds nor items are fresh.",
    ]


def test_other_items_have_no_past(experiment: ExperimentFile, store: Store) -> None:
    run(experiment, store)
    lines = (experiment.folder / "test.tsv").read_text("utf-8").splitlines()
    other = [lines[0], *(f"new {line}" for line in lines[1:])]
    (experiment.folder / "test.tsv").write_text("\n".join(other) + "\n")
    fresh, _ = run(experiment, store)
    assert notes(fresh) == [DECLARED]
    assert records(store)[fresh.hash].before == ""


def test_scores_of_another_experiments_rows_are_listed(experiment: ExperimentFile, store: Store) -> None:
    run(experiment, store)
    experiment.change("experiment: study", "experiment: other").change("strength: 0.5", "strength: 0.25")
    other, _ = run(experiment, store)
    assert notes(other) == [
        "Declared after scores on these test items had been seen.",
        "Others on these items: study (2 seeds, 1 comparison).",
        "Items seen: test 5 of 5; neither seeds nor items are fresh.",
    ]


def test_experiments_that_share_an_untrained_row_alone_are_no_pilots_of_each_other(
    experiment: ExperimentFile, store: Store
) -> None:
    experiment.change(
        "variants:",
        "variants:\n  untrained: {data.gold: null, train: {trainer: none, base: {model: sandbox/encoder}}}",
    )
    run(experiment, store)
    experiment.change("experiment: study", "experiment: other").change("strength: 0.5", "strength: 0.25")
    other, _ = run(experiment, store)
    assert notes(other)[0] == "Declared after scores on these test items had been seen."


def test_scores_of_earlier_versions_are_found(experiment: ExperimentFile, store: Store) -> None:
    plan = make_plan(experiment.load())
    Runner(store, InProcess(), RUNTIME, Lines()).run(plan)
    late, report = run(experiment, store)
    assert not report.executed
    assert notes(late) == [
        "Declared after scores on these test items had been seen.",
        "Others on these items: 4 scores without a registration (2 seeds: plain, silver).",
        "Items seen: test 5 of 5; neither seeds nor items are fresh.",
    ]


def test_a_declaration_without_scores_is_held_against_nothing(
    experiment: ExperimentFile, store: Store
) -> None:
    plan = make_plan(experiment.load("seeds=[5]"))
    own = registering(plan, store)
    Runner(store, InProcess(), RUNTIME, Lines()).read(own.unread)
    assert own.registered is not None
    registered, _ = run(experiment, store)
    assert notes(registered) == [DECLARED]
    assert records(store)[registered.hash].before == own.registered.hash
    later, _ = run(experiment, store, "seeds=[6]")
    assert notes(later)[:2] == [
        "Changed after scores had been seen: seeds 0, 1 → 6.",
        "Pilots: study (1 seed, 1 comparison, no scores); study (2 seeds, 1 comparison).",
    ]


@pytest.mark.parametrize("kind_of_store", ["local", "folder"])
def test_scores_that_were_removed_stay_known(
    experiment: ExperimentFile, machines: tuple[Store, Store]
) -> None:
    here, there = machines
    first, _ = run(experiment, here)
    clean(here, 0, ["study"])
    assert list(stored_scores(here)) == []
    other, _ = run(experiment.change("size: 3", "size: 2"), there)
    assert notes(other)[0] == "Changed after scores had been seen: silver: data.silver.size 3 → 2."
    assert "without a score in the store: plain seed 0, plain seed 1, silver seed 0" in notes(other)[1]
    assert first.hash in records(there)


def test_failed_seeds_are_listed(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("size: 3", "size: 3\n    train.fails: user")
    _, report = run(experiment, store)
    assert report.failed
    fewer, _ = run(experiment, store, "seeds=[0]")
    assert notes(fewer)[1] == (
        "Pilots: study (2 seeds, 1 comparison, without a score in the store: silver seed 0, silver seed 1)."
    )


def test_scores_on_dev_data_are_listed_and_not_held_against(experiment: ExperimentFile, store: Store) -> None:
    on_dev = ("sources.test=null", "defaults.evaluate.main.tasks=[dev]", "table.columns=[dev]")
    run(experiment, store, *on_dev)
    registered, _ = run(experiment, store)
    assert notes(registered) == [
        DECLARED,
        "4 earlier scores on the dev data, which are not held against the comparisons.",
    ]


def test_changed_claims_are_named(experiment: ExperimentFile, store: Store) -> None:
    run(experiment, store)
    changed, report = run(experiment, store, "table.compare_to={silver: [plain]}")
    assert not report.executed
    assert notes(changed)[0] == (
        "Changed after scores had been seen: new comparisons: plain − silver;"
        " comparisons left out: silver − plain."
    )
    caption, _ = run(experiment, store, "table.caption=Other words")
    assert notes(caption) == [DECLARED]


GRID = """
grid:
  strength: {weak: {train.strength: 0.1}, strong: {train.strength: 0.9}}
  base: {few: {train.base.num_layers: 1}, many: {train.base.num_layers: 2}}
"""


@pytest.mark.parametrize(
    ("table", "pairs", "columns"),
    [
        (
            "columns: [test]",
            [
                (
                    f"silver [strength={strength}, base={base}]",
                    f"plain [strength={strength}, base={base}]",
                )
                for strength in ("weak", "strong")
                for base in ("few", "many")
            ],
            1,
        ),
        (
            "across: base\n  family: {plain: ['silver [strength=weak]']}",
            [("silver [strength=weak]", "plain [strength=weak]")],
            2,
        ),
        (
            "across: base\n  best: true",
            [
                (f"silver [strength={strength}]", f"plain [strength={strength}]")
                for strength in ("weak", "strong")
            ],
            2,
        ),
        (
            "across: base\n  primary: [test]\n  family: {plain: ['silver [strength=weak]']}",
            [("silver [strength=weak]", "plain [strength=weak]")],
            2,
        ),
        (
            "across: base\n  primary: ['many: test']\n  family: {plain: ['silver [strength=weak]']}",
            [("silver [strength=weak]", "plain [strength=weak]")],
            1,
        ),
    ],
)
def test_rows_of_a_grid_are_compared_at_their_point_and_values_across_are_columns(
    experiment: ExperimentFile, table: str, pairs: list[tuple[str, str]], columns: int
) -> None:
    loaded = experiment.append(GRID).change("columns: [test]", table).load()
    given = claims(loaded)
    assert list(compared(loaded, given)) == pairs
    tests = [
        DeclaredSet(name="test", evaluator="fake", scoring="", stage="a" * 64, items="b" * 64, num_items=5),
    ]
    assert num_primary_columns(loaded, given, tests) == columns


def test_a_row_that_is_the_same_for_all_points_is_compared_at_each(experiment: ExperimentFile) -> None:
    loaded = experiment.append(
        "\ngrid:\n  size: {few: {aliases: {}, variants: {silver: {data.silver.size: 5}}},"
        " many: {aliases: {}, variants: {silver: {data.silver.size: 9}}}}\n"
    ).load()
    assert list(compared(loaded, claims(loaded))) == [
        ("silver [size=few]", "plain"),
        ("silver [size=many]", "plain"),
    ]


def test_all_pairs_of_rows_are_declared_for_the_best_row(experiment: ExperimentFile, store: Store) -> None:
    experiment.change("variants:\n", "variants:\n  copper: {train.strength: 0.9}\n")
    registered, _ = run(experiment, store, "baseline=null", "table.best=true")
    assert notes(registered) == [DECLARED]
    (record,) = records(store).values()
    assert record.compared == (("copper", "silver"),)
    loaded = experiment.load("table.best=true")
    assert list(compared(loaded, claims(loaded))) == [
        ("copper", "plain"),
        ("silver", "plain"),
        ("copper", "silver"),
    ]


def test_a_family_of_all_rows_has_only_those_that_are_compared(experiment: ExperimentFile) -> None:
    experiment.change("variants:\n", "variants:\n  copper: {train.strength: 0.9}\n")
    loaded = experiment.load("table.compare_to={plain: [silver]}", "table.family={plain: []}")
    assert list(compared(loaded, claims(loaded))) == [("silver", "plain")]


def test_without_baselines_or_a_best_row_nothing_is_compared(experiment: ExperimentFile) -> None:
    loaded = experiment.load("table.compare_to={}")
    assert list(compared(loaded, claims(loaded))) == []


@pytest.mark.parametrize("claim", ["family={plain: [silver]}", "primary=[test]", "best=true"])
def test_every_option_that_decides_claims_is_registered(
    experiment: ExperimentFile, store: Store, claim: str
) -> None:
    option = claim.partition("=")[0]
    registered, _ = run(experiment, store, f"table.{claim}")
    assert option in records(store)[registered.hash].claims
    without, _ = run(experiment, store)
    changed = "the same comparisons, named" if option == "family" else option
    assert notes(without)[0].startswith(f"Changed after scores had been seen: {changed} ")


def test_changes_count_from_the_nearest_declaration_before_the_first_score(
    experiment: ExperimentFile, store: Store
) -> None:
    for seeds in ("[0, 1]", "[5]"):
        early = registering(make_plan(experiment.load(f"seeds={seeds}")), store)
        Runner(store, InProcess(), RUNTIME, Lines()).read(early.unread)
        assert early.registered is not None
    run(experiment, store)
    changed, _ = run(experiment, store, "variants.silver.data.silver.size=4")
    assert notes(changed)[0] == "Changed after scores had been seen: silver: data.silver.size 3 → 4."


def test_another_scoring_and_test_set_are_named(experiment: ExperimentFile, store: Store) -> None:
    run(experiment, store)
    changed, _ = run(
        experiment, store, "defaults.evaluate.main.factor=2", "defaults.evaluate.main.tasks=[test, dev]"
    )
    assert notes(changed)[0] == (
        "Changed after scores had been seen: test sets added: dev; test: scored otherwise."
    )


def test_without_a_baseline_rows_are_declared(experiment: ExperimentFile, store: Store) -> None:
    registered, _ = run(experiment, store, "baseline=null", "sources.dev=null", "train.selection=null")
    assert notes(registered) == [ROWS_DECLARED]


def test_old_results_say_that_they_are_not_registered() -> None:
    assert list(registration_notes(None)) == [NOT_REGISTERED]


def test_a_renamed_row_is_no_new_one(experiment: ExperimentFile, store: Store) -> None:
    run(experiment, store)
    changed, _ = run(experiment.change("  silver:\n    data", "  gilded:\n    data"), store)
    assert notes(changed)[0] == "Changed after scores had been seen: row silver renamed gilded."
    for seeds, shown in (("[0]", "0"), ("[7]", "7")):
        also, _ = run(experiment, store, f"seeds={seeds}", "table.compare_to={plain: [gilded]}")
        assert notes(also)[0] == (
            f"Changed after scores had been seen: seeds 0, 1 → {shown}; row silver renamed gilded;"
            " the same comparisons, named otherwise."
        )


def test_a_kill_between_any_two_writes_leaves_whole_registrations(
    experiment: ExperimentFile, machines: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = machines
    plan = make_plan(experiment.load())
    own = registering(plan, store)
    Runner(store, InProcess(), RUNTIME, Lines()).read(own.unread)
    objects = type(own.registrations._objects)
    write, left = objects.write, [0]

    def killed(self: object, key: str, content: bytes) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        write(self, key, content)  # type: ignore[arg-type]

    monkeypatch.setattr(objects, "write", killed)
    for number in range(3):
        left[0] = number
        again = registering(plan, store)
        if number < 2:
            with pytest.raises(KeyboardInterrupt):
                _ = again.registered
            assert records(store) == {}
            continue
        assert again.registered is not None
        assert notes(again.registered) == [DECLARED]
    assert len(records(store)) == 1


@pytest.mark.parametrize("step", ["replace", "sync_folder", "sync_file"])
def test_a_file_is_whole_or_absent(
    experiment: ExperimentFile, store: Store, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    own = registering(make_plan(experiment.load()), store)
    Runner(store, InProcess(), RUNTIME, Lines()).read(own.unread)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        where = "pathlib.Path.replace" if step == "replace" else f"synthbench.engine.objects.{step}"
        patch.setattr(where, killed)
        with pytest.raises(KeyboardInterrupt):
            _ = own.registered
    again = registering(make_plan(experiment.load()), store)
    assert again.registered is not None
    assert notes(again.registered) == [DECLARED]


def test_two_machines_that_register_at_once_are_both_kept(
    experiment: ExperimentFile, machines: tuple[Store, Store]
) -> None:
    plan = make_plan(experiment.load())
    owns = [registering(plan, store) for store in machines]
    for own, store in zip(owns, machines, strict=True):
        Runner(store, InProcess(), RUNTIME, Lines()).read(own.unread)
        assert own.former is None
    found = [own.registered for own in owns]
    assert len(records(machines[0])) == 2
    assert found[0] == found[1]
    registered, _ = run(experiment, machines[1])
    assert registered == found[0]
    assert notes(registered) == [DECLARED]


def test_damaged_and_foreign_registrations_are_said_passed_over_and_counted(
    experiment: ExperimentFile, store: Store
) -> None:
    run(experiment, store)
    folder = store.root / "registrations"
    (whole,) = folder.glob("*.json")
    (folder / f"{'a' * 64}.json").write_bytes(whole.read_bytes())
    foreign = seal({**unseal(whole.read_bytes()), "layout": 9}).encode()
    (folder / f"{hashlib.sha256(foreign).hexdigest()}.json").write_bytes(foreign)
    nested = json.dumps({"checksum": "x"}).encode()
    (folder / f"{hashlib.sha256(nested).hexdigest()}.json").write_bytes(nested)
    (folder / "notes.txt").write_text("a stranger's")
    lines = Lines()
    own = Registering(make_plan(experiment.load("seeds=[4]")), store, (), lines.say)
    assert own.registered is not None
    assert own.registered.history.num_unreadable == 3
    assert "3 registrations in the store could not be read." in notes(own.registered)
    said = [line for line in lines.said if "passed over" in line]
    assert len(said) == 3
    assert any("does not have this hash" in line for line in said)
    assert any("not a registration of this version: layout" in line for line in said)


def forge(store: Store, **of_its_test: str) -> None:
    """Add a registration that a peer has edited; its hash and its seal are right."""
    folder = store.root / "registrations"
    (whole,) = folder.glob("*.json")
    found = unseal(whole.read_bytes())
    found["tests"][0].update(of_its_test)
    content = seal(found).encode()
    (folder / f"{hashlib.sha256(content).hexdigest()}.json").write_bytes(content)


@pytest.mark.parametrize("items", ["", ".", "\0", "a" * 300, "A" * 64, "../../../../../../etc/hostname"])
def test_a_registration_whose_items_have_no_hash_as_a_name_is_passed_over(
    experiment: ExperimentFile, store: Store, items: str
) -> None:
    run(experiment, store)
    forge(store, items=items)
    lines = Lines()
    own = Registering(make_plan(experiment.load("seeds=[4]")), store, (), lines.say)
    assert own.registered is not None
    assert own.registered.history.num_unreadable == 1
    (said,) = [line for line in lines.said if "passed over" in line]
    assert "not a registration of this version: tests.0.items" in said


def test_keys_of_items_that_are_no_whole_numbers_are_unknown(
    experiment: ExperimentFile, store: Store
) -> None:
    run(experiment, store)
    cut = b"a key and a half"[:12]
    name = hashlib.sha256(cut).hexdigest()
    (store.root / "registrations" / "items" / name).write_bytes(cut)
    forge(store, items=name)
    own = registering(make_plan(experiment.load("seeds=[4]")), store)
    assert own.registered is not None
    assert own.registered.history.num_unreadable == 1


def test_a_label_with_thousands_of_digits_is_no_seed(experiment: ExperimentFile, store: Store) -> None:
    run(experiment, store)
    for file in (store.root / "registrations").glob("*.json"):
        file.unlink()  # so that the scores belong to no registration
    identity = next(stored_scores(store)).identity
    file = store.folder(identity) / "stage.json"
    record = unseal(file.read_bytes())
    file.write_text(seal({**record, "label": f"evaluate plain seed {'9' * 5000} on test"}))
    own = registering(make_plan(experiment.load("seeds=[4]")), store)
    assert own.registered is not None
    assert own.registered.history.num_unregistered_seeds == 2


def test_lost_keys_of_items_are_made_again(experiment: ExperimentFile, store: Store) -> None:
    run(experiment, store)
    for file in (store.root / "registrations" / "items").iterdir():
        file.write_bytes(b"damaged")
    clean(store, 0, ["study"])
    other, _ = run(experiment, store, "seeds=[0]")
    assert notes(other)[0] == "Changed after scores had been seen: seeds 0, 1 → 0."


def test_an_unsteady_object_store_registers_once(
    experiment: ExperimentFile, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_s3(server) as faults:
        log_in(monkeypatch, faults.address)
        store = on_machine(new_prefix(), tmp_path / "here")
        plan = make_plan(experiment.load())
        Runner(store, InProcess(), RUNTIME, Lines()).read(registering(plan, store).unread)
        faults.next("PUT", "registrations/", "503", "lost", "closed", "500")
        faults.next("GET", "registrations", "503", "closed")
        registered = registering(plan, store).registered
        assert registered is not None
        assert [*records(store)] == [registered.hash]
        assert {"503", "lost", "closed"} <= faults.counts().keys()


def test_an_experiment_without_test_sets_registers_nothing(experiment: ExperimentFile, store: Store) -> None:
    plan = make_plan(experiment.load())
    bare = replace(plan, runs=[replace(each, evaluations={}) for each in plan.runs])
    own = registering(bare, store)
    assert own.registered is None
    own.mark_scored()
    assert records(store) == {}


def test_a_local_store_needs_no_hard_links(
    experiment: ExperimentFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> bool:
        raise AssertionError("creates a link")

    monkeypatch.setattr(FolderObjects, "create", refused)
    assert notes(run(experiment, store)[0]) == [DECLARED]
