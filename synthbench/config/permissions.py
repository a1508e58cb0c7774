"""Permissions of an experiment file: key variables, hosts, code, and local files."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from synthbench.base.listing import listed
from synthbench.base.redaction import KEY_VARIABLES, named_variables
from synthbench.base.runtime import Runtime
from synthbench.base.user_files import RootedName, path_of
from synthbench.config.documents import Document
from synthbench.config.env_file import FILE, is_from_file
from synthbench.config.experiment import Experiment, RunConfig, Variant, configs_of
from synthbench.config.key_hosts import is_here, unallowed_hosts
from synthbench.config.llm import EndpointLLM, NamedLLM
from synthbench.config.problems import Cursor
from synthbench.config.profiles import SHIPPED
from synthbench.config.served_llm import ServedLLM
from synthbench.generation.language_model import NamedLanguageModel
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.files import ALLOWED, file_of, is_allowed
from synthbench.plugins.prompts import PromptFile
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.description import Roots
from synthbench.sources.documents import DocumentsSource
from synthbench.sources.models import FileSource, Source

KEY_SUFFIX = "_API_KEY"
_SHOWN = 5


def check_key_variable(at: Cursor, llm: NamedLLM, assignments: Collection[str]) -> None:
    """Note a fault if an LLM's key variable does not end in _API_KEY, unless the user allows it.

    Users allow a variable by a `--set` (`assignments`) or in SYNTHBENCH_KEY_VARIABLES.
    """
    variable = llm.settings.key_variable if isinstance(llm.settings, EndpointLLM) else None
    if variable is None or variable.endswith(KEY_SUFFIX):
        return
    if variable not in named_variables() and not _is_typed(at["key_variable"], assignments):
        # The message does not repeat the value, which may be a key.
        at["key_variable"].add(
            f"a file may only name a variable that ends in {KEY_SUFFIX}; if you want this one's value to be"
            f" sent, say so with --set {llm.section}.key_variable=NAME, or list NAME in {KEY_VARIABLES}"
        )


def check_command(at: Cursor, llm: NamedLLM, experiment: Path, assignments: Collection[str]) -> None:
    """Note a fault for a command that serves an LLM, unless `--set` gives it or the user allows code."""
    is_command = isinstance(llm.settings, ServedLLM) and bool(llm.settings.command)
    if is_command and not _is_typed(at["serve"], assignments) and not is_allowed(experiment.resolve()):
        at["serve"].add(
            "not allowed to run; if you trust this command, give --allow-code, or list the file's folder in"
            f" {ALLOWED}"
        )


def _is_typed(at: Cursor, assignments: Collection[str]) -> bool:
    return at.document.location(at.path) in {f"--set {text}" for text in assignments}


def check_cluster(at: Cursor, runtime: Runtime, experiment: Path, assignments: Collection[str]) -> None:
    """Note a fault for a remote Ray cluster, unless an option sets the address or the user allows code.

    This process unpickles the cluster's results, so the cluster can run code here.
    """
    is_asked = not _is_typed(at["address"], assignments) and not is_allowed(experiment.resolve())
    if cluster_elsewhere(runtime) and is_asked:
        at["address"].add(
            f"not allowed to connect to the Ray cluster at {runtime.address}, which may run code here; if you"
            f" trust it, give --address {runtime.address} or --allow-code, or list the file's folder in"
            f" {ALLOWED}"
        )


def cluster_elsewhere(runtime: Runtime) -> str:
    """Return the address of a run's remote Ray cluster; "" without one, or if this machine is part of it."""
    if runtime.executor != "ray" or runtime.address in ("", "auto", "local"):
        return ""
    host = runtime.address.rpartition("://")[2].rpartition(":")[0].strip("[]")
    return "" if is_here(host) else runtime.address


def what_connects(experiment: Experiment) -> Iterator[str]:
    """Yield a line on the Ray cluster that a run connects to."""
    runtime = experiment.runtime
    if runtime.executor == "ray" and runtime.address not in ("", "local"):
        yield f"runs stages on the Ray cluster at {runtime.address}: it gets settings, and may run code here"


def what_is_sent(experiment: Experiment) -> Iterator[str]:
    """Yield a line on each LLM that is a service: the host that gets prompts, and the key variable."""
    asked = [experiment.llms[name] for name in sorted(experiment.used_llms)]
    unallowed = unallowed_hosts(asked)
    for llm in asked:
        if isinstance(llm.settings, EndpointLLM) and not llm.settings.offline:
            yield _what_is_sent(llm.settings, unallowed)


def _what_is_sent(llm: EndpointLLM, unallowed: Collection[str]) -> str:
    address = urlsplit(llm.base_url)
    origin = f" (from {FILE})" if is_from_file(llm.key_variable or "") else ""
    key = f" and the key in {llm.key_variable}{origin}" if llm.key_variable else ", no key"
    is_open = address.scheme == "http" and not is_here(address.hostname)
    is_new = llm.key_variable is not None and address.netloc.lower() in unallowed
    first = f"; the key only with --allow-host {address.netloc.lower()}" if is_new else ""
    open_line = " (not encrypted)" if is_open else ""
    return f"sends to {address.netloc}{open_line}: prompts{key}, for the LLM '{llm.name}'{first}"


def what_runs(experiment: Experiment) -> Iterator[str]:
    """Yield a line on each plug-in's Python file, each model with code of its own, and each LLM's command."""
    plugins = [plugin for config in configs_of(experiment.variants) for plugin in plugins_of(config)]
    files = {file_of(type(plugin).__module__) for plugin in plugins} - {None}
    yield from (f"runs code: {file}" for file in sorted(map(str, files)))
    models = {model for plugin in plugins for model, _ in _models_with(plugin, "trust_remote_code")}
    yield from (f"runs code: that comes with the model {model}" for model in sorted(models))
    for name in sorted(experiment.used_llms):
        settings = experiment.llms[name].settings
        if isinstance(settings, ServedLLM) and settings.command and not settings.offline:
            yield f"runs command: {shlex.join(settings.command)}"


def whose_code_runs(variants: Iterable[Variant]) -> Iterator[str]:
    """Yield a note on each model whose own code runs, with the model's rows."""
    for (model, _), names in _rows_by_model(variants, "trust_remote_code").items():
        yield f"Runs code that comes with the model {model}: {names}."


def what_is_rounded(variants: Iterable[Variant]) -> Iterator[str]:
    """Yield a note on each model with weights or computations below fp32, with the model's rows."""
    for (model, dtype), names in _rows_by_model(variants, "dtype").items():
        yield f"{model} has its weights in {dtype}: {names}."
    for (model, precision), names in _rows_by_model(variants, "precision").items():
        yield f"{model} encodes and scores in {precision}: {names}."


def _rows_by_model(variants: Iterable[Variant], key: str) -> dict[tuple[str, Any], str]:
    """Return (model, value of `key`) -> row names, for models whose `key` differs from the default."""
    rows: dict[tuple[str, Any], dict[str, None]] = {}
    for variant in variants:
        plugins = (plugin for config in configs_of([variant]) for plugin in plugins_of(config))
        for model in (model for plugin in plugins for model in _models_with(plugin, key)):
            rows.setdefault(model, {})[variant.label] = None
    return {model: ", ".join(names) for model, names in rows.items()}


def _models_with(settings: Any, key: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield (model, value) for each model in a plug-in's settings that changes `key` from its default."""
    default = Pretrained.model_fields[key].default
    for model in models_in(settings):
        if isinstance(model, Pretrained):
            name, given = model.model, getattr(model, key)
        elif isinstance(model, Mapping):
            name, given = str(model["model"]), model.get(key, default)
        else:
            continue
        if given != default:
            yield name, given


def models_in(
    settings: Any,  # noqa: ANN401 - whatever settings hold
) -> Iterator[Pretrained | NamedLanguageModel | Mapping[str, Any]]:
    """Yield the models in a plug-in's settings; a model meant for a dependency is a mapping."""
    if isinstance(settings, Pretrained | NamedLanguageModel):
        yield settings
    elif isinstance(settings, BaseModel):
        for name in type(settings).model_fields:
            yield from models_in(getattr(settings, name))
    elif isinstance(settings, Mapping):
        if "model" in settings:
            yield settings
        for inner in settings.values():
            yield from models_in(inner)


def what_is_read_outside(experiment: Experiment, home: Path) -> Iterator[str]:
    """Yield a line on files read outside the experiment's folder, the home and the user's data folder.

    Links are resolved first. A data folder that only the experiment file sets counts as outside. Profiles
    shipped with synthbench are always allowed.
    """
    data = experiment.roots.data
    own = [experiment.file.parent, home, SHIPPED]
    own += [data] if experiment.is_data_folder_given and data is not None else []
    roots = [folder.resolve() for folder in own]
    outside = [
        path
        for path in dict.fromkeys(path.resolve() for path in experiment.files)
        if not any(path.is_relative_to(root) for root in roots)
    ]
    if outside:
        yield f"reads outside {roots[0]}: {listed(map(str, outside), _SHOWN)}"


def named_files(
    documents: Iterable[Document],
    sources: Iterable[Source | None],
    roots: Roots,
    configs: Iterable[RunConfig],
    others: Iterable[Any],
) -> Iterator[Path]:
    """Yield each local file and folder that an experiment names."""
    locations = (each for document in documents for each in document.locations.values())
    for file in dict.fromkeys(location.rpartition(":")[0] for location in locations):
        # Values from the command line and built-in values have no file.
        if file:
            yield Path(file)
    for source in sources:
        in_data_folder = source is not None and source.needs_data_folder(roots)
        if in_data_folder and roots.data is None:
            continue
        if isinstance(source, FileSource | CorpusSource | DocumentsSource) and not source.is_on_hub(roots):
            yield source.path(roots)
        elif in_data_folder and roots.data is not None:
            yield roots.data
    for config in configs:
        yield from (path for plugin in plugins_of(config) for path in _of_settings(plugin))
    yield from (path for other in others for path in _of_settings(other))


def plugins_of(config: RunConfig) -> list[Any]:
    """Return a run's methods, steps, trainer and evaluators; contains None for absent plug-ins."""
    plugins: list[Any] = [part.method for part in config.parts]
    steps = [step.plugin for part in config.parts for step in part.prepare]
    evaluators = [evaluation.evaluator for evaluation in config.evaluations]
    selecting = None if config.selection is None else config.selection.evaluator
    return [*plugins, *steps, config.trainer, selecting, *evaluators]


def _of_settings(value: Any) -> Iterator[Path]:  # noqa: ANN401 - whatever settings hold
    if isinstance(value, RootedName | Path):
        yield path_of(value) if isinstance(value, RootedName) else value
    elif isinstance(value, PromptFile):
        yield from _of_settings(value.read_from)
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _of_settings(getattr(value, name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _of_settings(item)
