"""The cases of methods: for every entry point of `synthbench.methods`, settings and small sources.

All contract tests of methods read them: golden outputs, shards, kill and resume, ledger, budget, malformed
answers, `plan`. A new method needs a case here, and nothing else in these tests. Of a method that asks an
LLM, one case at least must make LEAST_REQUESTS requests or more.
"""

from typing import Any

from contract.asking_cases import Given, PluginCase
from contract.stand_ins import (
    ENCODER,
    TEXTS,
    graded,
    in_json,
    in_levels,
    pairs,
    sentences,
    triplets,
)

from synthbench.api import ChatAmount, Method, SyntheticDataset, TrainedModel
from synthbench.config.llm import NamedLLM
from synthbench.engine.stage import Stage
from synthbench.stages.asking import NEED
from synthbench.stages.generation import SOURCE, Generate

T5 = "package:contract_t5/model"
"""A random sequence-to-sequence model, under a name that is the same everywhere; conftest.py writes it."""
LABELS = {
    "1": {"instruction": 'Write two sentences that mean the same.\n1: "<X1>"\n2: "'},
    "0.5": {"instruction": 'Write two similar sentences.\n1: "<X1>"\n2: "', "counterlabels": ["1"]},
    "0": {"instruction": 'Write two unlike sentences.\n1: "<X1>"\n2: "', "counterlabels": ["0.5", "1"]},
}


class MethodCase(PluginCase):
    """A case of a method; `data` are the sources by role, and the data sets of its dependencies by name."""

    group = "methods"

    def sources(self) -> dict[str, SyntheticDataset]:
        """Return the sources by role."""
        needs = self.configured().needs()
        return {name: each for name, each in self.data.items() if name not in needs}

    def predicted(self, plugin: Method) -> ChatAmount | None:
        return plugin.asks({name: len(each) for name, each in self.data.items()})

    def stage(self, llm: NamedLLM | None) -> Stage:
        method = self.configured()
        needs = {
            f"{NEED}{name}": Given(name, None if isinstance(need, TrainedModel) else self.data[name])
            for name, need in method.needs().items()
        }
        sources = {f"{SOURCE}{name}": Given(name, each) for name, each in self.sources().items()}
        inputs = {name: Stage(operation) for name, operation in (sources | needs).items()}
        return Stage(Generate(self.name, method, llm), inputs)


def augsbert(**sampler: Any) -> dict[str, Any]:
    return {"cross_encoder": {"base": ENCODER}, "seed": 3, "sampler": sampler}


def _cases() -> dict[str, MethodCase]:
    gold, both = {"gold": pairs()}, {"bi_encoder": {"base": ENCODER}}
    labelled = {"gold": pairs(), "labelled": pairs(40, [row / 40 for row in range(40)])}
    found = {"gold": pairs(), "bm25": pairs(3), "semantic-search": pairs(6)}
    lm = {"language_model": {"model": "sandbox/lm"}, "seed": 1, "max_new_tokens": 12, "tries": 2}
    task_of = {"task": {"labels": LABELS}}
    tasks = {
        f"tasks of {category}": sentences(f"Find a text on {category}", f"Given a {category}, find one")
        for category in ("short-long", "long-short", "short-short", "long-long")
    }
    written = {"sentences": sentences(*TEXTS[:3])}
    chosen = {"subset": "summary", "label": "school", "instruction": "a cook", "source_id": "s0"}
    configured = {
        "passages": sentences(*TEXTS[:6]),
        "configurations": sentences(*TEXTS[:6], **chosen),
    }
    seq2seq = {"model": T5, "max_new_tokens": 9}
    listed: dict[str, tuple[Any, ...]] = {
        "augsbert random": ("augsbert", augsbert(name="random", size=6), gold),
        "augsbert kde": ("augsbert", augsbert(name="kde", size=40), labelled),
        "augsbert kde by class": (
            "augsbert",
            augsbert(name="kde", size=40),
            {**labelled, "gold": pairs(scores=(1.0, 1.0, 1.0, 0.0))},
        ),
        "augsbert bm25": ("augsbert", augsbert(name="bm25", k=2), gold),
        "augsbert semantic": ("augsbert", augsbert(name="semantic-search", k=2, **both), gold),
        "augsbert both": (
            "augsbert",
            augsbert(name="bm25+semantic-search", k=2, semantic_k=1, **both),
            found,
        ),
        "augsbert by an LLM": (
            "augsbert",
            {"labeller": {"judge": {}}, "seed": 3, "sampler": {"name": "random", "size": 6}},
            gold,
            graded,
        ),
        "augsbert-domain": (
            "augsbert-domain",
            {"cross_encoder": {"base": ENCODER}, "both_orders": False},
            {"gold": pairs(1), "target": pairs(3)},
        ),
        "augsbert-domain by an LLM": (
            "augsbert-domain",
            {"labeller": {"judge": {}}},
            {"gold": pairs(1), "target": pairs(8)},
            graded,
        ),
        "brainstorm": ("brainstorm", {"size": 10, "seed": 2}, tasks, in_json),
        "brainstorm-tasks": ("brainstorm-tasks", {"category": "short-long", "size": 90}, {}, in_json),
        "claif-pairs": (
            "claif-pairs",
            {"mask_rates": [0.0, 0.3, 0.7], "generations": 2, "seed": 2},
            {"sentences": sentences(*TEXTS[:2])},
        ),
        "claif": (
            "claif",
            {"judge": {"explanation": True}, "mask_rates": [0.2, 0.5]},
            {"sentences": sentences(*TEXTS[:3]), "pairs": pairs(6)},
            graded,
        ),
        "contextual-substitution": (
            "contextual-substitution",
            {"language_model": ENCODER, "top_k": 20, "copies": 2},
            {"gold": pairs(2)},
        ),
        "relabel": (
            "relabel",
            {"labeller": {"cross_encoder": {"base": ENCODER}}, "seed": 3},
            {"pairs": pairs(), "gold": pairs()},
        ),
        "relabel mixed": (
            "relabel",
            {"labeller": {"cross_encoder": {"base": ENCODER}}, "share": 0.5, "within": 0.6},
            {"pairs": pairs(), "gold": pairs(), "scores": pairs(scores=(0.1, 0.9, 0.5, 0.2))},
        ),
        "relabel by an LLM": ("relabel", {"labeller": {"judge": {}}}, {"pairs": pairs(6)}, graded),
        "relabel triplets by cosine": (
            "relabel",
            {"labeller": {"encoder": {"base": ENCODER}}},
            {"triplets": triplets()},
        ),
        "dino": ("dino", {**lm, **task_of, "samples": 1, "decay": 20.0}, {"x1": sentences(*TEXTS[:2])}),
        "dino x1": (
            "dino",
            {**lm, **task_of, "samples": 1, "x1": {"size": 3}},
            {"x1": sentences(TEXTS[2])},
        ),
        "dino-texts": ("dino-texts", {**lm, "size": 3, "labels": {"a": {"instruction": 'Say: "'}}}, {}),
        "gpl-queries": (
            "gpl-queries",
            {"queries_per_passage": 2, "seed": 2},
            {"passages": sentences(*TEXTS[:4])},
        ),
        "gpl-queries few-shot": (
            "gpl-queries",
            {"total_queries": 10, "prompt": "few-shot"},
            {"passages": sentences(*TEXTS[:3])},
        ),
        "two-passage-queries": (
            "two-passage-queries",
            {"queries_per_passage": 2, "seed": 2},
            {"passages": sentences(*(" ".join(TEXTS[row : row + 5]) for row in range(4)))},
        ),
        "gpl-queries seq2seq": (
            "gpl-queries",
            {"queries_per_passage": 3, "seq2seq": seq2seq},
            {"passages": sentences(*TEXTS[:4])},
        ),
        "multicsr-triplets seq2seq": (
            "multicsr-triplets",
            {"seq2seq": seq2seq},
            {"sentences": sentences(*TEXTS[:4])},
        ),
        "multicsr-triplets": ("multicsr-triplets", {"seed": 2}, {"sentences": sentences(*TEXTS[:3])}),
        "multicsr": (
            "multicsr",
            {"positive_from": 1.0, "negative_to": 4.0, "gap": 0.0},
            {"sentences": sentences(*TEXTS[:4]), "triplets": triplets()},
            graded,
        ),
        "graded-documents": (
            "graded-documents",
            {"lists_per_query": 2, "seed": 2},
            {"queries": sentences(*TEXTS[:4])},
            in_levels,
        ),
        "persona-configurations": (
            "persona-configurations",
            {"queries_per_passage": 2, "seed": 2},
            {"passages": sentences(*TEXTS[:4])},
            in_json,
        ),
        "persona-configurations nearest": (
            "persona-configurations",
            {"encoder": {"base": ENCODER}, "candidates": 2},
            {"passages": sentences(*TEXTS[:4]), "personas": sentences("a cook", "a nurse", "a judge")},
            in_json,
        ),
        "persona-queries": ("persona-queries", {"seed": 2}, configured, in_json),
        "syncse-partial": ("syncse-partial", {"seed": 2}, {"sentences": sentences(*TEXTS[:3])}),
        "syncse-scratch": ("syncse-scratch", {"size": 30}, written),
        "syncse-naive": ("syncse-naive", {"size": 30}, written),
        "syncse-sentences": ("syncse-sentences", {"size": 30, "seed": 2}, {}),
        "syncse-sentences long": ("syncse-sentences", {"size": 100}, {}),
        "syncse-sentences domain": ("syncse-sentences", {"size": 20, "domain": "biomedicine"}, {}),
    }
    return {name: MethodCase(*of_case) for name, of_case in listed.items()}


METHOD_CASES = _cases()
