"""What `synthbench doctor` checks: nothing is changed, and only what the user configured is contacted."""

from collections.abc import Iterator
from pathlib import Path

from synthbench.diagnosis.machine import Finding


def diagnose(home: Path) -> Iterator[Finding]:
    """Yield what is found about installation, devices, folders and services, each as soon as it is known.

    `home` is where the store and the tracking database lie.
    """
    from synthbench.diagnosis import machine, services

    yield machine.python()
    yield from machine.packages()
    yield from machine.plugins()
    yield machine.checkpoints()
    yield from machine.devices()
    yield from machine.home_folder(home)
    yield machine.store(home)
    yield from machine.hub()
    yield machine.data()
    yield services.endpoint()
    yield services.tracking(home)
    yield services.latex()
