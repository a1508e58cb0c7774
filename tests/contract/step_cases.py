"""The cases of prepare steps that may ask an LLM: for each entry point, settings and small data.

Golden outputs and the contract tests of steps read them. A new step that may ask an LLM needs a case here
which makes LEAST_REQUESTS requests or more.
"""

from contract.asking_cases import Given, PluginCase
from contract.stand_ins import PAIRS, TEXTS, graded, likely, numbered, pairs, triplets

from synthbench.api import ChatAmount, RecordKind, Step, SyntheticDataset, Triplet
from synthbench.config.llm import NamedLLM
from synthbench.engine.stage import Stage
from synthbench.plugins.labellers import Judge
from synthbench.stages.asking import AGAINST
from synthbench.stages.preparation import ApplyStep


class StepCase(PluginCase):
    """A case of a step; `data` are the records under "data", and its further sources by name."""

    group = "steps"

    def predicted(self, plugin: Step) -> ChatAmount | None:
        return plugin.asks(len(self.data["data"]))

    def stage(self, llm: NamedLLM | None) -> Stage:
        inputs = {
            name if name == "data" else f"{AGAINST}{name}": Stage(Given(name, each))
            for name, each in self.data.items()
        }
        return Stage(ApplyStep(self.name, self.configured(), llm), inputs)


LABELLER = {"judge": {}}
PASSAGES = SyntheticDataset.create(
    RecordKind.TRIPLET,
    [
        Triplet(anchor=f"{PAIRS[row][0][:-1]}?", positive=" ".join(TEXTS[row : row + 5]), negative=TEXTS[6])
        for row in range(3)
    ],
)
STEP_CASES = {
    case.name: case
    for case in (
        StepCase(
            "judge",
            {"question": {"prompt": Judge().prompt, "grades": (0, 5)}, "least": 2},
            {"data": pairs(6)},
            graded,
        ),
        StepCase("keep-best", {"labeller": LABELLER, "size": 3}, {"data": pairs(6)}, graded),
        StepCase("keep-consistent", {"labeller": LABELLER, "tolerance": 0.5}, {"data": pairs(6)}, graded),
        StepCase("relabel-retrieved", {"number": 1}, {"data": PASSAGES}, likely),
        StepCase("score-triplets", {"labeller": LABELLER}, {"data": triplets()}, graded),
        StepCase("write-negatives", {"number": 2, "seed": 1}, {"data": PASSAGES}, numbered),
    )
}
