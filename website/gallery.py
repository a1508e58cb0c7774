"""The list of reports in docs/gallery.md, made from reports/ and the experiments' descriptions."""

import re
import subprocess
from pathlib import Path

from synthbench.base.yaml_loading import load_yaml

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"(<!-- reports(?: of (\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def with_reports(text: str, root: Path = ROOT) -> str:
    """Return the page with a new list between each `<!-- reports of PATTERN -->` and `<!-- end -->`."""
    return _BLOCK.sub(lambda found: f"{found[1]}{_reports(found[2], root)}{found[3]}", text)


def _reports(pattern: str, root: Path) -> str:
    chosen = [each for each in recorded(root) if re.fullmatch(pattern, each.name)]
    return "".join(_report(each, root) for each in chosen)


def recorded(root: Path) -> list[Path]:
    """Return the folders of reports in git, without those of runs in this clone."""
    return [table.parent for table in _kept("reports/*/table.md", root)]


def _kept(pattern: str, root: Path) -> list[Path]:
    """Return the files of report folders that are in git."""
    command = ["git", "ls-files", "--", pattern]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted(root / file for file in listed.splitlines() if file.count("/") == 2)


def _report(folder: Path, root: Path) -> str:
    """Return a report's section: its description, figures, and the command that makes it."""
    name = folder.name
    (experiment,) = root.glob(f"experiments/**/{name}.yaml")
    text = experiment.read_text(encoding="utf-8")
    described = str(load_yaml(text, experiment.name)["description"]).rstrip(".")
    links = [f"[table](../reports/{name}/table.md)"]
    if (folder / "comparisons.md").is_file():
        links.append(f"[comparisons](../reports/{name}/comparisons.md)")
    links.append(f"[scores of seeds](../reports/{name}/seeds.csv)")
    links.append(f"[experiment](../{experiment.relative_to(root).as_posix()})")
    figures = sorted(
        _kept(f"reports/{name}/*.png", root), key=lambda file: (file.stem != "scores", file.stem)
    )
    pictures = "".join(
        f"![{name}: {file.stem.replace('_', ' ')}](../reports/{name}/{file.name})\n\n" for file in figures
    )
    command = _command(experiment.relative_to(root), text)
    return f"### {name}\n\n{described}. {' · '.join(links)}\n\n```\n{command}\n```\n\n{pictures}"


def _command(experiment: Path, text: str) -> str:
    """Return the command in the experiment file's header."""
    stated = rf"^#\s+(synthbench run \S*{experiment.name}.*?)(?:\s{{2,}}\(.*)?$"
    found = re.search(stated, text, re.MULTILINE)
    return found[1] if found else f"synthbench run {experiment.as_posix()}"
