"""The cost of a record from each generator in which_method_real.yaml, and how many a budget buys.

    SYNTHBENCH_DATA=DIR python benchmarks/which_method_real_costs.py

The published texts have no bills, so the cost of a record is computed: tokens of its prompts and answers
times a list price. Assumptions:

- a token is four characters, as everywhere in synthbench;
- each text is a request of its own, whose prompt has 150 tokens of instructions and examples, and the
  texts that the new one is made from; nothing is cached or sent in batches;
- Llama 3 is its largest size, since the data do not say which;
- GPT2-XL took 48 hours on two GTX 1080 Ti for a data set, as the DINO paper says, of 10,500 sentences
  with three labels and two tries each; such a GPU is rented for 0.20 dollars an hour. The published rerun
  kept 21,948 of its 5,303 x 6 outputs; the others were paid for, too;
- 0.66 of the rerun's records, whose first sentences are STSb's, share no sentence with test or dev; the
  others are not charged, since they are dropped only for the sake of the test.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from measure import data_folder, exit_with

BUDGETS = {"5-cents": 0.05, "50-cents": 0.5, "5-dollars": 5.0}
CHARACTERS_PER_TOKEN = 4
INSTRUCTIONS = 150
DINO_HOURS, DINO_HOUR_USD, DINO_OUTPUTS = 2 * 48, 0.20, 10_500 * 3 * 2
DINO_RERUN_OUTPUTS = 5_303 * 3 * 2


@dataclass(frozen=True)
class Priced:
    """US dollars per million tokens of prompts and answers, and the date and source of the price."""

    prompt: float
    answer: float
    source: str


@dataclass(frozen=True)
class Generator:
    """A generator's records in a file; each text written, with the texts it was made from."""

    file: str
    where: Mapping[str, str]
    writes: Mapping[str, Sequence[str]]
    price: Priced


HOSTED_70B = Priced(0.90, 0.90, "serverless providers, May 2024 (0.59 to 0.90)")
COMMONGEN = {"anchor": (), "positive": ("anchor",), "negative": ("anchor",)}
GENERATORS = {
    "gpt-4o": Generator(
        "llm/commongen_triplets.jsonl",
        {"llm": "gpt-4o"},
        COMMONGEN,
        Priced(2.50, 10.0, "OpenAI, 2024-10-01"),
    ),
    "llama-3": Generator("llm/commongen_triplets.jsonl", {"llm": "llama-3"}, COMMONGEN, HOSTED_70B),
}
DINO = "synthetic/dino-gpt2xl/sts-repetition-and-debias-dataset.jsonl"
CLEAN = 0.66


def records(file: Path, where: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the file's rows that have the given values."""
    with file.open(encoding="utf-8", newline="\n") as lines:
        rows = [json.loads(line) for line in lines]
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def record_usd(rows: Sequence[Mapping[str, Any]], generator: Generator) -> tuple[float, float, float]:
    """Return a record's mean tokens of prompts and answers, and its cost in US dollars."""
    answer = fmean(sum(len(row[field]) for field in generator.writes) for row in rows) / CHARACTERS_PER_TOKEN
    given = [field for fields in generator.writes.values() for field in fields]
    prompt = (
        INSTRUCTIONS * len(generator.writes)
        + fmean(sum(len(row[field]) for field in given) for row in rows) / CHARACTERS_PER_TOKEN
    )
    return prompt, answer, (prompt * generator.price.prompt + answer * generator.price.answer) / 1e6


def bought(data: Path) -> dict[str, tuple[int, float]]:
    """Return each generator's number of published records, and the US dollars per record."""
    found = {}
    for name, generator in GENERATORS.items():
        rows = records(data / generator.file, generator.where)
        found[name] = (len(rows), record_usd(rows, generator)[2])
    number = len(records(data / DINO, {}))
    written = DINO_HOURS * DINO_HOUR_USD / DINO_OUTPUTS * DINO_RERUN_OUTPUTS
    return found | {"dino": (number, written / number * CLEAN)}


def lines(data: Path) -> Iterator[str]:
    """Yield a Markdown table: cost of a record, and records for each budget, at most all of them."""
    yield f"| generator | records | prompt | answer | price | US dollars a record | {' | '.join(BUDGETS)} |"
    yield "| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |"
    for name, (number, usd) in bought(data).items():
        how = f" | | {DINO_HOUR_USD} a GPU hour"
        if generator := GENERATORS.get(name):
            prompt, answer, _ = record_usd(records(data / generator.file, generator.where), generator)
            price = f"{generator.price.prompt:g} and {generator.price.answer:g}, {generator.price.source}"
            how = f"{prompt:.0f} | {answer:.0f} | {price}"
        amounts = " | ".join(f"{min(number, round(budget / usd)):,}" for budget in BUDGETS.values())
        yield f"| {name} | {number:,} | {how} | {usd:.3g} | {amounts} |"


def main() -> None:
    """Print the table."""
    print("\n".join(lines(data_folder())))


if __name__ == "__main__":
    exit_with(main)
