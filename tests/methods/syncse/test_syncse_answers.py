"""Parsing of answers in many formats."""

import hashlib
import json
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthbench.api import looks_like_a_refusal
from synthbench.llm.answered import sentence_in, sentences_in
from synthbench_syncse.requests import numbered

THREE = ["Bees sleep.", "Why did 2 men sing?", "Stop: don't go!"]
LISTS = {
    "dots": "1. {0}\n2. {1}\n3. {2}",
    "brackets": "1) {0}\n2) {1}\n3) {2}",
    "both brackets": "(1) {0}\n(2) {1}\n(3) {2}",
    "square brackets": "[1] {0}\n[2] {1}\n[3] {2}",
    "colons": "1: {0}\n2: {1}\n3: {2}",
    "dashes": "1 - {0}\n2 - {1}\n3 - {2}",
    "signs": "#1. {0}\n#2. {1}\n#3. {2}",
    "words": "Sentence 1: {0}\nSentence 2: {1}\nSentence 3: {2}",
    "numbers alone": "1\n{0}\n\n2\n{1}\n\n3\n\n{2}",
    "labels": "1. Hypothesis 1: {0}\n2. Hypothesis 2: {1}\n3. Hypothesis 3: {2}",
    "labels before numbers": "Hypothesis: 1. '{0}'\n\nHypothesis: 2. '{1}'\n\nHypothesis: 3. '{2}'",
    "labels on other lines": "1. \nParaphrased sentence: '{0}'\n2. \nH2: '{1}'\n3. \nNew caption: '{2}'",
    "headings in bold": "1. **Nature:** {0}\n2. **Music**: {1}\n3. **The road:** {2}",
    "remarks": "1. {0} (This keeps the meaning.)\n2. {1} [a question instead]\n3. {2} (Note: an order)",
    "remarks after bold": "1. **{0}** (Just a fact.)\n2. **{1}** (Not a fact.)\n3. **{2}** (It is an order.)",
    "remarks below": "1. {0}\n\nThis sentence is true.\n\n2. {1}\n(It was not asked for.)\n3. {2}",
    "bullets below numbers": "1. {0}\n   - {1}\n   - {2}",
    "a word in bold": "1. Bees **sleep**.\n2. Why did *2 men* sing?\n3. Stop: **don't** go!",
    "bold": "**1.** {0}\n**2.** {1}\n**3.** {2}",
    "bold words": "**Sentence 1:** {0}\n**Sentence 2:** {1}\n**Sentence 3:** {2}",
    "bullets": "- {0}\n- {1}\n- {2}",
    "stars": "* {0}\n* {1}\n* {2}",
    "dots in the middle": "• {0}\n• {1}\n• {2}",
    "no marks": "{0}\n{1}\n{2}",
    "empty lines": "1. {0}\n\n2. {1}\n\n3. {2}\n",
    "no blanks": "1.{0}\n2.{1}\n3.{2}",
    "all are one": "1. {0}\n1. {1}\n1. {2}",
    "a number left out": "1. {0}\n2. {1}\n4. {2}",
    "from another number": "11. {0}\n12. {1}\n13. {2}",
    "from zero": "0. {0}\n1. {1}\n2. {2}",
    "indented": "  1. {0}\n  2. {1}\n  3. {2}",
    "quotes": '1. "{0}"\n2. "{1}"\n3. "{2}"',
    "curly quotes": "1. “{0}”\n2. “{1}”\n3. “{2}”",
    "emphasis": "1. *{0}*\n2. **{1}**\n3. *{2}*",
    "numbers on their own lines": "1.\n{0}\n2.\n{1}\n3.\n{2}",
    "one line": "1. {0} 2. {1} 3. {2}",
    "a fence": "```\n1. {0}\n2. {1}\n3. {2}\n```",
    "windows": "1. {0}\r\n2. {1}\r\n3. {2}\r\n",
    "a preamble": "Sure! Here are 3 sentences:\n\n1. {0}\n2. {1}\n3. {2}",
    "a preamble without a list": "Certainly! Here are your sentences:\n{0}\n{1}\n{2}",
    "a title": "**Sentences on 2 topics:**\n1. {0}\n2. {1}\n3. {2}",
    "a title with marks": "### Sentences\n\n1. {0}\n2. {1}\n3. {2}",
    "a closing": "1. {0}\n2. {1}\n3. {2}\n\nLet me know if you need more!",
    "a closing at once": "1. {0}\n2. {1}\n3. {2}\nI hope this helps!",
    "a note": "1. {0}\n2. {1}\n3. {2}\n\n(Note: all of them were invented.)",
    "an unknown closing": "1. {0}\n2. {1}\n3. {2}\n\nEnjoy.",
    "a closing without a list": "{0}\n{1}\n{2}\n\nFeel free to ask for more.",
}


@pytest.mark.parametrize("layout", LISTS)
def test_lists_are_parsed_in_every_form(layout: str) -> None:
    assert sentences_in(LISTS[layout].format(*THREE)) == THREE


def test_lists_may_be_json() -> None:
    assert sentences_in(json.dumps(THREE)) == THREE
    assert sentences_in("```json\n" + json.dumps({"sentences": THREE}) + "\n```") == THREE


MESSY = [
    ("", []),
    (" \n\n ", []),
    ("1.", []),
    ("1.\n2.\n3.", []),
    ("1. Bees sleep.", ["Bees sleep."]),
    ("Bees sleep.", ["Bees sleep."]),
    ("Here is a dog.\nThere is a cat.", ["Here is a dog.", "There is a cat."]),
    ("1. 20 men sing.\n2. 3 dogs bark.", ["20 men sing.", "3 dogs bark."]),
    ("1. In 1999. it rained\n2. Bees sleep.", ["In 1999. it rained", "Bees sleep."]),
    ("1. Bees sleep\nin winter.\n2. Go!", ["Bees sleep in winter.", "Go!"]),
    (
        "1. Bees sleep.\n2. The year was\n1984. Nobody spoke.",
        ["Bees sleep.", "The year was 1984. Nobody spoke."],
    ),
    ('1. "Run," he said.\n2. He said "no".', ['"Run," he said.', 'He said "no".']),
    ('1. "Run", he said, "now"\n2. Go!', ['"Run", he said, "now"', "Go!"]),
    ("1. Bees sleep.\n2. Bees sle", ["Bees sleep.", "Bees sle"]),
    ("I'm sorry, but I can't write these sentences.", ["I'm sorry, but I can't write these sentences."]),
    ('["Bees sleep.", "Go', ['["Bees sleep.", "Go']),
    ("[1, 2]", ["[1, 2]"]),
]


@pytest.mark.parametrize(("answer", "sentences"), MESSY)
def test_items_of_messy_lists_are_parsed(answer: str, sentences: list[str]) -> None:
    assert sentences_in(answer) == sentences


HARP = "A man plays a harp."
SINGLE = [
    HARP,
    f'"{HARP}"',
    f"“{HARP}”",
    f"**{HARP}**",
    f"`{HARP}`",
    f"  {HARP}\n",
    f"1. {HARP}",
    f"- {HARP}",
    f"Output: {HARP}",
    f"Paraphrase: {HARP}",
    f'**Paraphrase:** "{HARP}"',
    f"Contradiction: {HARP}",
    f"New sentence: {HARP}",
    f"The rewritten sentence: {HARP}",
    f"Hard negative: {HARP}",
    f"Completed sentence: {HARP}",
    f"**Complete sentence:** {HARP}",
    f'Filled-in sentence: "{HARP}"',
    f"Filled sentence: {HARP}",
    f"The complete sentence is: {HARP}",
    f"A possible paraphrase is:\n{HARP}",
    f"Entailment: {HARP}",
    f"Rephrased: {HARP}",
    f"Rephrased sentence: {HARP}",
    f"Assistant: {HARP}",
    f"Sure! Here is a paraphrase:\n\n{HARP}",
    f"Of course. Here's another way to say it: {HARP}",
    f"Certainly. Here's a contradiction: {HARP}",
    f"Sure!\n\n{HARP}",
    f"Paraphrase:\n{HARP}",
    f"{HARP}\n\nLet me know if you need anything else!",
    f"{HARP}\n\n(Note: the wording was changed on purpose.)",
    f"{HARP}\nExplanation: 'man' stays.",
    f"Input: A man is playing a harp.\nOutput: {HARP}",
    f"1. {HARP}\n2. A harp is played by a man.",
    f"```\n{HARP}\n```",
]


@pytest.mark.parametrize("answer", SINGLE)
def test_one_sentence_is_extracted_from_every_form(answer: str) -> None:
    assert sentence_in(answer) == HARP


@pytest.mark.parametrize(
    "sentence",
    [
        "Sure thing, I will come.",
        "Here is a dog.",
        "He said: no.",
        "Stop: danger!",
        "1984 was a good year.",
        "7 men sing.",
        "2. Bundesliga: Bochum wins.",
        '"Run," he said, "run!"',
        "Of course he came.",
        "The sentence was long.",
        "I have two dogs.",
        "The following day it rained.",
        "Great news: the war is over.",
        "I hope you are well.",
        "Let me know when you arrive.",
        "Here is the plan: we run.",
        "The sentence is: ten years in prison.",
        "My answer is: no.",
        "The assistant left.",
        "The assistant: a short film.",
        "Entailment is hard: ask a logician.",
        "A completed puzzle: 500 pieces.",
        "The complete list is: bread and butter.",
    ],
)
def test_sentences_that_resemble_numbering_or_preambles_stay_whole(sentence: str) -> None:
    assert sentence_in(sentence) == sentence
    assert sentences_in(numbered([sentence, "Go!"])) == [sentence, "Go!"]


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("„Ein Mann schläft.“", "Ein Mann schläft."),
        ("„Ein Mann schläft.”", "Ein Mann schläft."),
        ('„Ein Mann schläft."', "Ein Mann schläft."),
        ("„Ein Mann schläft“.", "Ein Mann schläft"),
        ("**„Ein Mann schläft.“**", "Ein Mann schläft."),
        ('"„Komm!“, sagte er."', "„Komm!“, sagte er."),
        ("Ein Mann schläft.“", "Ein Mann schläft."),
        ("“Ein Mann schläft.", "Ein Mann schläft."),
        *[
            (kept, kept)
            for kept in (
                "Er sagte: „Komm!“",
                "Er sagte: „Komm!”",
                'Er sagte: „Komm!"',
                "„Komm!“, sagte er.",
                "„Ja“ und „Nein“",
                "„Ja“ und „Nein”",
                '„Ja“ oder „Nein"',
            )
        ],
    ],
)
def test_quotation_marks_in_german_are_paired(written: str, sentence: str) -> None:
    assert sentence_in(written) == sentence
    assert sentences_in(numbered([written, "Go!"])) == [sentence, "Go!"]


@pytest.mark.parametrize("answer", ["", " ", "\n", '""', "``````", "**"])
def test_an_answer_without_words_is_empty(answer: str) -> None:
    assert sentence_in(answer) == ""


WORDS = st.text(string.ascii_lowercase, min_size=1, max_size=8)
SENTENCES = st.lists(WORDS, min_size=2, max_size=9).map(lambda words: "The " + " ".join(words) + ".")
STYLES = (
    "{n}. {s}",
    "{n}) {s}",
    "({n}) {s}",
    "{n}: {s}",
    "**{n}.** {s}",
    "Sentence {n}: {s}",
    "#{n}. {s}",
    "{n} - {s}",
)
QUOTES = ("{}", '"{}"', "“{}”", "*{}*", "**{}**")
PREAMBLES = ("", "Sure! Here are the sentences you asked for:\n\n", "Here you go:\n", "Certainly!\n\n")
CLOSINGS = (
    "",
    "\n\nLet me know if you need more!",
    "\n\n(Note: 20 were asked for.)",
    "\n\nI hope this helps.",
)


@settings(max_examples=200)
@given(
    st.lists(SENTENCES, min_size=2, max_size=25),
    st.sampled_from(STYLES),
    st.sampled_from(QUOTES),
    st.sampled_from(PREAMBLES),
    st.sampled_from(CLOSINGS),
    st.sampled_from(("\n", "\n\n", "\r\n")),
)
def test_listed_sentences_are_parsed_back_unchanged(
    listed: list[str], style: str, quotes: str, before: str, after: str, between: str
) -> None:
    lines = [style.format(n=place, s=quotes.format(text)) for place, text in enumerate(listed, 1)]
    assert sentences_in(before + between.join(lines) + after) == listed


@settings(max_examples=200)
@given(SENTENCES, st.sampled_from(QUOTES), st.sampled_from(PREAMBLES), st.sampled_from(CLOSINGS))
def test_single_sentences_are_parsed_back_unchanged(
    sentence: str, quotes: str, before: str, after: str
) -> None:
    assert sentence_in(before + quotes.format(sentence) + after) == sentence


@settings(max_examples=300)
@given(st.text(st.sampled_from("1230.)( -*\n\"'“”[]{}:#aA,b`_"), max_size=60) | st.text(max_size=60))
def test_any_answer_gives_only_non_empty_lines(answer: str) -> None:
    for sentence in [*sentences_in(answer), sentence_in(answer)]:
        assert sentence == " ".join(sentence.split())
    assert all(sentences_in(answer))


def test_an_input_repeated_in_an_item_is_removed() -> None:
    answer = (
        "1. Premise: 'A dog barks.'\nHypothesis: 'An animal makes a noise.'\n\n2.\n Premise: 'A dog barks.'\n"
    )
    answer += "Hypothesis: 'The dog is loud.'\n\n3. Original sentence: A dog barks.\n   'A pet is heard.'"
    assert sentences_in(answer) == ["An animal makes a noise.", "The dog is loud.", "A pet is heard."]


JUDGED = {
    # 130 completions, some of which were used to write the parser's rules.
    "judged_completions.tsv": {
        778: "examples follow the list, and are numbered anew",
        1891: "each item is the premise, the sentence is below it",
        1893: "the list is an item of another one, which begins with the premise",
    },
    # 100 others, judged before the parser ran.
    "judged_blind.tsv": {
        1140: "a quotation mark that does not close, before another",
        1382: "each item is the premise, a label and a numbered sentence with a verdict",
        1388: "five sentences between one pair of quotation marks",
    },
}
"""By sample: the misread completions, by their index in raw_completions.jsonl.

The files hold indices, and hashes of the sentences that a person found.
"""


@pytest.mark.parametrize("sample", JUDGED)
def test_real_completions_are_parsed_as_by_hand_with_three_exceptions(real_data: Path, sample: str) -> None:
    file = real_data / "llm" / "raw_completions.jsonl"
    if not file.exists():
        pytest.skip(f"needs {file}")
    completions = [json.loads(line)["completion"] for line in file.read_text("utf-8").strip().split("\n")]
    misread = set()
    for line in (Path(__file__).parent / sample).read_text("utf-8").splitlines():
        place, *judged = line.split()
        sentences = [each for each in sentences_in(completions[int(place)]) if not looks_like_a_refusal(each)]
        if [hashlib.sha256(each.encode()).hexdigest()[:12] for each in sentences] != judged:
            misread.add(int(place))
    assert misread == set(JUDGED[sample])


@pytest.mark.parametrize(
    "sentence",
    [
        "They met at 5 p.m. (as agreed).",
        "He paid 50 dollars (about 45 euros).",
        "The U.S. (with Canada and Mexico)",
        "She said: (laughing) no.",
        '"Go away!" he shouted.',
        "2 * 3 * 4 is 24.",
        "The hypothesis is wrong.",
        "Question everything: it helps.",
        "Turn to page 3 (three) now.",
    ],
)
def test_parts_of_a_sentence_are_not_removed(sentence: str) -> None:
    assert sentences_in(f"1. {sentence}\n2. {sentence}") == [sentence, sentence]
    assert sentence_in(sentence) == sentence
