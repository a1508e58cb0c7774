"""Shipped prompts in other languages: one line selects them, and they hold what the method needs."""

from collections.abc import Mapping
from typing import Any

import pytest
from contract.stand_ins import sentences
from pydantic import TypeAdapter, ValidationError

from synthbench.api import GeneratedData, UserError, looks_like_a_refusal, sentence_in, sentences_in
from synthbench.plugins.loading import component
from synthbench.words.scripts import is_unspaced
from synthbench_dino.tasks import ShippedOrOwn
from synthbench_syncse.prompts import SHIPPED

METHODS: Mapping[str, dict[str, Any]] = {
    "syncse-partial": {},
    "syncse-scratch": {"size": 20},
    "syncse-naive": {"size": 20},
    "gpl-queries": {},
}
LANGUAGES = {"de": "ü", "zh": "。"}
SETTINGS = [(name, language) for name in METHODS for language in LANGUAGES]


def of(name: str, **settings: Any) -> Any:
    return component("methods", name).model_validate({**METHODS.get(name, {}), **settings})


@pytest.mark.parametrize(("name", "language"), SETTINGS)
def test_a_language_selects_all_prompts_of_a_method(name: str, language: str) -> None:
    method = of(name, prompts=language)
    shipped = method.shipped
    assert method.all_prompts == shipped.read_in(language)
    assert set(method.prompts.named) == set(shipped.read().named)
    assert LANGUAGES[language] in str(method.all_prompts)
    assert any(f"in our own words, language {language}." in note for note in method.table_notes())
    assert not [key for key in method.constants() if key.startswith("prompts")]


def test_identities_hold_the_content_of_a_language_and_nothing_of_its_name() -> None:
    by_name, default = of("gpl-queries", prompts="de"), of("gpl-queries")
    content = by_name.model_dump(mode="json")["prompts"]
    assert "Suchanfrage" in content["queries"][0]["instruction"]
    assert of("gpl-queries", prompts=content).model_dump(mode="json") == by_name.model_dump(mode="json")
    assert "prompts" not in default.model_dump(mode="json")


def test_a_language_without_prompts_is_refused() -> None:
    what = r"'fr' are shipped, only in `en` and `de` and `zh`; a file of this name is \./fr"
    with pytest.raises(ValidationError, match=what):
        of("gpl-queries", prompts="fr")
    with pytest.raises(ValidationError, match="'de' are shipped, only in `en`;"):
        of("claif-pairs", prompts="de")


@pytest.mark.parametrize("name", METHODS)
def test_english_is_the_default(name: str) -> None:
    assert of(name, prompts="en").model_dump(mode="json") == of(name).model_dump(mode="json")


def test_the_sentences_of_scratch_tell_their_language_too() -> None:
    need = of("syncse-scratch", prompts="de").needs()["sentences"]
    assert isinstance(need, GeneratedData)
    (note,) = component("methods", need.method).model_validate(need.config).table_notes()
    assert note.endswith("in our own words, language de.")


def test_scratch_in_chinese_needs_a_splitter_for_its_limit_of_words() -> None:
    for settings in ({"prompts": "de"}, {"prompts": "zh", "filters": {"words": "pairs"}}):
        of("syncse-sentences", size=20, **settings).check_data({})
    with pytest.raises(UserError, match=r"filters.max_words"):
        of("syncse-sentences", size=20, prompts="zh").check_data({})


def test_partial_in_chinese_needs_a_splitter_only_for_a_limit_of_words() -> None:
    source = {"sentences": sentences("我喜欢北京。")}
    of("syncse-partial", prompts="zh").check_data(source)
    of("syncse-partial", prompts="zh", filters={"max_words": 9, "words": "pairs"}).check_data(source)
    with pytest.raises(UserError, match=r"filters.max_words"):
        of("syncse-partial", prompts="zh", filters={"max_words": 9}).check_data(source)


@pytest.mark.parametrize(
    "answer",
    [
        "1. 狗喜欢跑。\n2. 你好吗？",
        "1、狗喜欢跑。\n2、你好吗？",
        "1．狗喜欢跑。\n2．你好吗？",
        "（1）狗喜欢跑。\n（2）你好吗？",
        "狗喜欢跑。\n你好吗？",
    ],
)
def test_numbered_chinese_sentences_are_read(answer: str) -> None:
    assert sentences_in(answer) == ["狗喜欢跑。", "你好吗？"]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("Neuer Satz: Jemand schläft.", "Jemand schläft."),
        ("**Neuer Satz:** „Jemand schläft.“", "Jemand schläft."),
        ("Der neue Satz lautet: Jemand schläft.", "Jemand schläft."),
        ("Ausgabe: Jemand schläft.", "Jemand schläft."),
        ("Eingabe: Ein Mann schläft.\nAusgabe: Jemand schläft.", "Jemand schläft."),
        ("Hier ist der umformulierte Satz:\n\nJemand schläft.", "Jemand schläft."),
        ("Hier ist ein neuer Satz: Jemand schläft.", "Jemand schläft."),
        ("Natürlich!\n\nJemand schläft.", "Jemand schläft."),
        ("Umformulierung: Jemand schläft.", "Jemand schläft."),
        ("改写后：有人在睡觉。", "有人在睡觉。"),
        ("输出：有人在睡觉。", "有人在睡觉。"),
        ("输入：一个人在睡觉。\n输出：有人在睡觉。", "有人在睡觉。"),
        ("好的，以下是改写后的句子：\n\n有人在睡觉。", "有人在睡觉。"),
        ("好的，以下是改写后的句子：有人在睡觉。", "有人在睡觉。"),
        ("**新的句子：**“有人在睡觉。”", "有人在睡觉。"),
        ("好的！\n有人在睡觉。", "有人在睡觉。"),
        ("改写后的句子是：「有人在睡觉。」", "有人在睡觉。"),
    ],
)
def test_text_around_a_german_or_chinese_sentence_is_removed(answer: str, sentence: str) -> None:
    assert sentence_in(answer) == sentence


def test_german_and_chinese_items_lose_their_labels_and_preamble() -> None:
    assert sentences_in("Hier sind zwei Sätze:\nSatz 1: Los!\nSatz 2: Halt!") == ["Los!", "Halt!"]
    assert sentences_in("好的，以下是两个句子：\n句子1：快跑！\n句子2：停下！") == ["快跑！", "停下！"]


@pytest.mark.parametrize(
    "sentence",
    [
        "Hier ist ein Hund.",
        "Natürlich kommt er.",
        "Gern geschehen.",
        "Natürlich ist der Satz wahr.",
        "Er sagte: nein.",
        "Die Antwort lautet: nein.",
        "Hier ist der Plan: wir gehen.",
        "Ein neuer Satz Reifen: 400 Euro.",
        "好的，我明天去。",
        "当然不行。",
        "他的回答：不。",
        "以下是规则。",
        "原因：下雨。",
        "句子是：主语加谓语。",
        "「快跑！」她说。",
    ],
)
def test_german_and_chinese_sentences_stay_whole(sentence: str) -> None:
    assert sentence_in(sentence) == sentence
    assert sentences_in(f"1. {sentence}\n2. Ja.") == [sentence, "Ja."]
    assert sentences_in(f"{sentence}\nJa.") == [sentence, "Ja."]


def _shipped_sentences(language: str) -> list[str]:
    prompts = SHIPPED.read_in(language)
    assert prompts.positive and prompts.negative and prompts.sentences
    texts = [
        text
        for each in (*prompts.positive, *prompts.negative)
        for one in each.exemplars
        for text in one.values()
    ]
    texts += [text for genre in prompts.sentences.genres.values() for text in genre.examples]
    return texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_shipped_sentences_are_read_unchanged(language: str) -> None:
    texts = _shipped_sentences(language)
    assert [sentence_in(text) for text in texts] == sentences_in("\n".join(texts)) == texts
    assert not any(map(looks_like_a_refusal, texts))


def test_chinese_exemplars_and_examples_are_chinese() -> None:
    assert all(map(is_unspaced, _shipped_sentences("zh")))


@pytest.mark.parametrize(("task", "similar"), [("sts-de", "dasselbe bedeuten"), ("sts-zh", "意思相同")])
def test_dino_takes_the_task_in_a_language(task: str, similar: str) -> None:
    found, first = (TypeAdapter(ShippedOrOwn).validate_python(name) for name in (task, "sts"))
    assert similar in found.labels["1"].instruction
    assert {name: label.counterlabels for name, label in found.labels.items()} == {
        name: label.counterlabels for name, label in first.labels.items()
    }
    found.check_first_texts()
