"""Odd YAML: never a traceback, and one line with file and line wherever the text has lines."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel
from shipped_files import SHIPPED
from small_experiment import Project
from wording import refused

from synthbench.base import yaml_loading
from synthbench.base.errors import UserError
from synthbench.base.yaml_loading import load_yaml
from synthbench.config.documents import expand_dotted, parse_document, read_document
from synthbench.plugins.settings_files import parsed_settings

NUM_DOCUMENTS = 1_000


class Settings(BaseModel):
    a: int = 0
    b: dict[str, str] = {}


class Merged(BaseModel):
    d: dict[str, str]


def whole(text: str, name: str) -> object:
    """Read a text as a patch of an experiment file is read."""
    document = parse_document(text, name)
    return expand_dotted(document) if isinstance(document.data, dict) else document


READERS: dict[str, Callable[[str, str], object]] = {
    "experiment": whole,
    "plain": lambda text, name: load_yaml(text, name),
    "settings": lambda text, name: parsed_settings(text, name, Settings),
}

HAS_NO_TEXT_KEY = "x.yaml:2: a key must be text, is "
FAULTS = {
    "a: 1\n? {b: {c: d}}\n: e\n": f"{HAS_NO_TEXT_KEY}a mapping",
    "a: 1\n? [b, c]\n: e\n": f"{HAS_NO_TEXT_KEY}a list",
    "a: 1\n? - b\n  - c\n: e\n": f"{HAS_NO_TEXT_KEY}a list",
    "a: 1\n~: e\n": f"{HAS_NO_TEXT_KEY}empty",
    "a: 1\nnull: e\n": f"{HAS_NO_TEXT_KEY}null",
    "a: 1\n? !!set {b}\n: e\n": f"{HAS_NO_TEXT_KEY}a mapping",
    "a:\n  b: {[1, 2]: 3}\n": "x.yaml:2: a.b: a key must be text, is a list",
    "a: 1\na: 2\n": "x.yaml:2: a: is given twice",
    "1: a\n'1': b\n": "x.yaml:2: 1: is given twice",
    "1: a\n1.0: b\n": "x.yaml:2: 1.0: is given twice",
    "true: a\nTrue: b\n": "x.yaml:2: True: is given twice",
    "a:\n  c: 1\n  c: 2\n": "x.yaml:3: a.c: is given twice",
    "a: 1\nb: {c: 1_0}\n": "x.yaml:2: b.c: YAML 1.2 has no numbers with `_`",
    "a: [2_5.5]\n": "x.yaml:1: a.0: YAML 1.2 has no numbers with `_`",
    "2019_2020: a\n": "x.yaml:1: 2019_2020: YAML 1.2 has no numbers with `_`",
    "a: &x {b: 1}\nc:\n  <<: *x\n  <<: *x\n": "x.yaml:4: c.<<: is given twice",
    "a: &x 1\nb: &x 2\nc: *x\n": "x.yaml:2: not valid YAML: the anchor &x is defined twice",
    "a: !!python/object:os.system {}\n": "x.yaml:1: a: tags such as !!python/object:os.system",
    "a: !!python/name:os.system\n": "x.yaml:1: a: tags such as !!python/name:os.system",
    "a: [1, !mine 2]\n": "x.yaml:1: a.1: tags such as !mine",
    "a: !!set {b, c}\n": "x.yaml:1: a: tags such as !!set",
    "a: !!omap [b: 1]\n": "x.yaml:1: a: tags such as !!omap",
    "a: !!omap b\n": "x.yaml:1: a: tags such as !!omap",
    "a: !!pairs [b: 1]\n": "x.yaml:1: a: tags such as !!pairs",
    "a: !!binary aGk=\n": "x.yaml:1: a: tags such as !!binary",
    "a: !!str {b: c}\n": "x.yaml:1: a: tags such as !!str",
    "a: !!bool b\n": "x.yaml:1: not valid YAML: 'b' is no !!bool",
    "a: !!int b\n": "x.yaml:1: not valid YAML: invalid literal for int()",
    "a: 2020-13-45\n": "x.yaml:1: not valid YAML: month must be in 1..12",
    "a: &x [*x]\n": "x.yaml:1: not valid YAML: an alias is inside the value that it stands for",
    "a: &x {b: *x}\n": "x.yaml:1: not valid YAML: an alias is inside the value that it stands for",
    "a: 1\nb: *gone\n": "x.yaml:2: not valid YAML: found undefined alias 'gone'",
    "a: 1\n<<: 5\n": "x.yaml:2: not valid YAML: expected a mapping or list of mappings for merging",
    "a:\n\tb: 1\n": "x.yaml:2: not valid YAML: found character '\\t'",
    "a: 1\nb: \0c\n": "x.yaml:2: not valid YAML: the character U+0000 is not allowed",
    "a: 1\nb: \x07\n": "x.yaml:2: not valid YAML: the character U+0007 is not allowed",
    "a: 1\nb: \uffff\n": "x.yaml:2: not valid YAML: the character U+FFFF is not allowed",
    'a: 1\nb: "\\ud800"\n': "x.yaml:2: not valid YAML: half a character",
    "a: 1\nb: [1, 2\n": "x.yaml:2: not valid YAML: expected ',' or ']'",
    'a: 1\nb: "c\n': "x.yaml:2: not valid YAML: found unexpected end of stream",
    "a: 1\n---\nb: 2\n": "x.yaml:2: not valid YAML: expected a single document in the stream",
    "%YAML 3.0\n---\na: 1\n": "x.yaml:1: not valid YAML: found incompatible YAML document",
    "a: " + "9" * 200: "x.yaml:1: not valid YAML: a number of 200 digits",
    "".join("  " * level + "a:\n" for level in range(2_000)): "x.yaml:51: not valid YAML: nested too deeply",
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize(("text", "fault"), FAULTS.items(), ids=[repr(text)[:40] for text in FAULTS])
def test_values_that_are_no_plain_data_are_reported_in_one_line(
    text: str, fault: str, reader: Callable[[str, str], object]
) -> None:
    with pytest.raises(UserError) as caught:
        reader(text, "x.yaml")
    (message,) = caught.value.messages
    assert message.startswith(fault)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("2: a\ntrue: b\n2020-01-01: c\n1.5: d\n", {"2": "a", "True": "b", "2020-01-01": "c", "1.5": "d"}),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}\n", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("a: !!str 1\nb: !!int '2'\n", {"a": "1", "b": 2}),
        ('a: "\\U0001F600"\n\u00e9: \U0001f600\n', {"a": "\U0001f600", "\u00e9": "\U0001f600"}),
        ("a: ''\nb: ~\nc:\n", {"a": "", "b": None, "c": None}),
    ],
)
def test_plain_data_are_read_unchanged(text: str, data: object) -> None:
    assert parse_document(text, "x.yaml").data == data


@pytest.mark.parametrize("comment", ["", " # a\ttab"], ids=["in C", "in Python"])
def test_merged_keys_come_last_in_experiments_and_first_in_a_plugins_file(comment: str) -> None:
    text = f"a: 1{comment}\nb: &b {{x: x, y: y}}\nc: &c {{z: z, y: c}}\nd: {{v: v, <<: [*b, *c], x: d}}\n"
    merged = {"v": "v", "x": "d", "y": "y", "z": "z"}
    for found, order in [
        (parse_document(text, "x.yaml").data["d"], "vxyz"),
        (parsed_settings(text, "x.yaml", Merged).d, "zyxv"),
    ]:
        assert found == merged
        assert "".join(found) == order


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        file.write_bytes("a: 1\nb: 2\n".encode(encoding))
        with refused("x.yaml:1"):
            read_document(file)


KEYS = (
    *(
        "a",
        "b.c",
        "1",
        "1.5",
        "true",
        "null",
        "~",
        "2020-01-01",
        "? ",
        "? [a]",
        "? {a: b}",
        "? - x",
        "*x ",
        "&x a",
    ),
    *("<<", "!!int 1", "!t k", '"q"', "'s'", "", "- ", "[a]", "{a: b}", "\u00e9", ".nan", "0x1F", "=", "on"),
    *('"\\ud800"', "k" * 1_100),
)
VALUES = (
    *(
        "1",
        "x",
        "[1, 2]",
        "{a: b}",
        "*x",
        "&x 1",
        "&x [*x]",
        "!!set {a}",
        "!!omap [a: 1]",
        "!!binary aGk=",
        "!!binary %",
    ),
    *(
        "!!python/object:os.system {}",
        "!!int x",
        "!!float x",
        "!!bool x",
        "!!null x",
        "!!timestamp x",
        "!!str [a]",
    ),
    *(
        "!!map [a]",
        "!!seq {a: 1}",
        "!!pairs [a: 1]",
        "2020-13-01",
        "2020-01-01T10:00:00+99:00",
        "9" * 120,
        "1e999",
    ),
    *(
        ".nan",
        '"\\q"',
        '"\\ud800"',
        '"open',
        "'open",
        "[1",
        "{a",
        "|\n  x",
        "|9\n x",
        ">-\n  x\n y",
        "@x",
        "`x",
        "%x",
    ),
    *(
        "!",
        "!<>",
        "!a!b c",
        "&",
        "*",
        "# c",
        "- x",
        "? x",
        "a: b",
        "null",
        "",
        "\t1",
        "\0",
        "\ufffe",
        "\u2028",
        "\x85",
    ),
    *(
        "[[[[",
        "]",
        "}",
        "<<: *x",
        "{<<: *x}",
        "{<<: 1}",
        "&y {a: 1}",
        "*y",
        "0b11",
        "0o8",
        "1:2:3",
        "!!value =",
        "\ufeff",
    ),
    *("{? a : b}", "{? [a] : b}", "[a: b, c]", "[,]", "{,}", '"a\nb"', "---", "..."),
)
HEADS = (
    "",
    "",
    "",
    "%YAML 1.1\n---\n",
    "%YAML 3.0\n---\n",
    "%TAG ! tag:x:\n---\n",
    "%FOO\n---\n",
    "\ufeff",
    "--- &x\n",
)
TAILS = ("", "", "", "\n---\na: 1\n", "\n...\nx\n", "\0", "\n\t", "\n  x: 1\n", "\r")


def document(chance: random.Random) -> str:
    text = chance.choice(HEADS) + block(chance, 0) + chance.choice(TAILS)
    if chance.random() < 0.2:
        position = chance.randrange(len(text) + 1)
        text = text[:position] + chance.choice("\t\0[]{}&*!|>'\"%@`,:?-#\n\r\\ ") + text[position:]
    return text


def block(chance: random.Random, depth: int) -> str:
    lines = []
    for number in range(chance.randint(1, 4)):
        indent = "  " * depth if chance.random() < 0.95 else chance.choice([" ", "\t", "   "])
        key = chance.choice(KEYS) if chance.random() < 0.3 else f"k{number}"
        value = chance.choice(VALUES) if chance.random() < 0.5 else "text of it"
        if chance.random() < 0.25 and depth < 3:
            lines.append(f"{indent}{key}:\n{block(chance, depth + 1)}")
        elif key.startswith("?"):
            lines.append(f"{indent}{key}\n{indent}: {value}")
        else:
            lines.append(f"{indent}{key}{chance.choice([': ', ': ', ':', ' : ', ''])}{value}")
    return "\n".join(lines)


def test_a_thousand_odd_documents_are_read_or_refused_with_locations() -> None:
    chance = random.Random(0)
    num_read, readers = 0, list(READERS.values())
    for number in range(NUM_DOCUMENTS):
        text = document(chance)
        num_lines = max(1, len(text.splitlines()))
        try:
            readers[number % len(readers)](text, "x.yaml")
            num_read += 1
        except UserError as error:
            for message in error.messages:
                found = re.match(r"x\.yaml:(\d+): .", message)
                assert found, (text, message)
                assert 1 <= int(found[1]) <= num_lines, (text, message)
                assert "\n" not in message
    assert NUM_DOCUMENTS // 50 < num_read < NUM_DOCUMENTS // 2


def outcome(text: str) -> object:
    try:
        data, lines = yaml_loading.load_with_lines(text, "x.yaml")
    except UserError as error:
        return error.messages
    return repr(data), lines


def test_the_c_parser_agrees_with_the_pure_python_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    shipped = [SHIPPED[name].read_text(encoding="utf-8") for name in ("quickstart", "augsbert_table9_10")]
    texts = [*shipped, "a: !\nb: [x, !]\n", *(document(chance) for _ in range(NUM_DOCUMENTS // 4))]
    in_c = [outcome(text) for text in texts]
    monkeypatch.setattr(yaml_loading, "_NOT_FOR_C", re.compile(""))
    assert in_c == [outcome(text) for text in texts]


def test_odd_documents_in_an_experiment_file_are_refused_by_the_command(project: Project) -> None:
    original = project.file.read_text(encoding="utf-8")
    for text in list(FAULTS)[::4]:
        project.file.write_text(
            f"{original}odd:\n  {text.replace(chr(10), chr(10) + '  ')}\n", encoding="utf-8"
        )
        called = project.call("validate", project.file)
        assert (called.code, called.out) == (2, ""), text
        assert called.errors, text
        assert all(line.startswith(f"{project.file}:") for line in called.errors), (text, called.errors)
