from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wording import refused

from synthbench.base.errors import UserError
from synthbench.config.documents import (
    Document,
    expand_dotted,
    flatten,
    merge,
    parse_document,
    read_document,
    without_nulls,
)

KEYS = st.sampled_from(["a", "b", "c"])
TREES = st.recursive(st.integers() | st.booleans(), lambda inner: st.dictionaries(KEYS, inner), max_leaves=8)
MAPPINGS = st.dictionaries(KEYS, TREES)


def fault_of(file: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_document(file)
    (message,) = caught.value.messages
    return message.removeprefix(f"{file.parent}/")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2e-5", 2e-5),
        ("1e5", 1e5),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("010", 10),
        ("2024-01-31", "2024-01-31"),
        ("~", None),
        ("'3'", "3"),
    ],
)
def test_scalars_follow_yaml_1_2_and_dates_are_text(text: str, value: object) -> None:
    found = parse_document(f"key: {text}\n", "x.yaml").data["key"]
    assert found == value
    assert type(found) is type(value)


def test_an_anchored_value_is_the_same_at_its_alias() -> None:
    data = parse_document("a: &flag true\nb: *flag\nc: &rate 2e-5\nd: *rate\n", "x.yaml").data
    assert data == {"a": True, "b": True, "c": 2e-5, "d": 2e-5}
    assert type(data["a"]) is type(data["b"]) is bool


def test_every_key_and_item_has_its_line() -> None:
    document = parse_document("a:\n  b:\n  - 1\n  - c: 2\n", "x.yaml")
    assert document.location(("a", "b", 1, "c")) == "x.yaml:4"
    assert document.location(("a", "b", 0)) == "x.yaml:3"


def test_a_missing_key_has_the_location_of_its_section() -> None:
    document = parse_document("x: 1\na:\n  b: 1\n", "x.yaml")
    assert document.location(("a", "missing", "deeper")) == "x.yaml:2"
    assert document.location(("nowhere",)) == "x.yaml:1"


def test_a_merge_key_keeps_values_and_their_lines() -> None:
    text = "base: &base\n  a: 1\n  b: {c: 2}\nmore: &more {d: 4}\nuse:\n  <<: [*base, *more]\n  a: 3\n"
    document = parse_document(text, "x.yaml")
    assert document.data["use"] == {"a": 3, "b": {"c": 2}, "d": 4}
    locations = [document.location(("use", key)) for key in ("a", "b", "d")]
    assert locations == ["x.yaml:7", "x.yaml:3", "x.yaml:4"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "x.yaml:1: must be a mapping of keys to values, is empty"),
        ("# nothing\n", "x.yaml:1: must be a mapping of keys to values, is empty"),
        ("- a\n", "x.yaml:1: must be a mapping of keys to values, is a list"),
        ("just words\n", "x.yaml:1: must be a mapping of keys to values, is a str"),
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3: a: is given twice"),
        ("a:\n\t- b\n", "x.yaml:2: not valid YAML: found character '\\t' that cannot start any token"),
        ("a: [1,\nb: 2\n", "not valid YAML"),
        ("a: b: c\n", "x.yaml:1: not valid YAML"),
        ("a: 1\nb: *gone\n", "x.yaml:2: not valid YAML: found undefined alias 'gone'"),
        (
            "a: 1\n---\nb: 2\n",
            "x.yaml:2: not valid YAML: expected a single document in the stream but found another",
        ),
        ("a: 1\nb:\n  c: !!set {x}\n", "x.yaml:3: b.c: tags such as !!set"),
        (
            "a: " + "[" * 400 + "]" * 400 + "\n",
            "x.yaml:1: not valid YAML: nested too deeply: more than 50 levels",
        ),
        ("a: \x01\n", "x.yaml:1: not valid YAML: the character U+0001 is not allowed"),
    ],
)
def test_a_file_that_is_no_yaml_mapping_is_reported_in_one_line_with_its_location(
    tmp_path: Path, text: str, fault: str
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text, encoding="utf-8")
    message = fault_of(file)
    assert fault in message
    assert "\n" not in message


def test_bytes_that_are_not_utf_8_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes("a: 1\nb: Schütze\n".encode("latin-1"))
    assert fault_of(file) == "x.yaml:2: not UTF-8 (byte 0xFC)"


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_document(tmp_path / "x.yaml").data == {"a": 1}


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert fault_of(tmp_path / "gone.yaml") == "gone.yaml: no such file"
    (tmp_path / "folder").mkdir()
    assert "is a folder" in fault_of(tmp_path / "folder")


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        file = folder / f"{name}.yaml"
        file.write_text(text, encoding="utf-8")
    return folder / f"{next(iter(texts))}.yaml"


def test_a_files_values_override_its_includes_and_keep_their_file(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    write(tmp_path / "shared", middle="include: [deep.yaml]\nb: 2\nm: {x: 1}\n", deep="a: 1\nb: 1\n")
    main = write(tmp_path, main="include: [shared/middle.yaml]\nc: 3\nm:\n  y: 2\n")
    document = read_document(main)
    assert document.data == {"a": 1, "b": 2, "m": {"x": 1, "y": 2}, "c": 3}
    locations = {key: document.location((key,)).removeprefix(f"{tmp_path}/") for key in ("a", "b", "c")}
    assert locations == {"a": "shared/deep.yaml:1", "b": "shared/middle.yaml:2", "c": "main.yaml:2"}
    assert document.location(("m", "x")).endswith("middle.yaml:3")
    assert document.location(("m", "y")).endswith("main.yaml:4")


def test_later_includes_override_earlier_ones(tmp_path: Path) -> None:
    main = write(tmp_path, main="include: [one.yaml, two.yaml]\n", one="a: 1\nb: 1\n", two="b: 2\n")
    assert read_document(main).data == {"a": 1, "b": 2}


def test_a_null_removes_an_included_value(tmp_path: Path) -> None:
    main = write(tmp_path, main="include: [one.yaml]\na: null\n", one="a: 1\nb: 2\n")
    assert without_nulls(read_document(main).data) == {"b": 2}


def test_a_cycle_of_includes_is_shown_completely(tmp_path: Path) -> None:
    main = write(tmp_path, a="include: [b.yaml]\n", b="include: [a.yaml]\n")
    assert fault_of(main).endswith("b.yaml:1: include: includes itself: a.yaml -> b.yaml -> a.yaml")


def test_a_file_included_twice_is_no_cycle(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        a="include: [b.yaml, c.yaml]\n",
        b="include: [d.yaml]\n",
        c="include: [d.yaml]\n",
        d="x: 1\n",
    )
    assert read_document(main).data == {"x": 1}


@pytest.mark.parametrize("include", ["gone.yaml", "[gone.yaml]", "[3]"])
def test_an_include_that_can_not_be_read_is_named_at_its_line(tmp_path: Path, include: str) -> None:
    main = write(tmp_path, main=f"a: 1\ninclude: {include}\n")
    assert fault_of(main).startswith("main.yaml:2: include: ")


def test_dotted_keys_are_nested_and_keep_their_location() -> None:
    document = expand_dotted(parse_document("a.b:\n  c: 1\na.d: 2\n", "x.yaml"))
    assert document.data == {"a": {"b": {"c": 1}, "d": 2}}
    assert document.location(("a", "b", "c")) == "x.yaml:2"
    assert document.location(("a", "d")) == "x.yaml:3"


@pytest.mark.parametrize("text", ["a: {b: 1}\na.b: 2\n", "a: 1\na.b: 2\n", "a.b: 1\na: {b: {c: 2}}\n"])
def test_a_value_given_both_dotted_and_nested_is_an_error(text: str) -> None:
    with refused("x.yaml:2"):
        expand_dotted(parse_document(text, "x.yaml"))


def test_merging_replaces_lists_and_scalars_and_merges_mappings() -> None:
    under = Document({"a": {"x": 1, "y": [1, 2]}, "b": 1})
    assert merge(under, Document({"a": {"y": [3]}, "c": 2})).data == {"a": {"x": 1, "y": [3]}, "b": 1, "c": 2}


def test_null_removes_a_key_at_any_depth() -> None:
    under = Document({"a": {"x": 1, "y": 2}, "b": 1})
    assert merge(under, Document({"a": {"x": None}, "b": None, "new": {"z": None}})).data == {
        "a": {"y": 2},
        "new": {},
    }


def test_naming_another_component_replaces_the_section_and_naming_the_same_one_merges() -> None:
    under = Document({"sampler": {"name": "bm25", "k": 3}})
    other = Document({"sampler": {"name": "random", "size": 10}})
    same = Document({"sampler": {"name": "bm25", "k": 5}})
    assert merge(under, other).data == {"sampler": {"name": "random", "size": 10}}
    assert merge(under, same).data == {"sampler": {"name": "bm25", "k": 5}}


@pytest.mark.parametrize("name", ["method", "trainer", "source", "name"])
def test_an_axis_may_have_the_name_of_a_components_key(name: str) -> None:
    under = Document({"grid": {name: {"a": {"x": 1}}, "other": {"b": {}}}})
    over = Document({"grid": {name: {"a": {"y": 2}}}})
    assert merge(under, over).data == {"grid": {name: {"a": {"x": 1, "y": 2}}, "other": {"b": {}}}}


def test_a_replaced_section_drops_the_old_locations() -> None:
    under = parse_document("s:\n  name: a\n  k: 3\n", "under.yaml")
    over = parse_document("s:\n  name: b\n", "over.yaml")
    assert merge(under, over).location(("s", "k")) == "over.yaml:1"


@given(under=MAPPINGS, over=MAPPINGS)
def test_merging_twice_equals_merging_once(under: dict[str, Any], over: dict[str, Any]) -> None:
    once = merge(Document(under), Document(over))
    assert merge(once, Document(over)).data == once.data


@given(data=MAPPINGS)
def test_merging_over_nothing_changes_nothing(data: dict[str, Any]) -> None:
    assert merge(Document({}), Document(data)).data == data
    assert merge(Document(data), Document({})).data == data


@given(data=MAPPINGS)
def test_flattened_leaves_expand_to_the_same_data(data: dict[str, Any]) -> None:
    leaves = dict(flatten(data))
    assert expand_dotted(Document(leaves)).data == data


def test_keys_of_sources_are_settings_of_a_method() -> None:
    """A method may have a setting `task`: a patch of it leaves the method and its other settings."""
    section = {"method": "dino", "task": {"labels": {"a": 1}}, "decay": 100}
    assert merge(Document(section), Document({"task": "nli"})).data == {**section, "task": "nli"}
    assert merge(Document(section), Document({"task": {"labels": {"a": 2}}})).data == {
        **section,
        "task": {"labels": {"a": 2}},
    }
    assert merge(Document(section), Document({"source": "gold"})).data == {"source": "gold"}
    source = Document({"task": "STSb", "split": "dev"})
    assert merge(source, Document({"task": "STS12"})).data == {"task": "STS12"}
