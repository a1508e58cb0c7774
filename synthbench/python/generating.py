"""Generate training data by one recipe or method, as a data frame."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from synthbench.base.durability import write_atomically
from synthbench.base.errors import UserError
from synthbench.base.home import home
from synthbench.config.documents import read_document, texts_in
from synthbench.config.recipes import RECIPE, recipe, recipes
from synthbench.config.short import expand_short
from synthbench.data.dataset import SyntheticDataset
from synthbench.plugins.files import is_in_file
from synthbench.plugins.loading import component
from synthbench.python.files import Data, base_named, study_file
from synthbench.python.running import Options, run
from synthbench.reporting.results import CostResult, ExperimentResult
from synthbench.results.collect import to_yaml

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("sentences", "gold", "dev", "passages")
PART, ROW = "part", "data"
_PLACEHOLDER = {"model": "none", "size": "small"}
"""The base, which a short file must have, if nothing is trained."""


class Ingredients(TypedDict, total=False):
    """Inputs of `generate`: data by role, the LLM, a base model, and the maximum cost in US dollars.

    Data are files, data frames or lists. `settings`: for a recipe, a patch of its row; for a method, the
    method's settings.
    """

    gold: Data
    dev: Data
    passages: Data
    llm: str | Mapping[str, Any]
    base: str | Path | Mapping[str, Any]
    budget_usd: float
    settings: Mapping[str, Any]


class Generating(Ingredients, Options, total=False):
    """Keyword arguments of `generate`: its inputs, and the options of `run`."""


def generate(name: str, sentences: Data | None = None, **given: Unpack[Generating]) -> "pd.DataFrame":
    """Generate data by a recipe, a method, or a function in a file ("my_method.py:paraphrased").

    Each row is a record. `.attrs` has the cost: usd, requests, prompt_tokens, completion_tokens. An LLM's
    answers are cached: repeating a call costs nothing. Raises UserError if an input is missing or unused, or
    if a stage fails.
    """
    while _is_recipe(name) and (first := recipe(name).starts_from) is not None:
        name = first
    title = "generate-" + "".join(letter if letter.isalnum() else "-" for letter in name)
    given_data = (sentences, given.get("gold"), given.get("dev"), given.get("passages"))
    sources = {role: data for role, data in zip(ROLES, given_data, strict=True) if data is not None}
    keys = {
        "base": base_named(given["base"]) if "base" in given else _PLACEHOLDER,
        "seeds": [0],
        **({"llm": given["llm"]} if "llm" in given else {}),
        **({"budget": {"usd": given["budget_usd"]}} if "budget_usd" in given else {}),
        "variants": {ROW: _row(name, given, list(sources))},
    }
    code = Path(name.rpartition(":")[0]) if is_in_file(name) else None
    file = study_file(title, keys, sources, code)
    long = _data_alone(file)
    if not any("method" in (part or ()) for part in long["variants"][ROW].get("data", {}).values()):
        raise UserError(f"recipe '{name}' generates no data")
    if unused := sources.keys() - long["sources"].keys():
        raise UserError(f"'{name}' reads no {' and no '.join(sorted(unused))}; leave it out")
    file = file.with_name(f"{title}.data.yaml")  # not the short file: another process may read that now
    write_atomically(file, to_yaml(long))
    options = {key: value for key, value in given.items() if key in Options.__annotations__}
    return _frame(run(file, output=file.parent / "reports", **options).result)  # type: ignore[arg-type]


def _data_alone(file: Path) -> dict[str, Any]:
    """Return a short file's long form, without training, evaluation and sources that only these use."""
    long = dict(expand_short(read_document(file), file.parent).document.data)
    row = {key: value for key, value in long["variants"][ROW].items() if key not in ("train", "evaluate")}
    named = {text for _, text in texts_in(row)}
    sources = {name: source for name, source in long["sources"].items() if name in named}
    return {**long, "sources": sources, "defaults": {}, "variants": {ROW: row}}


def _row(name: str, given: Ingredients, roles: list[str]) -> dict[str, Any]:
    """Return the patch of the experiment's only row: the recipe `name`, or a part made by the method `name`.

    `roles`: the roles that have data.
    """
    settings = dict(given.get("settings", {}))
    if _is_recipe(name):
        trains = [path for path in recipe(name).bases if not path.startswith("train.")]
        if trains and "base" not in given:
            raise UserError(f"recipe '{name}' trains a model to label its data: give `base`")
        return {RECIPE: name, **settings}
    if is_in_file(name):
        name = Path(name).name
    else:
        plugin = component("methods", name)
        roles = [role for role in (*plugin.source_roles, *plugin.optional_source_roles) if role in roles]
    made = {"method": name, "sources": {role: role for role in roles}, **settings}
    return {"data": {"gold": None, "made": made}}


def _is_recipe(name: str) -> bool:
    return name.partition("@")[0] in recipes()


def _frame(result: ExperimentResult) -> "pd.DataFrame":
    """Return the records of all generated parts as a data frame; `.attrs` has their cost."""
    import pandas as pd

    frames = [
        SyntheticDataset.read(home() / data.folder).table.to_pandas().assign(**{PART: data.part})
        for data in result.runs[0].datasets
        if data.method
    ]
    frame: pd.DataFrame = pd.concat(frames, ignore_index=True)
    frame = frame.drop(columns=[name for name in frame.columns if _is_empty(frame[name])])
    frame.attrs |= dict(_cost(result.costs))
    return frame


def _is_empty(column: "pd.Series") -> bool:
    # As text, since a ranking's candidates are arrays, which compare element by element.
    return bool((column.isna() | column.astype(str).eq("")).all())


def _cost(costs: tuple[CostResult, ...]) -> Iterator[tuple[str, float]]:
    yield "usd", sum(each.usd for each in costs)
    yield "requests", sum(each.num_requests for each in costs)
    yield "prompt_tokens", sum(each.prompt_tokens for each in costs)
    yield "completion_tokens", sum(each.completion_tokens for each in costs)
