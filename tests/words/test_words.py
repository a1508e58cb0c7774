"""The words of a text, by which BM25 finds neighbours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthbench.bm25 import nearest_by_words
from synthbench.words.scripts import words_alone, words_between_spaces


@pytest.mark.parametrize(
    ("text", "between_spaces", "alone"),
    [
        ("The dog's tail, (wet).", ["the", "dog's", "tail,", "(wet)."], ["the", "dog", "s", "tail", "wet"]),
        ("Dogs bark .", ["dogs", "bark"], ["dogs", "bark"]),
        ("?! ...", ["?!", "..."], ["?! ..."]),
        ("我喜欢北京。", ["我喜", "喜欢", "欢北", "北京"], ["我喜", "喜欢", "欢北", "北京"]),
        ("用Python3写。", ["用", "python3", "写"], ["用", "python3", "写"]),
        ("東京タワーへ行く", ["東京", "京タ", "タワ", "ワー", "ーへ", "へ行", "行く"], None),
        ("ที่นี่ดี", ["ที่นี่", "นี่ดี"], ["ที่นี่", "นี่ดี"]),
        ("ສະບາຍ", ["ສະ", "ະບ", "ບາ", "າຍ"], None),
        ("ភាសា", ["ភាសា"], ["ភាសា"]),
        ("မြန်မာ", ["မြန်", "န်မာ"], ["မြန်", "န်မာ"]),
        ("나는 서울에 간다", ["나는", "서울에", "간다"], ["나는", "서울에", "간다"]),
        ("हिन्दी में", ["हिन्दी", "में"], ["हिन्दी", "में"]),
        ("Größe 10.5", ["größe", "10.5"], ["größe", "10", "5"]),
        ("\U00020000\U00020001", ["\U00020000\U00020001"], None),
    ],
)
def test_words_are_found_in_scripts_with_and_without_spaces(
    text: str, between_spaces: list[str], alone: list[str] | None
) -> None:
    assert words_between_spaces(text) == between_spaces
    assert words_alone(text) == (between_spaces if alone is None else alone)


@given(st.text(min_size=1).filter(lambda text: bool(text.strip())))
def test_every_text_has_a_word(text: str) -> None:
    assert all(words_between_spaces(text))
    assert words_between_spaces(text)
    assert words_alone(text)


SCRIPTS = {
    "Chinese": ("我昨天在北京吃了烤鸭。", "今天上海下大雨。", "北京的烤鸭很好吃。"),
    "Japanese": ("昨日東京で寿司を食べた。", "今日大阪は雨だ。", "東京の寿司はおいしい。"),
    "Thai": ("เมื่อวานฉันกินข้าวที่กรุงเทพ", "วันนี้ฝนตกหนัก", "ข้าวที่กรุงเทพอร่อย"),
    "Lao": ("ມື້ວານຂ້ອຍກິນເຂົ້າຢູ່ວຽງຈັນ", "ຝົນຕົກໜັກ", "ເຂົ້າຢູ່ວຽງຈັນແຊບ"),
    "Khmer": ("ម្សិលមិញខ្ញុំញ៉ាំបាយនៅភ្នំពេញ", "ភ្លៀង", "បាយនៅភ្នំពេញឆ្ងាញ់"),
    "Burmese": ("မနေ့ကရန်ကုန်မှာထမင်းစားတယ်", "မိုးရွာ", "ရန်ကုန်မှာထမင်းကောင်းတယ်"),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_sentences_in_scripts_without_spaces_find_neighbours_by_common_words(script: str) -> None:
    first, other, near = SCRIPTS[script]
    fillers = ["one two", "three four", "five six"]

    found = nearest_by_words([*fillers, other, first, near], 1)

    assert list(found.indices[4]) == [5]
    assert list(found.indices[5]) == [4]
    assert found.indices[0] == []


def test_a_shared_full_stop_does_not_count_as_a_shared_word() -> None:
    found = nearest_by_words(["dogs bark .", "rain falls .", "我喜欢狗。", "下大雨。"], 2)
    assert [list(row) for row in found.indices] == [[], [], [], []]
    assert found.num_lacking == 8
