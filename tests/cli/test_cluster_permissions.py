"""A Ray cluster in a foreign file: needs permission, and is named first; local ones are recognised."""

import socket
from collections.abc import Iterator
from threading import Thread

import pytest
from small_experiment import Project
from wording import refused, worded

from synthbench.engine.ray_nodes import _check_cluster, connect

ADDRESS = "ray.example:6379"
ALLOWING = ("--address", "--allow-code", "SYNTHBENCH_CODE_FOLDERS")


def on_cluster(project: Project, address: str) -> None:
    """Let the file name this cluster."""
    project.change("runtime: {", f"runtime: {{executor: ray, address: '{address}', ")


def test_a_cluster_named_in_an_experiment_file_needs_permission(project: Project) -> None:
    on_cluster(project, ADDRESS)
    for command in ("validate", "plan", "run"):
        called = project.call(command, project.file)
        assert called.code == 2
        worded(
            called.errors, "runtime.address", ADDRESS, "--address", "--allow-code", "SYNTHBENCH_CODE_FOLDERS"
        )
    planned = project.call("plan", project.file, "--allow-code")
    assert planned.code == 0
    assert planned.out.splitlines()[1].startswith(f"runs stages on the Ray cluster at {ADDRESS}")


@pytest.mark.parametrize("address", ["auto", "127.0.0.1:6379", "localhost:6379"])
def test_a_cluster_on_this_machine_needs_no_permission(project: Project, address: str) -> None:
    on_cluster(project, address)
    planned = project.call("plan", project.file)
    assert planned.code == 0
    assert f"the Ray cluster at {address}" in planned.out.splitlines()[1]


def test_an_address_on_the_command_line_needs_no_permission(project: Project) -> None:
    typed = ("--set", "runtime.executor=ray", "--set", f"runtime.address={ADDRESS}")
    assert project.call("plan", project.file, *typed).code == 0


@pytest.fixture
def web_server() -> Iterator[int]:
    """The port of a server that is no cluster."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1]


def test_a_cluster_may_have_an_ipv6_address_and_answer_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, server = socket.socketpair()
    called = list[tuple[str, int]]()
    monkeypatch.setattr(socket, "create_connection", lambda address, _: called.append(address) or ours)

    def answer() -> None:
        server.recv(100)
        server.sendall(b"\x04")

    with server:
        server.sendall(bytes(3))
        thread = Thread(target=answer)
        thread.start()
        _check_cluster("[::1]:6379")
        thread.join()
    assert called == [("::1", 6379)]


def test_an_address_without_a_cluster_gives_one_line_without_rays_messages(
    web_server: int, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray")
    with refused(
        f"127.0.0.1:{web_server}", "no Ray cluster at", "something else answers", "ray start --head"
    ):
        connect(f"127.0.0.1:{web_server}")
    assert capfd.readouterr() == ("", "")
