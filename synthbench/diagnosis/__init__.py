"""What `synthbench doctor` looks at: nothing is changed, and only what the user configured is contacted."""

from collections.abc import Iterator
from pathlib import Path

from synthbench.diagnosis.finding import Finding


def diagnose(home: Path) -> Iterator[Finding]:
    """Yield what is found about installation, devices, places and services, each as soon as it is known.

    `home` is where the store and the tracking database lie.
    """
    from synthbench.diagnosis import devices, installation, places, services

    yield installation.python()
    yield from installation.packages()
    yield from installation.plugins()
    yield installation.checkpoints()
    yield from devices.devices()
    yield from places.home_folder(home)
    yield places.store(home)
    yield from places.hub()
    yield places.data()
    yield services.endpoint()
    yield services.tracking(home)
    yield services.latex()
