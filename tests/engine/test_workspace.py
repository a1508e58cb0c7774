import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from disks import flip
from hypothesis import given, settings
from hypothesis import strategies as st
from wording import refused

from synthbench.engine.workspace import Journal, is_whole

ENTRIES = st.lists(
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=8), max_size=3), max_size=4
)


def journal_in(folder: str | Path) -> Journal:
    return Journal(Path(folder) / "journal.jsonl")


@settings(max_examples=25)
@given(entries=ENTRIES)
def test_entries_are_read_back_unchanged(entries: list[dict[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal = journal_in(folder)
        for entry in entries:
            journal.append(entry)
        assert list(journal.read()) == entries


@settings(max_examples=25)
@given(entries=ENTRIES, draw=st.randoms())
def test_entries_are_found_by_offset_in_any_order(
    entries: list[dict[str, object]], draw: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal = journal_in(folder)
        for entry in entries:
            journal.append(entry)
        located = list(journal.located())
        draw.shuffle(located)
        assert list(journal.at(place for place, _ in located)) == [entry for _, entry in located]


def test_a_discarded_journal_is_empty_and_usable(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    for entry in ({"old": 1}, {"new": 1}):
        journal.discard()
        journal.append(entry)
    assert list(journal.read()) == [{"new": 1}]


def test_a_journal_cut_at_any_byte_keeps_its_complete_lines(tmp_path: Path) -> None:
    entries: list[dict[str, object]] = [
        {"key": "one", "n": 1},
        {"key": "Schütze", "records": [{"score": 0.5}]},
        {},
    ]
    journal = journal_in(tmp_path)
    ends = []
    for entry in entries:
        journal.append(entry)
        ends.append(journal.file.stat().st_size)
    content = journal.file.read_bytes()
    for cut in range(len(content) + 1):
        journal.file.write_bytes(content[:cut])
        whole = entries[: sum(end <= cut for end in ends)]
        assert journal.repair() == 0
        assert list(journal.read()) == whole
        journal.append({"new": 1})
        assert list(journal.read()) == [*whole, {"new": 1}]


def test_a_journal_that_was_never_written_is_empty(tmp_path: Path) -> None:
    assert list(journal_in(tmp_path).read()) == []
    assert not (tmp_path / "journal.jsonl").exists()


@pytest.mark.parametrize("rubbish", [b"\x00\x00\x00", b"\xff\xfe\n", b"[1]\n", b"{\n", b"\n"])
def test_invalid_data_at_the_end_are_dropped(tmp_path: Path, rubbish: bytes) -> None:
    journal = journal_in(tmp_path)
    journal.append({"a": 1})
    with journal.file.open("ab") as stream:
        stream.write(rubbish)
    assert journal.repair() == rubbish.count(b"\n")
    assert list(journal.read()) == [{"a": 1}]
    journal.append({"b": 2})
    assert list(journal.read()) == [{"a": 1}, {"b": 2}]


def test_every_flipped_bit_of_a_line_is_noticed(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.append({"key": "unit 0", "score": 0.5})
    line = journal.file.read_bytes()
    assert is_whole(line)
    for place in range(len(line)):
        for bit in range(8):
            damaged = bytearray(line)
            damaged[place] ^= 1 << bit
            assert not is_whole(bytes(damaged))


def test_damage_loses_only_the_damaged_lines(tmp_path: Path) -> None:
    entries: list[dict[str, object]] = [{"key": f"unit {n}", "score": n / 8} for n in range(4)]
    journal = journal_in(tmp_path)
    for entry in entries:
        journal.append(entry)
    content = journal.file.read_bytes()
    size = len(content) // 4
    first, last, end_of_second = 3, len(content) - 5, 2 * size - 1
    for place, left in ((first, [1, 2, 3]), (last, [0, 1, 2]), (end_of_second, [0, 3])):
        damaged = bytearray(content)
        damaged[place] ^= 1
        journal.file.write_bytes(damaged)
        assert journal.repair() == 1
        assert journal.repair() == 0
        assert list(journal.read()) == [entries[index] for index in left]
        journal.append({"new": 1})
        assert list(journal.read()) == [*(entries[index] for index in left), {"new": 1}]


def test_an_entry_changed_after_its_check_is_refused(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.append({"key": "unit 0", "score": 0.5})
    places = [place for place, _ in journal.located()]
    flip(journal.file)
    with refused("journal.jsonl"):
        list(journal.at(places))
    with refused("damaged"):
        list(journal.read())


def test_numpy_numbers_and_surrogates_are_read_back(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.append({"score": np.float32(0.5), "seed": np.int64(3), "text": "half \ud800"})
    assert list(journal.read()) == [{"score": 0.5, "seed": 3, "text": "half \ud800"}]


def test_an_entry_that_is_no_json_is_the_callers_bug(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="can't be journalled"):
        journal_in(tmp_path).append({"path": tmp_path})
