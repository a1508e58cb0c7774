"""Variety of the sandbox's LLM's answers, beside measured LLMs.

Run: SYNTHBENCH_DATA=... python benchmarks/llm_habits.py [--habits 0 0.6 1]

Not a benchmark of speed. The first table compares real LLMs' texts, each from one form of prompt, with the
sandbox's under SynCSE's naive prompt (fixed) and varied prompts. The second counts the kinds in 300 new
sentences and their pairs.
"""

import argparse
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from measure import data_folder, exit_with

from synthbench.api import PromptChat
from synthbench.llm.answered import sentences_in
from synthbench.sources.description import Roots
from synthbench.sources.models import WorldSource
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.llm.habits import changed_slots
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench_syncse.prompts import NEGATIVE, POSITIVE, SHIPPED, labels_of, sentences_of
from synthbench_syncse.requests import LabelChats, SentenceChats

NUM_TEXTS = 60
NUM_SAMPLES = 20
NUM_ANSWERS = 5
NUM_SEEDS = 5
NUM_LISTS = 15
TOP = 10
NEAR = 0.7
KEPT = 0.5
_WORD = re.compile(r"[\w']+")
_NEGATION = re.compile(r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|hardly)\b|n't\b")


@dataclass(frozen=True)
class Answered:
    """A given sentence and an LLM's answers to it, up to NUM_ANSWERS texts."""

    given: str
    answers: Sequence[str]


Made = Sequence[Answered]
Measure = Callable[[Made], float]


def words(text: str) -> list[str]:
    """Return the words in lower case."""
    return _WORD.findall(text.lower().replace("’", "'"))


def top_openings(texts: Sequence[str]) -> float:
    """Return the share of texts that begin with one of the ten most frequent openings of two words."""
    counts = Counter(tuple(words(text)[:2]) for text in texts)
    return sum(count for _, count in counts.most_common(TOP)) / len(texts)


def distinct(texts: Iterable[str], size: int) -> float:
    """Return the share of distinct n-grams."""
    grams = [tuple(said[i : i + size]) for said in map(words, texts) for i in range(len(said) - size + 1)]
    return len(set(grams)) / len(grams)


def shared(first: str, second: str) -> float:
    """Return the Jaccard similarity of two texts' words."""
    one, other = set(words(first)), set(words(second))
    return len(one & other) / max(1, len(one | other))


def denies(text: str) -> bool:
    """Return whether a text has a word of negation."""
    return bool(_NEGATION.search(text.lower().replace("’", "'")))


def pairs(made: Made) -> list[tuple[str, str]]:
    """Return each given sentence with each of its answers."""
    return [(each.given, text) for each in made for text in each.answers]


def mean_over_pairs(of_pair: Callable[[str, str], float]) -> Measure:
    """Return a measure that is a mean over all pairs."""
    return lambda made: fmean(of_pair(*pair) for pair in pairs(made))


def over_samples(of_texts: Callable[[Sequence[str]], float], *, by_given: bool) -> Measure:
    """Return the mean of `of_texts` over samples of answers; `by_given`: relative to the given texts."""

    def measure(made: Made) -> float:
        random, found = Random(0), []
        for _ in range(NUM_SAMPLES):
            sample = random.sample(made, min(NUM_TEXTS, len(made)))
            of_answers = of_texts([random.choice(each.answers) for each in sample])
            found.append(of_answers / of_texts([each.given for each in sample]) if by_given else of_answers)
        return fmean(found)

    return measure


def near_duplicates(made: Made) -> float:
    """Return the share of answer pairs that share most words; nan if most sentences have one answer."""
    both = [pair for each in made for pair in combinations(each.answers, 2)]
    return fmean(shared(*pair) >= NEAR for pair in both) if len(both) >= len(made) else math.nan


def top_kind(made: Made) -> float:
    """Return the share of the most frequent kind of change visible from the words alone."""

    def kind(given: str, text: str) -> str:
        if denies(given) != denies(text):
            return "denial"
        return "edit" if shared(given, text) >= KEPT else "other"

    counts = Counter(kind(*pair) for pair in pairs(made))
    return max(counts.values()) / counts.total()


OF_TEXTS: Mapping[str, Callable[[Sequence[str]], float]] = {
    "ten most frequent openings": top_openings,
    **{f"distinct-{size}": partial(distinct, size=size) for size in (1, 2, 3)},
}
BY_GIVEN = {
    f"{name}, relative to the given sentences'": over_samples(of, by_given=True)
    for name, of in OF_TEXTS.items()
}
OF_NEW = {name: over_samples(of, by_given=False) for name, of in OF_TEXTS.items()}
OF_BOTH: Mapping[str, Measure] = {
    **BY_GIVEN,
    "words shared with the given sentence (Jaccard)": mean_over_pairs(shared),
    f"near-duplicates among {NUM_ANSWERS} answers": near_duplicates,
}
MEASURES: Mapping[str, Mapping[str, Measure]] = {
    "contradictions": {
        "denial put in or taken away": mean_over_pairs(lambda given, text: denies(given) != denies(text)),
        "most frequent kind of change": top_kind,
        **OF_BOTH,
    },
    "paraphrases": OF_BOTH,
    "new sentences": OF_NEW,
}


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a .jsonl file."""
    with path.open(encoding="utf-8", newline="\n") as file:
        yield from map(json.loads, file)


def grouped(texts: Iterable[tuple[str, str]]) -> list[Answered]:
    """Return each given sentence with its first answers."""
    answers: dict[str, dict[str, None]] = defaultdict(dict)
    for given, text in texts:
        answers[given][text] = None
    return [Answered(given, list(found)[:NUM_ANSWERS]) for given, found in answers.items()]


def real(data: Path) -> Mapping[str, Mapping[str, Made]]:
    """Return real LLMs' texts, by request, then by file and LLM."""
    found: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for name in ("mnli_three_llms", "raw_completions"):
        for row in rows(data / "llm" / f"{name}.jsonl"):
            if row["label"] == "contradiction":
                texts = [row["text"]] if "text" in row else sentences_in(row["completion"])
                given = found["contradictions"][f"{name}, {row['llm']}, {row['mode']}"]
                given.extend((row["premise"], text) for text in texts)
    for row in rows(data / "llm" / "commongen_triplets.jsonl"):
        found["paraphrases"][f"commongen, {row['llm']}"].append((row["anchor"], row["positive"]))
        found["new sentences"][f"commongen, {row['llm']}"].append((row["anchor"], row["anchor"]))
    for name in ("fb", "sst5"):
        for row in rows(data / "llm" / f"paraphrases_{name}.jsonl"):
            if row["way"] == "paraphrase":
                found["paraphrases"][f"{name}, {row['model']}"].append((row["seed"], row["text"]))
    for row in rows(data / "llm" / "gpt3_paraphrases_judged.jsonl"):
        if row["label"] == 1:
            found["paraphrases"]["judged, gpt-3"].append((row["text_a"], row["text_b"]))
    for row in rows(data / "synthetic" / "dino-gpt2xl" / "sts-x1x2-reproduced-small.jsonl"):
        found["new sentences"]["dino, gpt2-xl"].append((row["text_a"], row["text_a"]))
    return {
        task: {name: grouped(texts) for name, texts in by_name.items()} for task, by_name in found.items()
    }


def choices(settings: LLMSettings, chat: PromptChat, count: int = 1) -> list[str]:
    """Return the answers to a method's request."""
    answers = Answers(settings, {"messages": list(chat.messages), "seed": chat.sample})
    return [answers.choice(index) for index in range(count)]


def new_sentences(settings: LLMSettings, num_lists: int, *, is_naive: bool) -> list[str]:
    """Return the sentences from `num_lists` requests."""
    chats = SentenceChats(sentences_of(SHIPPED.read()), 0, is_naive=is_naive)
    return [text for i in range(num_lists) for text in sentences_in(choices(settings, chats.chat(i))[0])]


def sandbox(habits: float, given: Sequence[str], *, is_naive: bool) -> Mapping[str, Sequence[Made]]:
    """Return the sandbox's LLM's texts, by request, once for each of its seeds."""
    found: dict[str, list[Made]] = defaultdict(list)
    for seed in range(NUM_SEEDS):
        settings = LLMSettings(habits=habits, seed=seed)
        texts = new_sentences(settings, NUM_LISTS, is_naive=is_naive)
        found["new sentences"].append([Answered(text, [text]) for text in texts])
        some = given[seed * NUM_TEXTS : (seed + 1) * NUM_TEXTS]
        for task, kind in (
            ("paraphrases", POSITIVE),
            ("contradictions", NEGATIVE),
        ):
            chats = LabelChats(labels_of(SHIPPED.read(), kind), kind, seed, is_naive)
            asked = [(text, chats.chat(f"{i}", text)) for i, text in enumerate(some)]
            found[task].append([Answered(text, choices(settings, chat, NUM_ANSWERS)) for text, chat in asked])
    return found


def print_measures(data: Path, columns: Sequence[tuple[bool, float]]) -> None:
    """Print the first table: measures of real LLMs, and of the sandbox's under each prompt and share."""
    source = {"sandbox": "sentences", "split": "train", "size": NUM_SEEDS * NUM_TEXTS}
    records: list[Any] = list(WorldSource.model_validate(source).load(Roots()))
    given = [record.sentence for record in records]
    written = [sandbox(habits, given, is_naive=is_naive) for is_naive, habits in columns]
    by_task = real(data)
    print(_row("", "real LLMs", *(_name(*column) for column in columns)))
    print(_row("---", "---", *("---:" for _ in columns)))
    within = [0] * len(columns)
    for task, measures in MEASURES.items():
        for name, measure in measures.items():
            of_real = [value for made in by_task[task].values() if not math.isnan(value := measure(made))]
            low, high = (round(value, 2) for value in (min(of_real), max(of_real)))
            values = [round(fmean(map(measure, made[task])), 2) for made in written]
            if task != "new sentences":
                within = [count + (low <= value <= high) for count, value in zip(within, values, strict=True)]
            print(_row(f"{task}: {name}", f"{low:.2f} to {high:.2f}", *(f"{value:.2f}" for value in values)))
    num = sum(len(measures) for task, measures in MEASURES.items() if task != "new sentences")
    print(_row(f"measures of given sentences within what is real, of {num}", "", *map(str, within)))


def print_variety(columns: Sequence[tuple[bool, float]]) -> None:
    """Print the second table: the number of different kinds in 300 sentences with their pairs."""
    counted = [variety(habits, is_naive=is_naive) for is_naive, habits in columns]
    print(_row("", *(_name(*column) for column in columns)))
    print(_row("---", *("---:" for _ in columns)))
    for name in counted[0]:
        print(_row(name, *(f"{effective(counts[name]):.1f} ({len(counts[name])})" for counts in counted)))


def variety(habits: float, *, is_naive: bool) -> Mapping[str, Counter[Any]]:
    """Return how often each domain, agent, object, form and kind of change occurs."""
    settings = LLMSettings(habits=habits)
    counts: dict[str, Counter[Any]] = defaultdict(Counter)
    positives = LabelChats(labels_of(SHIPPED.read(), POSITIVE), POSITIVE, 0, is_naive)
    negatives = LabelChats(labels_of(SHIPPED.read(), NEGATIVE), NEGATIVE, 0, is_naive)
    for place, text in enumerate(new_sentences(settings, NUM_LISTS, is_naive=is_naive)):
        anchor, positive, negative = (
            read_sentence(said)
            for said in (
                text,
                choices(settings, positives.chat(f"{place}", text))[0],
                choices(settings, negatives.chat(f"{place}", text))[0],
            )
        )
        assert anchor
        assert positive
        assert negative
        counts["domains"][anchor.event.domain] += 1
        counts["agents"][anchor.event.domain, anchor.event.agent] += 1
        counts["objects"][anchor.event.domain, anchor.event.object] += 1
        counts["forms of sentences"][anchor.wording.form] += 1
        counts["forms of positives"][positive.wording.form] += 1
        counts["forms of negatives"][negative.wording.form] += 1
        counts["kinds of change"][changed_slots(anchor.event, negative.event)] += 1
    return counts


def effective(counts: Counter[Any]) -> float:
    """Return the number of equally frequent kinds with the same variety: the exponential of the entropy."""
    shares = [count / counts.total() for count in counts.values()]
    return math.exp(-sum(share * math.log(share) for share in shares))


def _name(is_naive: bool, habits: float) -> str:
    return f"{'naive' if is_naive else 'varied'}, {habits:g}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--habits", type=float, nargs="+", default=[0.0, LLMSettings().habits, 1.0])
    given = parser.parse_args()
    columns = [(is_naive, habits) for is_naive in (True, False) for habits in given.habits]
    print_measures(data_folder(), columns)
    print()
    print_variety(columns)


if __name__ == "__main__":
    exit_with(main)
