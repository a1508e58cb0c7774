"""A valid experiment file that tests break here or there."""

from pathlib import Path

from fakes import write_data

from synthbench.base.errors import UserError
from synthbench.config.experiment import Experiment
from synthbench.config.load import load_experiment
from synthbench.config.overrides import Overrides

VALID = """\
experiment: study
sources:
  gold: {file: gold.tsv, kind: scored_pair}
  dev: {file: dev.tsv, kind: scored_pair, split: dev}
  test: {file: test.tsv, kind: scored_pair, split: test}
seeds: [0, 1]
defaults:
  data:
    gold: {source: gold}
  train:
    trainer: fake
    base: {model: org/small}
    strength: 0.5
    selection: {evaluator: fake, sources: [dev]}
  evaluate:
    main:
      evaluator: fake
      tasks: [test]
baseline: plain
variants:
  silver:
    data.silver:
      method: fake
      sources: {gold: gold}
      size: 3
table:
  columns: [test]
runtime: {threads: null}
"""


class ExperimentFile:
    """The file `study.yaml` with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "study.yaml"
        self.file.write_text(VALID, encoding="utf-8")
        write_data(folder, gold=4, dev=3, test=5)

    def change(self, old: str, new: str) -> "ExperimentFile":
        """Replace a text that must occur exactly once."""
        text = self.file.read_text(encoding="utf-8")
        assert text.count(old) == 1, (text.count(old), old)
        self.file.write_text(text.replace(old, new), encoding="utf-8")
        return self

    def append(self, text: str) -> "ExperimentFile":
        """Add lines at the end."""
        self.file.write_text(self.file.read_text(encoding="utf-8") + text, encoding="utf-8")
        return self

    def profile(self, name: str, text: str) -> "ExperimentFile":
        """Write profiles/NAME.yaml."""
        (self.folder / "profiles").mkdir(exist_ok=True)
        (self.folder / "profiles" / f"{name}.yaml").write_text(text, encoding="utf-8")
        return self

    def line(self, text: str) -> int:
        """Return the number of the only line that holds a text."""
        lines = self.file.read_text(encoding="utf-8").splitlines()
        (number,) = [number for number, line in enumerate(lines, start=1) if text in line]
        return number

    def load(
        self,
        *assignments: str,
        variants: tuple[str, ...] = (),
        profile: str | None = None,
        seeds: tuple[int, ...] = (),
    ) -> Experiment:
        """Load and validate."""
        return load_experiment(self.file, Overrides(profile, assignments, variants, seeds))

    def faults(
        self, *assignments: str, variants: tuple[str, ...] = (), profile: str | None = None
    ) -> list[str]:
        """Return the messages that loading raises, with the folder left out; [] if it loads."""
        try:
            self.load(*assignments, variants=variants, profile=profile)
        except UserError as error:
            assert len(set(error.messages)) == len(error.messages)
            return [message.replace(f"{self.folder}/", "") for message in error.messages]
        return []
