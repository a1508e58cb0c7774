"""The sandbox's LLM recognises the task and the sentence from the messages alone."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_prompts import FORMATS, LISTS, NEGATIVE, OUTSIDE, POSITIVE

from synthbench.worlds.sandbox.llm.understanding import Ask, AskedTask, Message, understand
from synthbench.worlds.sandbox.realisation import REGISTERS, Register, tell
from synthbench.worlds.sandbox.sampling import Relation, draw_event, draw_partner
from synthbench.worlds.sandbox.vocabulary import domain_names

HARP = "A man is playing a harp."
PROMPTS = [(prompt, AskedTask.PARAPHRASE) for prompt in POSITIVE]
PROMPTS += [(prompt, AskedTask.CONTRADICTION) for prompt in NEGATIVE]


def asked(*messages: Message) -> tuple[AskedTask, str]:
    ask = understand(messages)
    return ask.task, ask.sentence


def grammar_sentence(seed: int, register: Register) -> str:
    random = Random(seed)
    return tell(draw_event(domain_names(), random), register, random)


SENTENCES = st.one_of(
    st.builds(grammar_sentence, st.integers(0, 10**9), st.sampled_from(REGISTERS)), st.sampled_from(OUTSIDE)
)


@pytest.mark.parametrize(("prompt", "task"), PROMPTS)
@pytest.mark.parametrize("layout", FORMATS)
def test_every_prompt_is_understood_in_every_layout(prompt: str, task: AskedTask, layout: str) -> None:
    for sentence in (HARP, "Harvest of corn by two farmers in field", OUTSIDE[0]):
        assert asked(("user", layout.format(prompt=prompt, sentence=sentence))) == (task, sentence)


def test_a_colon_in_the_instruction_does_not_hide_an_earlier_quoted_sentence() -> None:
    said = "She told us that nobody wants the same thing."
    words = "Keep the words, change what is meant: the sense must not be preserved."
    assert asked(("user", f"“{said}” {words}")) == (AskedTask.CONTRADICTION, said)


@settings(max_examples=150)
@given(SENTENCES, st.sampled_from(PROMPTS), st.sampled_from(FORMATS), st.lists(SENTENCES, max_size=5))
def test_exemplars_do_not_change_the_request(
    sentence: str, prompt: tuple[str, AskedTask], layout: str, shown: list[str]
) -> None:
    words, task = prompt
    chat: list[Message] = []
    for text in shown:
        chat += [("user", layout.format(prompt=words, sentence=text)), ("assistant", "Something was said.")]
    last: Message = ("user", layout.format(prompt=words, sentence=sentence))
    assert asked(*chat, last) == (task, sentence)


@settings(max_examples=150)
@given(SENTENCES, st.sampled_from(PROMPTS))
def test_the_instruction_may_be_in_the_system_message_or_first_turn(
    sentence: str, prompt: tuple[str, AskedTask]
) -> None:
    words, task = prompt
    assert asked(("system", words), ("user", sentence)) == (task, sentence)
    first: Message = ("user", f"{words}\n{HARP}")
    assert asked(first, ("assistant", "So it is."), ("user", sentence)) == (task, sentence)
    shown: list[Message] = [("user", "Boy kicks ball"), ("assistant", "I see.")] * 3
    assert asked(("user", words), ("assistant", "Yes."), *shown, ("user", sentence)) == (task, sentence)


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.sampled_from(REGISTERS), st.sampled_from(Relation))
def test_without_an_instruction_the_exemplars_define_the_task(
    seed: int, register: Register, relation: Relation
) -> None:
    random = Random(seed)
    chat: list[Message] = []
    for _ in range(3):
        event = draw_event(domain_names(), random)
        given_text = tell(event, register, random)
        other = tell(draw_partner(event, relation, domain_names(), random), register, random, given_text)
        chat += [("user", given_text), ("assistant", other)]
    task = AskedTask.PARAPHRASE if relation is Relation.PARAPHRASE else AskedTask.CONTRADICTION
    assert asked(*chat, ("user", HARP)) == (task, HARP)


@pytest.mark.parametrize("layout", ["{}", "Contradict this.\n{}", "Input: {}\nOutput:", '"{}"'])
@pytest.mark.parametrize(
    "sentence",
    ["You should rewrite the sentence in other words.", "What is the opposite of love?", "Sentence 5"],
)
def test_exemplars_show_the_position_of_the_sentence_whatever_its_content(layout: str, sentence: str) -> None:
    chat: list[Message] = [("system", "Contradict every sentence.")]
    for shown in ("A woman plays a cello.", "Boy kicks ball", "Two dogs are chewing a bone."):
        chat += [("user", layout.format(shown)), ("assistant", "Certainly not.")]
    assert asked(*chat, ("user", layout.format(sentence))) == (AskedTask.CONTRADICTION, sentence)


def test_exemplars_may_be_labelled_within_one_message() -> None:
    shown = "Sentence: A woman plays a cello.\nOutput: A lady {} playing a cello.\n\nSentence: {}\nOutput:"
    assert asked(("user", shown.format("is", HARP))) == (AskedTask.PARAPHRASE, HARP)
    assert asked(("user", shown.format("is not", HARP))) == (AskedTask.CONTRADICTION, HARP)


@pytest.mark.parametrize(("prompt", "count"), LISTS)
def test_the_number_of_requested_sentences_is_understood(prompt: str, count: int) -> None:
    alone = understand([("user", prompt)])
    assert (alone.task, alone.count) == (AskedTask.SENTENCES, count)
    example = "\n".join(f"{number}. Bird number {number} sings." for number in range(1, 11))
    one_shot = understand([("user", "Write 10 sentences."), ("assistant", example), ("user", prompt)])
    assert (one_shot.task, one_shot.count) == (AskedTask.SENTENCES, count)


def test_genre_and_topics_may_come_without_the_instruction() -> None:
    ask = understand([("system", "Write 7 sentences as the user says."), ("user", "Topics: sea, medicine")])
    assert (ask.task, ask.count) == (AskedTask.SENTENCES, 7)
    assert "medicine" in ask.instruction


@pytest.mark.parametrize(
    ("text", "count"),
    [("Give me three paraphrases of this sentence: ", 3), ("Write 5 versions of it in other words.\n", 5)],
)
def test_a_request_for_several_paraphrases_is_understood(text: str, count: int) -> None:
    ask = understand([("user", text + HARP)])
    assert (ask.task, ask.sentence, ask.count) == (AskedTask.PARAPHRASE, HARP, count)


def test_the_newest_instruction_counts_and_may_refer_to_an_earlier_sentence() -> None:
    chat: list[Message] = [("user", f"Paraphrase: {HARP}"), ("assistant", "A guy plays a harp.")]
    assert asked(*chat, ("user", "Now say the opposite.")) == (AskedTask.CONTRADICTION, HARP)


@pytest.mark.parametrize("sentence", ["The minister contradicts the president.", *OUTSIDE])
def test_the_content_of_a_sentence_is_no_instruction(sentence: str) -> None:
    assert asked(("user", f"Paraphrase: {sentence}")) == (AskedTask.PARAPHRASE, sentence)
    assert asked(("user", f'Contradict "{sentence}"')) == (AskedTask.CONTRADICTION, sentence)


@pytest.mark.parametrize(
    "text", ["", "Hello!", "What is the capital of France?", HARP, ":", '""', "Sentence:"]
)
def test_ordinary_conversation_is_not_taken_for_a_task(text: str) -> None:
    assert understand([("user", text)]).task is AskedTask.UNCLEAR
    assert understand([("assistant", text)]) == Ask(AskedTask.UNCLEAR)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.sampled_from(("system", "user", "assistant")), st.text(max_size=80)), max_size=5)
)
def test_no_message_raises_an_error(messages: list[Message]) -> None:
    assert understand(messages).count >= 1
