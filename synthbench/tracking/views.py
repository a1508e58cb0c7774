"""Saved views for MLflow's UI: runs, columns and charts of an experiment.

The UI stores saved views as tags of the experiment (`savedViewEnvelope.ts` of MLflow 3.17); MLflow's client
has no function for them.
"""

import base64
import hashlib
import json
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlencode

TAG_PREFIX = "mlflow.sharedViewState."
# Otherwise the UI shows its pages for language models.
WORKFLOW = {"workflowType": "machine_learning"}
ORDER_TAG = "synthbench.order"
ROWS, SEEDS = "rows", "seeds"
CHARTS_MOST = 24
COLUMN_WIDTH = 150
RUNS_MOST = 500


@dataclass(frozen=True)
class View:
    """One saved view of the runs with the tags `tags`, named "title: name" in the UI's menu.

    `settings` and `metrics` are the table's columns. The parallel-coordinates plot shows `coordinates`
    (settings that name a run's row) and `charts` (metrics); the first `CHARTS_MOST` of `charts` also get a
    bar chart each. The sections of the metrics `others` are collapsed.
    """

    name: str
    title: str
    tags: Mapping[str, str]
    coordinates: Sequence[str]
    settings: Sequence[str]
    charts: Sequence[str]
    metrics: Sequence[str]
    others: Sequence[str] = ()

    @property
    def tag(self) -> tuple[str, str]:
        """The experiment's tag (key, value) that stores the view."""
        state = base64.b64encode(zlib.compress(json.dumps(self._state()).encode(), 9)).decode()
        envelope = {
            "name": f"{self.title}: {self.name}",
            "createdAt": int(time.time() * 1000),
            "state": f"deflate;{state}",
        }
        return f"{TAG_PREFIX}{view_key(self.name, self.title)}", json.dumps(envelope)

    def _state(self) -> dict[str, object]:
        return {
            "searchFilter": " and ".join(f"tags.`{key}` = '{value}'" for key, value in self.tags.items()),
            # Sorted by time, the UI would hide the runs under their parents.
            "orderByKey": f"tags.`{ORDER_TAG}`",
            "orderByAsc": True,
            "selectedColumns": [
                *(f"params.`{name}`" for name in self.settings),
                *(f"metrics.`{name}`" for name in self.metrics),
            ],
            "columnWidths": {f"metrics.`{name}`": COLUMN_WIDTH for name in self.metrics},
            "runsHiddenMode": "SHOW_ALL",
            "groupBy": None,
            "compareRunCharts": list(self._charts()),
            "compareRunSections": list(self._sections()),
            "isAccordionReordered": True,
            "autoRefreshEnabled": False,
        }

    def _charts(self) -> Iterator[dict[str, object]]:
        parallel = {
            "type": "PARALLEL",
            "selectedParams": list(self.coordinates),
            "selectedMetrics": list(self.charts),
            "showAllRuns": True,
        }
        yield _chart("parallel", 0, parallel)
        for number, metric in enumerate(self.charts[:CHARTS_MOST]):
            yield _chart(_section_of(metric), number, {"type": "BAR", "metricKey": metric})

    def _sections(self) -> Iterator[dict[str, object]]:
        shown = dict.fromkeys(_section_of(metric) for metric in self.charts)
        wide = {"columns": 1, "cardHeight": 420}
        yield {**_section("parallel", "Parallel coordinates", is_open=True), **wide}
        for name in shown:
            yield _section(name, name, is_open=True)
        for name in dict.fromkeys(_section_of(metric) for metric in self.others):
            if name not in shown:
                yield _section(name, name or "Model metrics", is_open=False)


def view_key(name: str, title: str) -> str:
    """Return the id of the view with that name, the same for every result with that title."""
    return f"{name}-{hashlib.sha256(title.encode()).hexdigest()[:10]}"


def runs_address(experiment_id: str, view_key: str, mode: Literal["CHART", "TABLE"] = "CHART") -> str:
    """Return the path below the server's address that opens a saved view, with its charts or as a table."""
    query = {"viewStateShareKey": view_key, "compareRunsMode": mode, **WORKFLOW}
    return f"/#/experiments/{quote(experiment_id)}/runs?{urlencode(query)}"


def artifacts_address(experiment_id: str, run_id: str, file: str = "") -> str:
    """Return the path below the server's address that opens a run's artifacts, or one of them."""
    path = "/".join(filter(None, (quote(experiment_id), "runs", quote(run_id), "artifacts", quote(file))))
    return f"/#/experiments/{path}?{urlencode(WORKFLOW)}"


def _section_of(metric: str) -> str:
    return metric.rpartition("/")[0]


def _chart(section: str, number: int, chart: Mapping[str, object]) -> dict[str, object]:
    return {
        "uuid": f"{section}-{number}",
        "metricSectionId": section,
        "runsCountToCompare": RUNS_MOST,
        "deleted": False,
        "isGenerated": False,
        **chart,
    }


def _section(identity: str, name: str, *, is_open: bool) -> dict[str, object]:
    return {
        "uuid": identity,
        "name": name,
        "display": is_open,
        "isReordered": True,
        "deleted": False,
        "isGenerated": False,
    }
