"""Plot your own figure from results: the gain of each row over the baseline on each test set.

    synthbench run experiments/quickstart.yaml --jobs 2
    python examples/own_plot.py experiments/quickstart.yaml gains.png

Reads what was tracked; computes nothing.
"""

import sys

import matplotlib.pyplot as plt

import synthbench


def main(file: str, picture: str) -> None:
    """Plot mean gains in points with their spread over seeds."""
    results = synthbench.load(file)
    scores = results.scores[results.scores["is_main"]]
    points = 100 * scores.pivot_table(index="seed", columns=["task", "variant"], values="score")
    baseline = results.result.baseline or scores["variant"].iloc[0]

    tasks = list(dict.fromkeys(scores["task"]))
    figure, axes = plt.subplots(
        1, len(tasks), figsize=(4 * len(tasks), 3), squeeze=False, layout="constrained"
    )
    for task, axis in zip(tasks, axes[0], strict=True):
        # A row without a random choice has one seed only.
        gains = points[task].ffill().sub(points[task][baseline], axis="index").drop(columns=baseline)
        axis.barh(gains.columns, gains.mean(), xerr=gains.std())
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_title(task)
        axis.set_xlabel(f"points above {baseline}")
    figure.savefig(picture, dpi=150)


if __name__ == "__main__":
    main(*sys.argv[1:])
