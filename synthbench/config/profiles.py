"""Finds profiles and applies their substitutes, so that a paper's experiment runs on a laptop."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from synthbench.base.errors import UserError, did_you_mean
from synthbench.config.documents import Document, KeyPath
from synthbench.config.problems import Problems
from synthbench.config.schema import SubstituteSection
from synthbench.data.records import RecordKind
from synthbench.sources.corpora import ON_HUB
from synthbench.sources.description import IN_DATA_FOLDER
from synthbench.sources.formats import usual_kind
from synthbench.sources.tasks import TASKS
from synthbench.worlds import NAME, world

FOLDER, EXPERIMENTS = "profiles", "experiments"
SHIPPED = Path(__file__).parents[1] / FOLDER
"""The folder of the profiles that ship with synthbench."""


def profile_file(experiment: Path, name: str) -> Path:
    """Return the file of a profile: profiles/NAME.yaml beside the experiment file, else the shipped one.

    Experiments in subfolders of `experiments` also find profiles in the folders above, up to `experiments`.

    Raises UserError for a path instead of a name, and for an unknown name (with the known names).
    """
    beside = experiment.parent / FOLDER
    if Path(name).name != name or name.endswith(".yaml"):
        stem = Path(name).name.removesuffix(".yaml")
        raise UserError(
            f"--profile {name}: must be a name alone; --profile {stem} reads {beside / f'{stem}.yaml'}"
            " or, without it, what ships with synthbench"
        )
    for folder in (*_folders(experiment), SHIPPED):
        if (folder / f"{name}.yaml").is_file():
            return folder / f"{name}.yaml"
    own = sorted({known for folder in _folders(experiment) for known in _names(folder)})
    shipped = _names(SHIPPED)
    near = did_you_mean(name, {*own, *shipped})
    raise UserError(
        f"--profile {name}: no such file: {beside / f'{name}.yaml'}; synthbench ships none of this name"
        f"; beside the experiment file: {', '.join(own) or 'none'}; shipped: {', '.join(shipped)}"
        + (near if "did you mean" in near else "")
    )


def _folders(experiment: Path) -> Iterator[Path]:
    """Yield the folders of profiles beside an experiment file and above it, up to `experiments`."""
    above = experiment.absolute().parents
    names = [folder.name for folder in above]
    levels = names.index(EXPERIMENTS) if EXPERIMENTS in names else 0
    yield experiment.parent / FOLDER
    yield from (folder / FOLDER for folder in above[1 : levels + 1])


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


T = TypeVar("T")
KEPT = ("split", "sample", "as")
"""Keys that a source keeps when the profile replaces it."""


OF_ONE_MODEL = ("revision", "drop_stop_words", "trust_remote_code")
"""Keys that belong to one model; they are dropped when a profile replaces the model."""


def substitute_models(document: Document, substitute: SubstituteSection, problems: Problems) -> Document:
    """Replace each `model:` by its first matching substitute; drop the old model's keys in OF_ONE_MODEL.

    Patterns of the model's role come before general patterns. A role is the key under which a method
    configures a model ("cross_encoder" is the role "cross-encoder"), else the name of the method or trainer.
    `select` stays unchanged: the candidates' sections already hold the selected values.

    Model ids that are replacements stay unchanged. Any other model id that no pattern matches is a problem.
    Without patterns nothing changes.
    """
    tables = (substitute.models, *substitute.roles.values())
    replacements = {new for table in tables for new in table.values()}
    if not replacements:
        return document

    def replaced(value: Any, path: KeyPath) -> Any:  # noqa: ANN401
        if isinstance(value, list):
            return [replaced(child, (*path, index)) for index, child in enumerate(value)]
        if not isinstance(value, dict):
            return value
        result = {key: replaced(child, (*path, key)) for key, child in value.items()}
        model = result.get("model")
        if isinstance(model, str) and model not in replacements:
            own = _of_role(document, path, substitute.roles)
            new = _first_match(model, own) or _first_match(model, substitute.models)
            if new is None:
                what = (
                    f"the profile has no substitute for '{model}'; one belongs under its `substitute.models`"
                )
                problems.add(document, (*path, "model"), what)
            else:
                result["model"] = new
                result = {key: value for key, value in result.items() if key not in OF_ONE_MODEL}
        return result

    data = {key: v if key == "select" else replaced(v, (key,)) for key, v in document.data.items()}
    return Document(data, document.locations)


def substituted_model(model: str, substitute: SubstituteSection) -> str | None:
    """Return the substitute of a base model by the general patterns; None without a substitute."""
    return None if model in substitute.models.values() else _first_match(model, substitute.models)


def _of_role(document: Document, path: KeyPath, roles: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return the patterns for the role of the model at this path; {} without any."""
    section: Any = document.data.get(path[0])
    keys = path[1:]
    if path[0] == "data" and keys:
        # A part may have any name.
        section, keys = section[keys[0]], keys[1:]
    component = section.get("method", section.get("trainer")) if isinstance(section, dict) else None
    names = [str(name).replace("_", "-") for name in (*keys, component)]
    return next((roles[name] for name in names if name in roles), {})


def substitute_llm(document: Document, llm: str | None) -> Document:
    """Replace the file's LLMs by `llm`; None changes nothing.

    An LLM that already is `llm` stays unchanged. Under `llms`, each replaced LLM gets its own seed, so that
    the answers differ.
    """
    if llm is None:
        return document
    if _is_another(document.data.get("llm"), llm):
        document = document.replaced(("llm",), {"endpoint": llm})
    for seed, (name, named) in enumerate(document.mapping("llms").items()):
        if _is_another(named, llm):
            document = document.replaced(("llms", name), {"endpoint": llm, "seed": seed})
    return document


def _is_another(named: object, llm: str) -> bool:
    return isinstance(named, dict) and named.get("endpoint") != llm


def substitute_oracle(document: Document, oracle: str | None) -> Document:
    """Let `oracle` judge the audits that people would judge; audits with `gold` stay. None: no change."""
    for name, audit in document.mapping("audit").items() if oracle is not None else ():
        if isinstance(audit, dict) and "gold" not in audit:
            kept = {key: value for key, value in audit.items() if key != "sheets"}
            document = document.replaced(("audit", name), {**kept, "oracle": oracle})
    return document


def substitute_tasks(
    document: Document, table: Mapping[str, Mapping[str, Any]], problems: Problems
) -> Document:
    """Replace tasks, sources on the hub and files in the data folder by substitutes from a profile's table.

    The table maps patterns to sources; the first pattern that matches counts. Patterns match "TASK/SPLIT",
    "HUB/FILE/KIND", "data:PATH/KIND" for a file in the data folder, and "hub:HUB/TAKE" for a corpus. The
    substitute keeps the source's split, sample and conversion (`as`). If no pattern matches, a task or a
    source on the hub is a problem, and a file in the data folder stays. An empty table changes nothing.
    """
    for name, source in document.mapping("sources").items() if table else ():
        document = document.replaced(
            ("sources", name), _substitute(document, (name, source), table, problems)
        )
    return document


def _substitute(
    document: Document, named: tuple[str, Any], table: Mapping[str, Mapping[str, Any]], problems: Problems
) -> Any:  # noqa: ANN401 - a source's section, whatever it holds
    name, source = named
    title = _title(source) if isinstance(source, dict) else ""
    if not title:
        return source
    substitute = _first_match(title, table)
    if substitute is None and title.startswith(IN_DATA_FOLDER):
        return source
    if substitute is None:
        key = next(key for key in ("task", "corpus", "hub") if key in source)
        # What is no task at all, the schema says.
        if key != "task" or str(source[key]) in TASKS:
            problems.add(document, ("sources", name, key), _no_substitute(name, title, source))
        return source
    kept = {key: source[key] for key in KEPT if key in source}
    part = source.get("part")
    if isinstance(part, dict) and "take" in part:
        kept["split"] = part["take"]
    return {"split": "train" if "file" in source else "test", **substitute, **kept}


def _no_substitute(name: str, title: str, source: Mapping[str, Any]) -> str:
    kind = TASKS[source["task"]].kind if "task" in source else source.get("kind", RecordKind.SENTENCE)
    if "corpus" in source:
        kind = RecordKind.RETRIEVAL if source.get("take", "task") == "task" else RecordKind.SENTENCE
    sets = world().set_kinds
    fitting = next((each for each, its_kind in sets.items() if its_kind == kind), next(iter(sets)))
    split = source.get("split", "test" if "task" in source else "train")
    return (
        f"the profile has no substitute for '{title}'; give one with"
        f" --set 'sources.{name}={{{NAME}: {fitting}, split: {split}, size: 500}}',"
        " or under the profile's `substitute.tasks`"
    )


def _title(source: Mapping[str, Any]) -> str:
    """Return the text matched against patterns; "" for the user's own files and the generated world."""
    if "task" in source:
        return f"{source['task']}/{source.get('split', 'test')}"
    if "corpus" in source:
        on_hub = str(source["corpus"]).startswith(ON_HUB)
        return f"{source['corpus']}/{source.get('take', 'task')}" if on_hub else ""
    content = f"{source.get('file')}/{source.get('kind', usual_kind(str(source.get('format'))))}"
    if "hub" in source:
        return f"{source['hub']}/{content}"
    return content if content.startswith(IN_DATA_FOLDER) else ""


def _first_match(name: str, table: Mapping[str, T]) -> T | None:
    return next((new for pattern, new in table.items() if fnmatchcase(name, pattern)), None)


_SOURCES = (NAME, "task", "file", "corpus")


def replacements(before: Any, after: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - whatever files hold
    """Yield (old, new) for each model, source and LLM that differs between two versions of a file's data.

    Examples: ("gpt2-xl", "gpt2") for a model, ("STSb/dev", "NAME pairs") for a task, ("org/name/nli.csv",
    "NAME triplets") for a file on the hub, ("gpt-4o-mini", "the NAME's LLM") for an LLM.
    """
    if isinstance(before, list) and isinstance(after, list):
        for old, new in zip(before, after, strict=False):
            yield from replacements(old, new)
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return
    named = next((key for key in ("task", "hub", "corpus") if key in before), None)
    if named is not None and after.get(named) != before[named]:
        kind = next((key for key in _SOURCES if key in after), "another source")
        inner = {"task": ("split", "test"), "hub": ("file", None), "corpus": ("take", "task")}[named]
        yield f"{before[named]}/{before.get(*inner)}", f"{kind} {after.get(kind, '')}".rstrip()
        return
    if after.get("endpoint") == NAME != before.get("endpoint"):
        yield str(before.get("model") or before.get("local") or "llm"), f"the {NAME}'s LLM"
        return
    if isinstance(before.get("model"), str) and after.get("model") != before["model"]:
        yield before["model"], str(after.get("model"))
    for key, value in before.items():
        yield from replacements(value, after.get(key))
