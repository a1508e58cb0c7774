"""Shipped pools have the paper's sizes; each fault of a user's pools is reported in one line."""

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from wording import refused, worded

from synthbench.api import UserError
from synthbench_syncse.pools import (
    POOLS_NAME,
    LabelPool,
    SentencePool,
    fingerprint,
    negative_pool,
    positive_pool,
    sentence_pool,
)
from synthbench_syncse.requests import LabelChats, SentenceChats

LABELS = """\
prompts:
  short:
    instruction: Say it again.
    exemplars:
      - {sentence: One., answer: Eins.}
      - {sentence: Two., answer: Zwei.}
      - {sentence: Three., answer: Drei.}
      - {sentence: Four., answer: Vier.}
      - {sentence: Five., answer: Fünf.}
"""
SENTENCES = """\
prompts: ["Write {number} of {genre} on {topics}."]
caption_prompts: ["Write {number} of {genre}."]
topics: [food, war, law, art, sea, sun]
caption_genres: [pictures]
genres:
  pictures:
    description: pictures
    examples: [A., B., C., D., E., F., G., H., I., J.]
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "own.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def messages_on(file: Path) -> list[str]:
    read = sentence_pool if "genres:" in file.read_text(encoding="utf-8") else positive_pool
    with pytest.raises(UserError) as raised:
        read(file)
    assert all("\n" not in message for message in raised.value.messages)
    return [message.removeprefix(str(file)) for message in raised.value.messages]


@pytest.mark.parametrize("pool", [positive_pool(), negative_pool()])
def test_each_kind_of_label_has_four_prompts_of_eighteen_exemplars(pool: LabelPool) -> None:
    assert [len(prompt.exemplars) for prompt in pool.prompts.values()] == [18] * 4
    exemplars = [exemplar for prompt in pool.prompts.values() for exemplar in prompt.exemplars]
    assert len({exemplar.sentence for exemplar in exemplars}) == 4 * 18
    assert all(exemplar.sentence != exemplar.answer for exemplar in exemplars)


def test_sentences_have_the_paper_s_genres_topics_and_examples() -> None:
    pool = sentence_pool()
    assert (len(pool.genres), len(set(pool.topics))) == (21, 37)
    assert (len(pool.prompts), len(pool.caption_prompts), len(pool.domain_prompts)) == (4, 4, 4)
    assert [len(set(genre.examples)) for genre in pool.genres.values()] == [30] * 21
    assert set(pool.domains) == {"biomedicine", "stack-overflow"}
    assert pool.naive is not None and len(pool.naive.examples) == 10


def test_no_example_exceeds_the_length_limit_of_sentences() -> None:
    texts = [text for genre in sentence_pool().genres.values() for text in genre.examples]
    for pool in (positive_pool(), negative_pool()):
        exemplars = [each for prompt in pool.prompts.values() for each in prompt.exemplars]
        texts += [text for each in exemplars for text in (each.sentence, each.answer)]
    assert max(len(text.split()) for text in texts) <= 32


def test_tables_call_the_pools_reconstructed() -> None:
    assert POOLS_NAME == "reconstructed pools"


def test_users_pools_replace_the_shipped_ones(tmp_path: Path) -> None:
    assert list(positive_pool(written(tmp_path, LABELS)).prompts) == ["short"]
    assert list(sentence_pool(written(tmp_path, SENTENCES)).genres) == ["pictures"]


def documented_pools(folder: Path) -> list[Path]:
    """The pools shown in the documentation, with each list repeated to its documented length."""
    page = (Path(__file__).parents[3] / "docs" / "syncse.md").read_text(encoding="utf-8")
    files = []
    for number, text in enumerate(re.findall(r"```yaml\n(prompts:.*?)```", page, flags=re.DOTALL)):
        pool = YAML(typ="safe").load(text)
        pool["topics"] = 6 * pool.get("topics", []) or None
        for section in (*pool.get("genres", {}).values(), *_label_prompts(pool)):
            section |= {key: 10 * section[key] for key in ("examples", "exemplars") if key in section}
        file = folder / f"{number}.yaml"
        with file.open("w", encoding="utf-8") as lines:
            YAML().dump({key: value for key, value in pool.items() if value is not None}, lines)
        files.append(file)
    return files


def _label_prompts(pool: dict[str, Any]) -> list[dict[str, Any]]:
    return list(pool["prompts"].values()) if isinstance(pool["prompts"], dict) else []


def test_a_documented_pool_file_supplies_prompts_genres_topics_and_exemplars(
    tmp_path: Path,
) -> None:
    labels, sentences = documented_pools(tmp_path)

    asked = LabelChats(positive_pool(labels), "positive", seed=0).chat("1", "It rains.")
    assert asked.messages[0]["content"].startswith("Say the given sentence in fewer words.")
    assert asked.messages[2] == {"role": "assistant", "content": "A man walks his dog."}

    pool = sentence_pool(sentences)
    caption = SentenceChats(pool, seed=0).chat(0).messages[-1]["content"]
    assert caption.startswith("Write 20 sentences as they occur in short image captions, like ")
    assert '"A dog sleeps on a red sofa."' in caption
    plain = SentenceChats(pool.model_copy(update={"caption_genres": ()}), seed=0).chat(0)
    assert "about nature, nature" in plain.messages[-1]["content"]
    assert SentenceChats(pool, seed=0, is_naive=True).chat(0).messages[1]["content"] == "1. It rains."


def test_a_pools_identity_is_the_hash_of_its_content(tmp_path: Path) -> None:
    file = written(tmp_path, LABELS)
    before = fingerprint(file, "positive")
    assert before != fingerprint(None, "positive") != fingerprint(None, "negative")
    written(tmp_path, LABELS.replace("Say it again", "Say it anew"))
    assert fingerprint(file, "positive") != before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (", answer: Drei.}", "}", ":7: prompts.short.exemplars.2.answer: is missing"),
        (
            "answer: Drei.",
            "anser: Drei.",
            ":7: prompts.short.exemplars.2.anser: unknown key; did you mean 'answer'?",
        ),
        (
            "      - {sentence: Five., answer: Fünf.}\n",
            "",
            ":4: prompts.short.exemplars: needs at least 5 exemplars, has 4",
        ),
        ("answer: Zwei.", "answer: 2", ":6: prompts.short.exemplars.1.answer: must be text, is 2"),
        ("answer: Zwei.", 'answer: " "', ":6: prompts.short.exemplars.1.answer: must not be empty"),
        ("    instruction: Say it again.\n", "", ":2: prompts.short.instruction: is missing"),
        ("prompts:", "promts:", ":1: promts: unknown key; did you mean 'prompts'?"),
    ],
)
def test_each_fault_of_a_label_pool_has_line_and_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert message in messages_on(written(tmp_path, LABELS.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "caption_genres: [pictures]",
            "caption_genres: [picture]",
            ":4: caption_genres.0: no genre 'picture'; did you mean 'pictures'?",
        ),
        (", I., J.]", "]", ":8: genres.pictures.examples: needs at least 10 examples, has 8"),
        (", sea, sun", "", ":3: topics: needs at least 6 topics, has 4"),
        (" on {topics}", "", ":1: prompts: lacks {topics}: 'Write {number} of {genre}.'"),
        (
            'caption_prompts: ["Write {number} of {genre}."]\n',
            "",
            ":1: caption_genres need caption_prompts, there are none",
        ),
    ],
)
def test_each_fault_of_a_sentence_pool_has_line_and_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert messages_on(written(tmp_path, SENTENCES.replace(old, new))) == [message]


def test_a_missing_or_invalid_file_is_reported(tmp_path: Path) -> None:
    assert messages_on(written(tmp_path, "prompts: [\n"))[0].startswith(":1: not valid YAML")
    worded(messages_on(written(tmp_path, "")), "1")
    with refused("nothing.yaml"):
        positive_pool(tmp_path / "nothing.yaml")


def test_an_unknown_genre_is_refused_with_the_nearest_known() -> None:
    pool: SentencePool = sentence_pool()
    pool.check_genres(["news", "fiction"])
    with refused("'headline'", "'headlines'"):
        pool.check_genres(["headline"])
