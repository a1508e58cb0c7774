import hashlib
from typing import Any

import pytest
from fake_stages import Work
from hypothesis import given
from hypothesis import strategies as st
from wording import refused

from synthbench.engine.stage import Stage, difference

VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
CONFIGS = st.dictionaries(st.text(), VALUES | st.lists(VALUES), max_size=5)
SOURCE = Stage(Work("source", reads={"gold.tsv": "ab12"}))


def trained(**changes: Any) -> Stage:
    settings = changes.pop("settings", {"rate": 2e-5, "seed": 0})
    return Stage(Work("trainer", settings, **changes), {"data:0": SOURCE}, "for a row")


def test_an_identity_is_the_sha_256_of_sorted_json_of_everything_that_affects_the_result() -> None:
    source = (
        '{"component": "source", "config": {}, "inputs": [], "kind": "work",'
        ' "outside": {"gold.tsv": "ab12"}, "version": 1}'
    )
    source_identity = hashlib.sha256(source.encode()).hexdigest()
    text = (
        '{"component": "trainer", "config": {"rate": 2e-05, "seed": 0},'
        f' "inputs": [["data:0", "{source_identity}"]], "kind": "work", "outside": {{}}, "version": 1}}'
    )
    assert SOURCE.identity == source_identity
    assert trained().identity == hashlib.sha256(text.encode()).hexdigest()


def test_the_identity_of_a_stage_is_pinned() -> None:
    """If this fails, all existing stores must recompute every artifact."""
    assert SOURCE.identity.startswith("22bbcab1e86b8971")
    assert trained().identity.startswith("0889184c6d4e3d43")


@given(config=CONFIGS)
def test_the_order_of_configuration_keys_does_not_change_the_identity(config: dict[str, Any]) -> None:
    backwards = dict(reversed(config.items()))
    assert trained(settings=config).identity == trained(settings=backwards).identity


@given(one=CONFIGS, other=CONFIGS)
def test_different_configurations_have_different_identities(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert (trained(settings=one).spec == trained(settings=other).spec) or (
        trained(settings=one).identity != trained(settings=other).identity
    )


def test_a_label_does_not_change_the_identity() -> None:
    assert Stage(Work("a"), label="for one").identity == Stage(Work("a"), label="for another").identity


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": {"rate": 1e-5, "seed": 0}}, "rate 2e-05 -> 1e-05"),
        ({"settings": {"rate": 2e-5, "seed": 1}}, "seed 0 -> 1"),
        ({"settings": {"rate": 2e-5, "seed": 0, "more": {"deep": "x"}}}, 'more.deep absent -> "x"'),
        ({"settings": {"rate": 2e-5}}, "seed 0 -> absent"),
        ({"version": 2}, "version 1 -> 2"),
        ({"reads": {"model": "abc"}}, "changed outside: model"),
        ({"settings": {"rate": 1e-5, "seed": 0}, "version": 3}, "version 1 -> 3; rate 2e-05 -> 1e-05"),
    ],
)
def test_a_change_that_affects_the_result_changes_the_identity_and_is_described(
    change: dict[str, Any], words: str
) -> None:
    changed = trained(**change)
    assert changed.identity != trained().identity
    assert difference(trained().spec, changed.spec) == words


def test_a_changed_input_changes_everything_that_depends_on_it() -> None:
    other = Stage(Work("source", reads={"gold.tsv": "cd34"}))
    changed = Stage(trained().operation, {"data:0": other})
    assert changed.identity != trained().identity
    assert difference(trained().spec, changed.spec) == "input changed: data:0"
    assert difference(SOURCE.spec, other.spec) == "changed outside: gold.tsv"


def test_nan_in_a_configuration_is_refused() -> None:
    with refused("JSON", kind=ValueError):
        _ = trained(settings={"rate": float("nan")}).identity


def test_a_key_in_a_command_is_neither_stored_nor_shown() -> None:
    old, new = (
        trained(settings={"llm": {"command": ["serve", "--port", "{port}", "--api-key", key]}, "size": 1})
        for key in ("hush", "hush-hush")
    )
    assert old.identity != new.identity
    assert old.stored_spec["config"]["llm"]["command"][3:] == ["--api-key", "***"]
    assert old.stored_spec | {"config": 0} == old.spec | {"config": 0}
    assert difference(old.stored_spec, new.spec) == difference(old.spec, new.stored_spec)
    assert difference(old.spec, new.spec) == "a key or password in its settings"
