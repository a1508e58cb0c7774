"""A request depends only on the settings and the sentence's id."""

from collections import Counter

import pytest

from synthbench_syncse.prompts import NEGATIVE, POSITIVE, SHIPPED, labels_of, sentences_of
from synthbench_syncse.requests import LabelChats, SentenceChats

HARP = "A man is playing a harp."
POSITIVES, NEGATIVES = (labels_of(SHIPPED.read(), kind) for kind in (POSITIVE, NEGATIVE))
SENTENCES = sentences_of(SHIPPED.read())


def positives(seed: int = 0, *, is_fixed: bool = False) -> LabelChats:
    return LabelChats(POSITIVES, "positive", seed, is_fixed)


def test_a_request_is_an_instruction_five_turns_and_the_sentence() -> None:
    chat = positives().chat("7", HARP)
    roles = [message["role"] for message in chat.messages]
    assert roles == ["system", *["user", "assistant"] * 5, "user"]
    prompt = next(each for each in POSITIVES if each.name == chat.name)
    assert chat.messages[0]["content"] == prompt.instruction
    assert chat.messages[-1]["content"] == f"Input: {HARP}"
    known = {f"Input: {exemplar['sentence']}": exemplar["answer"] for exemplar in prompt.exemplars}
    turns = [message["content"] for message in chat.messages[1:-1]]
    assert len(set(turns[::2])) == 5
    assert [known[given] for given in turns[::2]] == turns[1::2]


def test_the_same_id_and_seed_give_the_same_request() -> None:
    assert positives().chat("7", HARP) == positives().chat("7", HARP)


def test_requests_do_not_change_between_releases() -> None:
    chat = LabelChats(NEGATIVES, "negative", 5).chat("sick-12", HARP)
    assert (chat.name, chat.sample) == ("turned-around", 2006354238)


def test_another_id_seed_or_kind_gives_another_request() -> None:
    others = [
        positives().chat("8", HARP),
        positives(seed=1).chat("7", HARP),
        LabelChats(POSITIVES, "negative", 0).chat("7", HARP),
    ]
    assert all(other.messages != positives().chat("7", HARP).messages for other in others)
    assert positives(seed=1).chat("7", HARP).sample != positives().chat("7", HARP).sample


def test_prompts_and_exemplars_are_drawn_equally_often() -> None:
    chats = [positives().chat(str(number), HARP) for number in range(2000)]
    prompts = Counter(chat.name for chat in chats)
    assert len(prompts) == 4 and min(prompts.values()) > 400
    shown = Counter(message["content"] for chat in chats for message in chat.messages[1:-1:2])
    assert len(shown) == 4 * 18 and min(shown.values()) > 80


def test_fixed_requests_differ_only_in_the_sentence() -> None:
    first, second = (positives(is_fixed=True).chat(name, name) for name in "ab")
    assert first.messages[:-1] == second.messages[:-1]
    assert first.messages[-1] != second.messages[-1]


def test_a_multi_line_sentence_is_sent_as_one_line() -> None:
    assert positives().chat("7", "A man\n  plays. ").messages[-1]["content"] == "Input: A man plays."


def test_a_request_for_sentences_follows_an_example_of_ten() -> None:
    pool = SENTENCES
    chats = SentenceChats(pool, 0, genres=("news",))
    asked, shown, again = chats.chat(3).messages
    assert asked["content"].replace("10", "20", 1) == again["content"]
    examples = [line.partition(". ")[2] for line in shown["content"].splitlines()]
    assert len(set(examples)) == 10 and set(examples) <= set(pool.genres["news"].examples)
    topics = [topic for topic in pool.topics if topic in again["content"]]
    assert len(topics) >= 6
    assert pool.genres["news"].description in again["content"]
    assert "{" not in again["content"]


def test_genres_alternate() -> None:
    pool = SENTENCES
    counts = Counter(SentenceChats(pool, 4).chat(index).name for index in range(2 * 21))
    assert counts == dict.fromkeys(pool.genres, 2)


def test_captions_have_separate_prompts() -> None:
    chats = SentenceChats(SENTENCES, 0, genres=("image-captions",))
    said = [chats.chat(index).messages[-1]["content"] for index in range(50)]
    assert not any("persuasive" in text for text in said)
    assert any(text.count('"') >= 8 for text in said), "some show four captions"


def test_requests_of_one_genre_differ() -> None:
    chats = SentenceChats(SENTENCES, 0, genres=("news",))
    assert len({str(chats.chat(index).messages) for index in range(200)}) == 200


@pytest.mark.parametrize(
    ("domain", "named"),
    [
        ("biomedicine", "research articles on biomedicine"),
        ("stack-overflow", "Stack Overflow"),
        ("beekeeping", "texts on beekeeping"),
    ],
)
def test_a_domain_needs_only_a_name(domain: str, named: str) -> None:
    (asked,) = SentenceChats(SENTENCES, 0, domain=domain).chat(0).messages
    assert named in asked["content"] and "20" in asked["content"] and "{" not in asked["content"]


def test_naive_requests_differ_only_in_their_sample_number() -> None:
    chats = [SentenceChats(SENTENCES, 0, is_naive=True).chat(index) for index in range(10)]
    assert all(chat.messages == chats[0].messages for chat in chats)
    assert len({chat.sample for chat in chats}) == 10
