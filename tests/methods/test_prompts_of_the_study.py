"""The sandbox's LLM understands every prompt of `prompts_sandbox` as what it asks for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from synthbench.plugins.loading import component
from synthbench.worlds.sandbox.llm.understanding import AskedTask, understand

FOLDER = Path(__file__).parents[2] / "experiments" / "studies" / "prompts"
CHEFS = "Two young chefs are slicing potatoes in the kitchen at noon."
HIDDEN = CHEFS.replace("young", "<mask>")
LABELS = {"positive": AskedTask.PARAPHRASE, "negative": AskedTask.CONTRADICTION}
FILES: Mapping[str, tuple[str, Mapping[str, AskedTask]]] = {
    "labels_one": ("syncse-partial", LABELS),
    "labels_varied": ("multicsr", LABELS),
    "fill_exemplars": ("claif", {"fill": AskedTask.FILLING, "paraphrase": AskedTask.PARAPHRASE}),
    "fill_varied": ("claif", {"fill": AskedTask.FILLING, "paraphrase": AskedTask.PARAPHRASE}),
    "queries_varied": ("gpl-queries", {"queries": AskedTask.QUESTION}),
    "sts_one": ("brainstorm", {"sts": AskedTask.JSON}),
    "sts_exemplars": ("brainstorm", {"sts": AskedTask.JSON}),
    "sts_varied": ("brainstorm", {"sts": AskedTask.JSON}),
}
"""By file: a method that reads it, and the task that each of its names asks for."""


def test_every_file_is_tried() -> None:
    assert {file.stem for file in FOLDER.glob("*.yaml")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_each_prompt_is_understood_as_its_task(name: str) -> None:
    method, tasks = FILES[name]
    content: Any = component("methods", method).shipped.schema.of_file(str(FOLDER / f"{name}.yaml"))
    assert {*content.named} == {*tasks}
    for key, task in tasks.items():
        found = getattr(content, key)
        prompts = found.records if key == "sts" else found
        for prompt in prompts:
            sentence = HIDDEN if key == "fill" else CHEFS
            chat = prompt.chat({"sentence": sentence, "passage": CHEFS, "mask": "<mask>"}, 0)
            ask = understand([(each["role"], each["content"]) for each in chat.messages])
            assert ask.task is task, prompt.instruction
            assert key == "sts" or ask.sentence == sentence
