"""The LLM client's speed against an endpoint's latency and concurrency, and its memory.

Run: python benchmarks/chat.py [--requests 2000] [--sentences 200000]

Another process answers after 0.2 s, first 64 and then 16 requests at a time. Prints wall seconds beside the
optimum requests x latency / concurrency, and the client's CPU per request; then the same for bare aiohttp,
without cache and counts, the practical optimum on this machine. Then sentences without latency, read lazily:
rate, and growth of memory. Wall seconds mean little on a busy machine. Exit code 1 if a goal is missed.
"""

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Endpoint, Pacing
from synthbench.llm.requests import ChatRequest

LATENCY = 0.2
GOALS = {64: 1.2, 16: 1.1}
"""Concurrency -> maximum wall seconds, as a multiple of the optimum."""
MOST_CPU_MS, MOST_MEMORY_MB = 3.0, 400.0


@dataclass(frozen=True)
class Measured:
    """Seconds for `number` requests, and the process's peak memory so far in MB."""

    number: int
    wall: float
    cpu: float
    memory: float

    @property
    def cpu_ms(self) -> float:
        """The client's CPU milliseconds per request."""
        return 1000 * self.cpu / self.number


@contextmanager
def server(latency: float) -> Iterator[str]:
    """Run the server in a process of its own; yield its base URL."""
    command = [sys.executable, str(Path(__file__).with_name("chat_server.py")), str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        process.kill()


def requests(number: int) -> Iterator[ChatRequest]:
    """Yield requests of typical length."""
    for index in range(number):
        message = {
            "role": "user",
            "content": f"Paraphrase: a dog, number {index}, runs over a field at noon.",
        }
        yield ChatRequest(str(index), (message,), {"temperature": 1.0, "top_p": 0.9, "max_tokens": 50})


def measure(number: int, latency: float, concurrency: int) -> Measured:
    """Request `number` answers with an empty cache."""
    with tempfile.TemporaryDirectory() as folder, server(latency) as base_url:
        endpoint = Endpoint("benchmark", base_url, "any", pacing=Pacing(concurrency=concurrency))
        wall, cpu = time.perf_counter(), time.process_time()
        answered = sum(
            each.text is not None for each in ChatClient(endpoint, Path(folder)).answers(requests(number))
        )
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert answered == number
    return Measured(number, wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def bare(number: int, latency: float, concurrency: int) -> Measured:
    """Request the same with bare aiohttp."""
    with server(latency) as base_url:
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(post_all(base_url, number, concurrency))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Measured(number, wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


async def post_all(base_url: str, number: int, concurrency: int) -> None:
    """Post the requests, `concurrency` at a time, and read the answers."""
    import aiohttp

    waiting = requests(number)

    async def work(session: aiohttp.ClientSession) -> None:
        for request in waiting:
            body = {"model": "any", "messages": request.messages, **request.sampling}
            async with session.post(f"{base_url}/chat/completions", json=body) as response:
                assert (await response.json())["choices"]

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as workers:
        for _ in range(concurrency):
            workers.create_task(work(session))


def verdict(*, is_met: bool) -> str:
    """Say whether the goal is met."""
    return "reached" if is_met else "MISSED"


def latency_bound(number: int) -> bool:
    """Print the ratio to the optimum; return whether all goals are met."""
    are_met = []
    for concurrency, goal in GOALS.items():
        found = measure(number, LATENCY, concurrency)
        best = number * LATENCY / concurrency
        ratio, peer = found.wall / best, bare(number, LATENCY, concurrency)
        are_met.append(ratio <= goal and found.cpu_ms < MOST_CPU_MS)
        print(
            f"{number:,} requests, {concurrency} at a time: {found.wall:.2f} s, {ratio:.2f}x the best"
            f" possible, goal {goal:.2f}x; {found.cpu_ms:.2f} ms CPU each, goal {MOST_CPU_MS:g}"
            f" {verdict(is_met=are_met[-1])}; aiohttp alone {peer.wall / best:.2f}x, {peer.cpu_ms:.2f} ms"
        )
    return all(are_met)


def throughput(number: int) -> bool:
    """Print rate and memory for many sentences; return whether memory stays flat."""
    few, many = (measure(each, 0.0, 64) for each in (number // 10, number))
    is_met = many.memory < MOST_MEMORY_MB
    print(
        f"{number:,} sentences without latency: {number / many.wall:,.0f}/s, {many.cpu_ms:.2f} ms CPU each;"
        f" {many.memory:.0f} MB at most, {many.memory - few.memory:.0f} of them after the first tenth; goal"
        f" {MOST_MEMORY_MB:g} {verdict(is_met=is_met)}"
    )
    return is_met


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--sentences", type=int, default=200_000)
    given = parser.parse_args()
    measure(200, 0.0, 16)
    are_met = [latency_bound(given.requests), throughput(given.sentences)]
    return 0 if all(are_met) else 1


if __name__ == "__main__":
    sys.exit(main())
