"""Splitters of scripts without spaces: what counts, compares or finds words in them, and what is refused."""

import sys
from collections.abc import Iterable

import pytest
from applying import apply_steps, step_of
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from record_strategies import PROPERTY

from synthbench.base.errors import UserError
from synthbench.data.contamination import Check, TestIndex, search
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.inspect import describe
from synthbench.data.quality import examine
from synthbench.data.records import RecordKind, ScoredPair, Sentence
from synthbench.models.pair_scorer import JaccardScorer, LetterPairsScorer
from synthbench.preparing.drops import Length
from synthbench.words import check_words, split_words
from synthbench_augsbert import ContextualSubstitution
from synthbench_claif.pairs import CLAIFPairs
from synthbench_syncse.filters import Filters

CHINESE = "我昨天在北京吃了烤鸭。"
JAPANESE = "昨日東京で寿司を食べた。"
THAI = "ฉันกินข้าวที่กรุงเทพ"


def sentences(*texts: str) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence=text) for text in texts])


def scored(*rows: tuple[str, str]) -> SyntheticDataset:
    records = [ScoredPair(sentence1=first, sentence2=second, score=1.0) for first, second in rows]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CHINESE, ["我", "昨天", "在", "北京", "吃了", "烤鸭"]),
        (JAPANESE, ["昨日", "東京", "で", "寿司", "を", "食", "べた"]),
        (THAI, ["ฉัน", "กิน", "ข้าว", "ที่", "กรุงเทพ"]),
        ("Don't stop, 用iPhone手机写.", ["Don't", "stop,", "用", "iPhone", "手机", "写"]),
    ],
)
def test_icu_finds_words_by_its_dictionaries(text: str, words: list[str]) -> None:
    assert split_words(text, "icu") == words


def test_pairs_are_neighbouring_letters() -> None:
    assert split_words("北京烤鸭 yes.", "pairs") == ["北京", "京烤", "烤鸭", "yes."]


@PROPERTY
@given(st.text(st.characters(max_codepoint=0x0DFF)), st.sampled_from(["pairs", "icu"]))
def test_no_splitter_changes_scripts_with_spaces(text: str, words: str) -> None:
    assert split_words(text, words) == text.split()


@PROPERTY
@given(st.text(st.characters(max_codepoint=0x0DFF)))
@example("I love it ❤️")
@example("cafe\u0301 1️⃣")
def test_letter_pairs_change_no_score_of_scripts_with_spaces(text: str) -> None:
    asked = [(text, "I love the café"), (text, "❤️ 1️⃣")]
    assert LetterPairsScorer().score(asked).tolist() == JaccardScorer().score(asked).tolist()


@pytest.mark.parametrize(("words", "num_words"), [("icu", 6), ("pairs", 9)])
def test_length_counts_the_words_of_the_splitter(words: str, num_words: int) -> None:
    data = sentences(CHINESE, f"{CHINESE}{CHINESE}")
    for limits, kept in (({"max_words": num_words}, 1), ({"min_words": num_words + 1}, 1)):
        assert len(apply_steps(data, [step_of({"step": "length", "words": words, **limits})])) == kept


@pytest.mark.parametrize("step", ["length", "drop-overlap", "drop-contaminated"])
def test_steps_refuse_texts_without_spaces_if_no_splitter_is_named(step: str) -> None:
    keys = {"length": {"max_words": 9}, "drop-overlap": {"by": "13-gram", "sources": ("test",)}}
    section = {"step": step, "sources": ("test",)} if step not in keys else {"step": step, **keys[step]}
    data = {"test": sentences("x")}
    with pytest.raises(
        UserError, match="no spaces between words, so each would be one word; needed: `words: icu`"
    ):
        apply_steps(sentences(CHINESE, JAPANESE, "dogs bark"), [step_of(section)], data)
    mixed = sentences(CHINESE, "dogs bark", "cats sleep")
    assert len(apply_steps(mixed, [step_of(section)], data)) == 3


def test_a_sentence_within_a_longer_text_is_found_by_its_words() -> None:
    test = "我们昨天在北京的一家小餐馆里吃了非常好吃的烤鸭然后回家"
    inside = scored((f"他说{test}了。", "x"))
    for words, number in ((None, 0), ("icu", 1), ("pairs", 1)):
        index = TestIndex({"test": [(test,)]}, checks=(Check.GRAMS,), words=words)
        assert search([list(inside.text_rows())], index).anywhere[Check.GRAMS] == number


def test_figures_count_pairs_of_letters_or_icus_words() -> None:
    data = scored(("我喜欢北京。", "北京我喜欢。"))
    by_pairs, by_icu = describe(data), describe(data, "icu")
    assert by_pairs.words["sentence1"].mean == 4
    assert by_icu.words["sentence1"].mean == 3
    assert by_icu.distinct_1 == 3 / 6
    # 我喜 喜欢 欢北 北京 / 北京 京我 我喜 喜欢
    assert by_pairs.distinct_1 == 5 / 8
    assert examine(data, words="icu").same_words == 1
    assert examine(data).same_words == 0
    bleu = examine(data, words="icu").self_bleu
    assert bleu is not None and bleu > 0


def test_jaccard_refuses_what_its_letter_pairs_score() -> None:
    asked = [("我喜欢北京", "他喜欢北京"), ("A dog.", "a cat")]
    assert LetterPairsScorer().score(asked).tolist() == [3 / 5, 1 / 3]
    assert JaccardScorer().score(asked[1:]).tolist() == [1 / 3]
    with pytest.raises(UserError, match=r"jaccard: .* needed: `scorer: jaccard-pairs`"):
        JaccardScorer().score(asked[:1])


def test_syncses_limit_counts_the_splitters_words_and_is_refused_without_one() -> None:
    counting = Filters(max_words=5, words="icu")
    assert counting.reason(CHINESE) == "more than 5 words"
    counting.check_words([CHINESE])
    Filters(max_words=0).check_words([CHINESE])
    with pytest.raises(UserError, match=r"filters.max_words: .*`filters: \{words: icu\}`"):
        Filters().check_words([CHINESE])


def test_methods_that_change_words_refuse_texts_without_spaces() -> None:
    claif = CLAIFPairs.model_construct(mask_rates=(0.3,))
    with pytest.raises(UserError, match=r"claif: .*needed: sentences with spaces"):
        claif.check_data({"sentences": sentences(CHINESE)})
    CLAIFPairs.model_construct(mask_rates=(0,)).check_data({"sentences": sentences(CHINESE)})
    with pytest.raises(UserError, match=r"contextual-substitution: .*needed: texts with spaces"):
        ContextualSubstitution.model_construct().check_data({"gold": scored((CHINESE, JAPANESE))})


@pytest.mark.parametrize("texts", [[], ["dogs bark", "나는 서울에 간다"], ["猫 means cat"], ["123", "?!"]])
def test_texts_with_spaces_are_not_refused(texts: Iterable[str]) -> None:
    check_words(texts, "length")


def test_without_icu4py_a_file_that_names_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icu4py", None)
    monkeypatch.setattr("synthbench.words.find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    with pytest.raises(
        ValidationError, match=r"icu needs the package icu4py: pip install 'synthbench\[words\]'"
    ):
        Length(max_words=3, words="icu")
    with pytest.raises(UserError, match="icu needs the package icu4py"):
        split_words(CHINESE, "icu")
