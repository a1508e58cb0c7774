"""Two LLMs by two methods by a judge: one table with costs per row, whatever is killed on the way."""

import csv
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from served_llms import Served, attempts, check_against_the_servers_count, num_answers, serving
from shipped_files import EXPERIMENTS, SHIPPED
from small_experiment import Project, finished

FILE = SHIPPED["llms_by_methods"]
NOISE = {"small": "0.3", "large": "0.05"}
KILLED_AT = (0.04, 0.25, 0.5, 0.8)
"""Shares of all answers at which a run is killed; the fifth kill is after one more training."""


def test_plan_shows_tokens_and_money_of_each_llm_without_requests(tmp_path: Path) -> None:
    project = Project(EXPERIMENTS, tmp_path / "home")
    called = project.call("plan", FILE, "--profile", "sandbox", "--seeds", "0")
    assert called.code == 0, called.err
    lines = called.out.splitlines()
    for name in NOISE:
        (requests,) = [line for line in lines if line.startswith(f"LLM '{name}' (")]
        assert "tokens of prompts and" in requests
        assert any(line.startswith(f"money of '{name}': about ") for line in lines)
    assert any(line.startswith("money of all LLMs: about ") for line in lines)
    assert not (tmp_path / "home" / "store" / "llm").exists()


def settings(servers: Mapping[str, Served]) -> list[str]:
    """Return the arguments that name the servers in place of the profile's LLMs."""
    found = []
    for name, server in servers.items():
        input_price, output_price = price(name)
        own = {
            "name": name,
            "base_url": server.base_url,
            "model": "sandbox/llm",
            "price": {"input": input_price, "output": output_price, "date": "2026-11-01"},
        }
        found += ["--set", f"llms.{name}={yaml.safe_dump(own, default_flow_style=True).strip()}"]
    return found


def price(name: str) -> tuple[float, float]:
    """Return an LLM's price in the experiment: US dollars per million prompt and completion tokens."""
    of_llm = yaml.safe_load(FILE.read_text("utf-8"))["llms"][name]["price"]
    return of_llm["input"], of_llm["output"]


@contextmanager
def two_servers(folder: Path, ports: Mapping[str, str]) -> Iterator[dict[str, Served]]:
    """Run two LLMs of different noise until the end of the block; reports name their addresses."""
    with ExitStack() as stack:
        servers = {}
        for seed, (name, noise) in enumerate(NOISE.items()):
            (folder / name).mkdir(parents=True)
            options = ("--noise", noise, "--seed", str(seed), "--latency", "0.01", "--port", ports[name])
            servers[name] = stack.enter_context(serving(folder / name, *options))
        yield servers


def arguments(servers: Mapping[str, Served], output: Path) -> list[str]:
    short = ["--profile", "sandbox", "--seeds", "0", "--set", "runtime.threads=1", "--set", "train.epochs=1"]
    return ["run", FILE, *short, "--jobs", "2", *settings(servers), "--output", str(output)]


def num_trained(project: Project) -> int:
    files = (project.home / "store" / "artifacts").glob("*/*/stage.json")
    return sum(json.loads(file.read_text("utf-8"))["label"].startswith("train ") for file in files)


def moments(project: Project, num_answers_in_all: int) -> Iterator[Callable[[], bool]]:
    """Yield how to tell that it is time to kill, five times."""
    for share in KILLED_AT:
        yield lambda enough=share * num_answers_in_all: num_answers(project) >= enough  # type: ignore[misc]
    more = num_trained(project) + 1
    yield lambda: num_trained(project) >= more


def killed_when(project: Project, is_time: Callable[[], bool], command: list[str]) -> None:
    process = project.start(*command)
    while process.poll() is None and not is_time():
        time.sleep(0.01)
    assert process.poll() is None, finished(process).err
    os.killpg(process.pid, signal.SIGKILL)
    finished(process)


def report(folder: Path) -> dict[str, bytes]:
    """Return a run's output without the costs that a kill adds: cut-off requests, in doubt.

    The page is left out, which tells how long stages took, and so is the list of the files' hashes.
    """
    (table,) = folder.glob("*/*/table.csv")
    left_out = ("report.html", ".written.json")
    found = {file.name: file.read_bytes() for file in table.parent.iterdir() if file.name not in left_out}
    for name in ("costs.md", "costs.tex", "notes.md", "notes.tex"):
        lines = found[name].splitlines(keepends=True)
        found[name] = b"".join(line for line in lines if b"In doubt, since" not in line)
    rows = list(csv.DictReader(found["costs.csv"].decode().splitlines()))
    found["costs.csv"] = json.dumps([{**row, "in_doubt_usd": ""} for row in rows]).encode()
    return found


@pytest.mark.experiments
def test_one_table_has_costs_per_row_and_the_same_bytes_after_five_kills(
    tmp_path: Path, empty_database: Path
) -> None:
    projects = {name: Project(EXPERIMENTS, tmp_path / name / "home") for name in ("undisturbed", "killed")}
    for project in projects.values():
        project.home.mkdir(parents=True)
        shutil.copyfile(empty_database, project.home / "mlflow.db")
    undisturbed, killed = projects.values()
    ports = dict.fromkeys(NOISE, "0")
    for name, project in projects.items():
        with two_servers(tmp_path / name / "servers", ports) as servers:
            ports = {llm: str(urlsplit(server.base_url).port) for llm, server in servers.items()}
            command = arguments(servers, tmp_path / name / "reports")
            if project is killed:
                for is_time in moments(killed, num_answers(undisturbed)):
                    killed_when(killed, is_time, command)
                    print(f"killed at {num_answers(killed)} answers, {num_trained(killed)} trainings")
            last = finished(project.start(*command))
            assert (last.code, last.errors) == (0, [])
            for llm, server in servers.items():
                check_against_the_servers_count(project, server, price(llm), llm)
    for llm in NOISE:
        answered = [
            sorted(
                (each.key, each.prompt_tokens, each.completion_tokens)
                for each in of
                if each.state == "answered"
            )
            for of in (attempts(project, llm) for project in projects.values())
        ]
        assert answered[0] == answered[1]
        assert len({key for key, *_ in answered[1]}) == len(answered[1])  # nothing is paid twice
    first, second = (report(tmp_path / name / "reports") for name in projects)
    assert {
        "comparisons.csv",
        "costs.md",
        "frontier.png",
        "table.csv",
        "table.md",
        "table.tex",
    } <= first.keys()
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    costs = first["costs.md"].decode().splitlines()
    for method, llm, row in product(("partial", "scratch"), NOISE, ("unjudged", "judged")):
        name = rf"({row} \[method={method}, llm={llm}\]"
        assert sum(name in line for line in costs) >= 1 + (row == "judged")
