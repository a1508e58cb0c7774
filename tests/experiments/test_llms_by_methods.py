"""Two LLMs by two methods by a judge: one table with costs per row, whatever is killed on the way."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_experiment import Project, finished

from synthbench.llm.ledger import entries

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
FILE = "llms_by_methods.yaml"
NOISE = {"small": "0.3", "large": "0.05"}
NUM_KILLS = 5
BYTES = ("table.csv", "table.md", "table.tex", "scores.png", "frontier.png")


def test_plan_tells_tokens_and_money_of_each_llm_before_anything_is_asked(tmp_path: Path) -> None:
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


@dataclass(frozen=True)
class Servers:
    """Two LLMs that outlive the runs, by the names that the experiment gives them."""

    addresses: dict[str, str]

    @property
    def settings(self) -> list[str]:
        """The arguments that name them in place of the profile's."""
        prices = yaml.safe_load((EXPERIMENTS / FILE).read_text("utf-8"))["llms"]
        found = []
        for name, address in self.addresses.items():
            own = {"name": name, "base_url": address, "model": "sandbox/llm", "price": prices[name]["price"]}
            found += ["--set", f"llms.{name}={yaml.safe_dump(own, default_flow_style=True).strip()}"]
        return found

    def billed(self, name: str) -> tuple[int, int]:
        """Return the tokens of prompts and of answers that a server counted."""
        with urllib.request.urlopen(f"{self.addresses[name]}/usage") as response:
            counts: dict[str, Any] = yaml.safe_load(response.read())
        kinds = ("prompt_tokens", "completion_tokens")
        prompt, completion = (sum(counts[state][kind] for state in ("answered", "dropped")) for kind in kinds)
        return prompt, completion


@contextmanager
def serving(*ports: int) -> Iterator[Servers]:
    """Run both servers, at these ports: the addresses are in the report's note on overrides."""
    command = [str(Path(sys.executable).with_name("synthbench")), "sandbox", "serve", "--latency", "0.01"]
    processes = {
        name: subprocess.Popen(
            [*command, "--noise", noise, "--seed", str(seed), "--port", str(ports[seed])],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for seed, (name, noise) in enumerate(NOISE.items())
    }
    try:
        yield Servers(
            {
                name: process.stdout.readline().split()[0]
                for name, process in processes.items()
                if process.stdout
            }
        )
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def arguments(servers: Servers, output: Path) -> list[str]:
    short = ["--profile", "sandbox", "--seeds", "0", "--set", "runtime.threads=1", "--jobs", "2"]
    return ["run", FILE, *short, *servers.settings, "--output", str(output)]


def told(project: Project, name: str, *states: str) -> tuple[int, int]:
    """Return the tokens of prompts and of answers that the ledger has of an LLM in these states."""
    own = [entry for entry in entries(project.home / "store" / "llm") if entry.endpoint == name]
    amounts = [getattr(entry, state) for entry in own for state in states]
    return sum(each.prompt_tokens for each in amounts), sum(each.completion_tokens for each in amounts)


@pytest.mark.experiments
def test_one_table_with_costs_per_row_and_the_same_bytes_after_five_kills(
    tmp_path: Path, empty_database: Path
) -> None:
    projects = {name: Project(EXPERIMENTS, tmp_path / name / "home") for name in ("undisturbed", "killed")}
    for project in projects.values():
        project.home.mkdir(parents=True)
        shutil.copyfile(empty_database, project.home / "mlflow.db")
    ports = [free_port() for _ in NOISE]
    seconds = time.monotonic()
    with serving(*ports) as servers:
        whole = finished(projects["undisturbed"].start(*arguments(servers, tmp_path / "undisturbed")))
        assert (whole.code, whole.errors) == (0, [])
        for name in NOISE:
            assert told(projects["undisturbed"], name, "answered") == servers.billed(name)
            assert told(projects["undisturbed"], name, "in_doubt") == (0, 0)
    seconds = time.monotonic() - seconds
    draw = random.Random(3)
    with serving(*ports) as servers:
        for share in sorted(draw.uniform(0.02, 0.5) for _ in range(NUM_KILLS)):
            process = projects["killed"].start(*arguments(servers, tmp_path / "killed"))
            time.sleep(3 + share * seconds / 2)
            assert process.poll() is None, finished(process).err
            os.killpg(process.pid, signal.SIGKILL)
            finished(process)
        last = finished(projects["killed"].start(*arguments(servers, tmp_path / "killed")))
        assert (last.code, last.errors) == (0, [])
        for name in NOISE:
            # What was under way at a kill is in doubt: the client can't know whether it was billed.
            answered = told(projects["killed"], name, "answered")
            at_most = told(projects["killed"], name, "answered", "in_doubt")
            bounds = zip(answered, servers.billed(name), at_most, strict=True)
            assert all(least <= billed <= most for least, billed, most in bounds)
            assert answered == told(projects["undisturbed"], name, "answered")
    undisturbed, killed = (_report(tmp_path / name) for name in projects)
    assert {name: undisturbed[name] for name in BYTES} == {name: killed[name] for name in BYTES}
    costs, again = (_without_doubt(report["costs.md"]) for report in (undisturbed, killed))
    assert costs == again
    for method, llm, judge in product(("partial", "scratch"), NOISE, ("none", "large")):
        row = rf"syncse \[method={method}, llm={llm}, judge={judge}\]"
        assert sum(row in line for line in costs) >= 1 + (judge == "large")


def _without_doubt(costs: bytes) -> list[str]:
    """Return the lines but for that on requests that a kill cut off."""
    return [line for line in costs.decode().splitlines() if not line.startswith("- In doubt")]


def _report(folder: Path) -> dict[str, bytes]:
    (table,) = folder.glob("*/*/table.csv")
    return {file.name: file.read_bytes() for file in table.parent.iterdir()}
