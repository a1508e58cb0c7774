"""Shipped prompts have the paper's sizes; faults in what SynCSE alone has are reported in one line."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from wording import refused

from synthbench.api import UserError
from synthbench_syncse.prompts import (
    LABELS,
    NEGATIVE,
    POSITIVE,
    SHIPPED,
    SynCSEPrompts,
    labels_of,
    sentences_of,
)
from synthbench_syncse.requests import LabelChats, SentenceChats

PROMPTS = SHIPPED.read()
LABEL_FILE = """\
positive:
  - name: short
    instruction: Say it again.
    input: "Input: {sentence}"
    exemplars:
      - {sentence: One., answer: Eins.}
"""
SENTENCE_FILE = """\
sentences:
  prompts: ["Write {number} of {genre} on {topics}."]
  caption_prompts: ["Write {number} of {genre}."]
  topics: [food, war, law, art, sea, sun]
  caption_genres: [pictures]
  genres:
    pictures:
      description: pictures
      examples: [A., B., C., D., E., F., G., H., I., J.]
"""


def prompts_in(folder: Path, text: str) -> SynCSEPrompts:
    file = folder / "own.yaml"
    file.write_text(text, encoding="utf-8")
    return SynCSEPrompts.of_file(str(file))


@pytest.mark.parametrize("kind", LABELS)
def test_each_kind_of_label_has_four_prompts_of_eighteen_exemplars(kind: str) -> None:
    prompts = labels_of(PROMPTS, kind)
    assert [len(prompt.exemplars) for prompt in prompts] == [18] * 4
    assert [prompt.exemplars_per_request for prompt in prompts] == [5] * 4
    exemplars = [exemplar for prompt in prompts for exemplar in prompt.exemplars]
    assert len({exemplar["sentence"] for exemplar in exemplars}) == 4 * 18
    assert all(exemplar["sentence"] != exemplar["answer"] for exemplar in exemplars)


def test_sentences_have_the_paper_s_genres_topics_and_examples() -> None:
    pool = sentences_of(PROMPTS)
    assert (len(pool.genres), len(set(pool.topics))) == (21, 37)
    kinds = (pool.prompts, pool.caption_prompts, pool.domain_prompts)
    assert [len(each or ()) for each in kinds] == [4] * 3
    assert [len(set(genre.examples)) for genre in pool.genres.values()] == [30] * 21
    assert set(pool.domains) == {"biomedicine", "stack-overflow"}
    assert pool.naive is not None and len(pool.naive.examples) == 10


def test_no_example_exceeds_the_length_limit_of_sentences() -> None:
    texts = [text for genre in sentences_of(PROMPTS).genres.values() for text in genre.examples]
    exemplars = [each for kind in LABELS for prompt in labels_of(PROMPTS, kind) for each in prompt.exemplars]
    texts += [text for each in exemplars for text in each.values()]
    assert max(len(text.split()) for text in texts) <= 32


def test_users_prompts_replace_the_shipped_ones_of_their_name_alone(tmp_path: Path) -> None:
    own = SHIPPED.under(prompts_in(tmp_path, LABEL_FILE))
    assert [prompt.name for prompt in labels_of(own, POSITIVE)] == ["short"]
    assert labels_of(own, NEGATIVE) == labels_of(PROMPTS, NEGATIVE)
    own = SHIPPED.under(prompts_in(tmp_path, SENTENCE_FILE))
    assert list(sentences_of(own).genres) == ["pictures"]
    assert labels_of(own, POSITIVE) == labels_of(PROMPTS, POSITIVE)


def documented_prompts(folder: Path) -> SynCSEPrompts:
    """The file shown in the documentation, with each list repeated to its documented length."""
    page = (Path(__file__).parents[3] / "docs" / "syncse.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(positive:.*?)```", page, flags=re.DOTALL)
    shown = YAML(typ="safe").load(text)
    sentences = shown["sentences"]
    sentences["topics"] = 6 * sentences["topics"]
    for genre in sentences["genres"].values():
        genre["examples"] = 10 * genre["examples"]
    file = folder / "shown.yaml"
    with file.open("w", encoding="utf-8") as lines:
        YAML().dump(shown, lines)
    return SynCSEPrompts.of_file(str(file))


def test_a_documented_file_supplies_prompts_genres_topics_and_exemplars(tmp_path: Path) -> None:
    shown = documented_prompts(tmp_path)

    asked = LabelChats(labels_of(shown, POSITIVE), POSITIVE, seed=0).chat("1", "It rains.")
    assert asked.messages[0]["content"].startswith("Say the given sentence in fewer words.")
    assert asked.messages[2] == {"role": "assistant", "content": "A man walks his dog."}

    pool = sentences_of(shown)
    caption = SentenceChats(pool, seed=0).chat(0).messages[-1]["content"]
    assert caption.startswith("Write 20 sentences as they occur in short image captions, like ")
    assert '"A dog sleeps on a red sofa."' in caption
    plain = SentenceChats(pool.model_copy(update={"caption_genres": ()}), seed=0).chat(0)
    assert "about nature, nature" in plain.messages[-1]["content"]
    assert SentenceChats(pool, seed=0, is_naive=True).chat(0).messages[1]["content"] == "1. It rains."


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "caption_genres: [pictures]",
            "caption_genres: [picture]",
            ":1: sentences: caption_genres: no genre 'picture'; did you mean 'pictures'?",
        ),
        (", I., J.]", "]", ":9: sentences.genres.pictures.examples: needs at least 10, has 8"),
        (", sea, sun", "", ":4: sentences.topics: needs at least 6, has 4"),
        (
            '  caption_prompts: ["Write {number} of {genre}."]\n',
            "",
            ":1: sentences: caption_genres need caption_prompts; add some",
        ),
    ],
)
def test_each_fault_of_prompts_for_sentences_has_line_and_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(UserError) as raised:
        prompts_in(tmp_path, SENTENCE_FILE.replace(old, new))
    assert raised.value.messages == (f"{tmp_path / 'own.yaml'}{message}",)


def test_an_unknown_genre_is_refused_with_the_nearest_known() -> None:
    pool = sentences_of(PROMPTS)
    pool.check_genres(["news", "fiction"])
    with refused("'headline'", "'headlines'"):
        pool.check_genres(["headline"])
