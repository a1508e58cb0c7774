"""A study of three recipes in the sandbox, small enough for a test."""

from pathlib import Path
from typing import Any

from synthbench.config.overrides import Overrides
from synthbench.engine.progress import PlainProgress
from synthbench.recommending.files import PhaseFiles
from synthbench.recommending.phases import Contender, Study
from synthbench.recommending.recommend import Recommender

BASE = {"model": "sandbox/encoder"}
TRAIN = {"trainer": "bi-encoder", "base": BASE, "batch_size": 16, "max_steps": 4, "max_length": 40}
ON_GOLD = {
    **TRAIN,
    "loss": {"name": "cosent"},
    "evaluations": 1,
    "selection": {"evaluator": "sts", "sources": ["dev"]},
}


def small_study(usd: float = 100.0) -> Study:
    """Return gold-only, syncse and then-gold over 300 sentences, which an LLM of the sandbox rewrites."""
    pairs: dict[str, Any] = {"sandbox": "pairs", "size": 120, "domains": ["sport", "traffic"]}
    long: dict[str, Any] = {
        "experiment": "tickets",
        "llm": {"endpoint": "sandbox", "price": {"input": 100, "output": 400, "date": "2026-11-01"}},
        "sources": {
            "gold": {**pairs, "split": "train"},
            "dev": {**pairs, "split": "dev"},
            "test": {**pairs, "split": "test"},
            "sentences": {
                "sandbox": "sentences",
                "split": "train",
                "size": 300,
                "domains": ["sport", "traffic"],
            },
        },
        "seeds": [0, 1],
        "defaults": {"evaluate": {"main": {"evaluator": "sts", "tasks": ["test"]}}},
    }
    triplets = {"method": "syncse-partial", "sources": {"sentences": "sentences"}}
    learning = {**TRAIN, "loss": {"name": "multiple-negatives", "learns_from": "triplet"}}
    reads = {"sentences": 300}
    contenders = [
        Contender("gold-only", {"data": {"gold": {"source": "gold"}}, "train": ON_GOLD}, {}, rate=1e-3),
        Contender(
            "syncse",
            {"data": {"triplets": triplets}, "train": learning},
            reads,
            rates=(3e-4, 1e-3),
            rate=1e-3,
        ),
        Contender(
            "then-gold",
            {"data": {"gold": {"source": "gold"}}, "train": {**ON_GOLD, "starts_from": "syncse"}},
            reads,
            starts_from="syncse",
            rate=1e-3,
        ),
    ]
    return Study(long, {each.name: each for each in contenders}, "gold-only", usd)


def recommender(folder: Path, study: Study | None = None, jobs: int = 1) -> Recommender:
    """Return the recommender of a study whose phase files are written into a folder."""
    study = study or small_study()
    files = PhaseFiles(folder / "tickets.yaml", dict(study.long))
    return Recommender(
        study, files, Overrides(), PlainProgress(), jobs, folder / "reports", "tickets.yaml: budget.usd"
    )
