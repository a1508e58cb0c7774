"""drop-refusals: the words in which chat models decline, and sentences that only resemble them."""

from pathlib import Path

import pytest
from applying import apply_steps

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, Triplet
from synthbench.data.refusals import looks_like_a_refusal
from synthbench.preparing.drops import DropRefusals


@pytest.mark.parametrize(
    "text",
    [
        "I cannot paraphrase this sentence.",
        "I'm sorry, but I can't paraphrase that for you.",
        "I\u2019m sorry, but I can\u2019t help with that.",
        "Sorry, I am unable to rephrase the given sentence without more context.",
        "As an AI language model, I cannot provide a contradiction of this input.",
        "I am just an AI and have no opinions.",
        "Sorry, I am unable to produce a contradicting\n sentence without more context.",
        "I am not able to generate a hypothesis for this premise.",
        "CANNOT PARAPHRASE",
        "I won't write this content.",
        "I can\u2019t carry out that request.",
        "I can't provide information or guidance on that topic.",
        "I can't generate hypotheses that may hurt. Is there anything else I can help you with?",
        "Ich kann diesen Satz nicht umschreiben.",
        "Es tut mir leid, aber ich kann Ihnen dabei nicht helfen.",
        "Leider kann ich keine Suchanfrage zu diesem Text formulieren.",
        "Als KI kann ich dazu nichts sagen.",
        "Als KI-Sprachmodell habe ich keine Meinung.",
        "抱歉，我不能改写这个句子。",
        "对不起，我无法为您生成这样的内容。",
        "作为一个人工智能语言模型，我没有个人观点。",
        "很抱歉，我无法完成这个请求。",
    ],
)
def test_refusals_are_recognised_by_their_words(text: str) -> None:
    assert looks_like_a_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "Sorry, I can't come to the party tonight.",
        "A man cannot write.",
        "You cannot rewrite history.",
        "The minister said that he is unable to help.",
        "A woman is paraphrasing a text.",
        "I cannot help but laugh.",
        "The company was unable to provide figures.",
        "Artificial intelligence is used in medicine.",
        "I can't provide for a family of five.",
        "I cannot give information to the press.",
        "Ich kann diesen Satz nicht leiden.",
        "Kann ich diesen Text umschreiben?",
        "我不能提供手机里的内容。",
        "Ich kann dir leider nicht helfen, das Sofa zu tragen.",
        "Niemand kann die Geschichte umschreiben.",
        "Als künstliche Intelligenz bezeichnet man lernende Systeme.",
        "Ich kann keinen Text auswendig.",
        "Tut mir leid, ich kann morgen nicht kommen.",
        "我无法改写历史。",
        "抱歉，我不能来参加聚会。",
        "作为人工智能的重要分支，机器学习发展很快。",
        "我是人工智能专业的学生。",
        "我无法完成老师的要求。",
        "他不能写句子。",
    ],
)
def test_an_ordinary_sentence_is_no_refusal(text: str) -> None:
    assert not looks_like_a_refusal(text)


def test_one_refusing_sentence_makes_a_record_a_counted_refusal() -> None:
    texts = [("a", "p", "n"), ("b", "p", "I cannot contradict this sentence."), ("c", "As an AI, no.", "n")]
    records = [Triplet(anchor=a, positive=p, negative=n) for a, p, n in texts]
    result = apply_steps(SyntheticDataset.create(RecordKind.TRIPLET, records), [DropRefusals()])
    assert result.column("anchor") == ["a"]
    assert result.manifest.dropped == {"drop-refusals": 2}


def test_no_sentence_of_real_data_counts_as_a_refusal(real_data: Path) -> None:
    lines = (real_data / "unlabelled" / "snli_dev_test_sentences.txt").read_text("utf-8").split("\n")
    assert len(lines) > 20_000
    assert [line for line in lines if looks_like_a_refusal(line)] == []
