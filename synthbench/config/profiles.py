"""Where profiles lie: beside the experiment file, or inside the package, as the sandbox's does."""

from pathlib import Path

from synthbench.errors import UserError, did_you_mean

FOLDER = "profiles"
SHIPPED = Path(__file__).parents[1] / FOLDER
"""The folder of the profiles that ship with synthbench."""


def profile_file(experiment: Path, name: str) -> Path:
    """Return the file of a profile: profiles/NAME.yaml beside the experiment file, else the shipped one.

    Raises UserError, which says what there is, if there is neither.
    """
    beside = experiment.parent / FOLDER
    if Path(name).name != name or name.endswith(".yaml"):
        stem = Path(name).name.removesuffix(".yaml")
        raise UserError(
            f"--profile {name}: must be a name alone; --profile {stem} reads {beside / f'{stem}.yaml'}"
            " or, without it, what ships with synthbench"
        )
    for folder in (beside, SHIPPED):
        if (folder / f"{name}.yaml").is_file():
            return folder / f"{name}.yaml"
    own, shipped = _names(beside), _names(SHIPPED)
    near = did_you_mean(name, {*own, *shipped})
    raise UserError(
        f"--profile {name}: no such file: {beside / f'{name}.yaml'}, nor does one ship with synthbench"
        f"; beside the experiment file: {', '.join(own) or 'none'}; shipped: {', '.join(shipped)}"
        + (near if "did you mean" in near else "")
    )


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))
