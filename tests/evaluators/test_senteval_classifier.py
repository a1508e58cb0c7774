"""SentEval's classifier: against a plain PyTorch training, one layer after the other."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from fakes import Lines
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from test_transfer_evaluator import Items, Vectors, items, sentences

from synthbench.api import Evaluation, Record, RecordKind, SyntheticDataset, UserError
from synthbench_transfer import Transfer

L2 = [1e-5, 1e-4, 1e-3, 1e-2]
Predict = Callable[[NDArray[np.float64]], NDArray[np.str_]]


def trained(train: Items, dev: Items | None, l2: float, seed: int = 1111) -> tuple[float, Predict]:
    """Return the best accuracy on dev, and the predictions of the layer that reached it."""
    x, y = train
    names = sorted(set(y.tolist()))
    torch.manual_seed(seed)
    draw = np.random.RandomState(seed)
    layer = torch.nn.Linear(x.shape[1], len(names))
    adam = torch.optim.Adam(layer.parameters(), weight_decay=l2)
    if dev is None:
        order = draw.permutation(len(x))
        few = int(0.05 * len(x))
        dev, (x, y) = (x[order[:few]], y[order[:few]]), (x[order[few:]], y[order[few:]])
    features, classes = torch.tensor(x, dtype=torch.float32), torch.tensor([names.index(each) for each in y])
    best, kept, without, epoch = -1.0, {}, 0, 0
    while without < 6 and epoch <= 200:
        for _ in range(4):
            order = draw.permutation(len(x))
            for start in range(0, len(x), 64):
                rows = order[start : start + 64]
                adam.zero_grad()
                torch.nn.functional.cross_entropy(layer(features[rows]), classes[rows]).backward()
                adam.step()
        epoch += 4
        accuracy = float((_predicted(layer, names, dev[0]) == dev[1]).mean())
        if accuracy > best:
            best, kept = accuracy, {name: value.clone() for name, value in layer.state_dict().items()}
        else:
            without += 1
    layer.load_state_dict(kept)
    return best, lambda vectors: _predicted(layer, names, vectors)


def _predicted(layer: torch.nn.Linear, names: Sequence[str], x: NDArray[np.float64]) -> NDArray[np.str_]:
    with torch.no_grad():
        return np.array(names)[layer(torch.tensor(x, dtype=torch.float32)).argmax(dim=1).numpy()]


def folds(data: Items, number: int) -> list[tuple[Items, Items]]:
    x, y = data
    drawn = StratifiedKFold(number, shuffle=True, random_state=1111).split(x, y)
    return [((x[rest], y[rest]), (x[fold], y[fold])) for rest, fold in drawn]


def best_l2(train: Items, number: int) -> tuple[float, float]:
    """Return the L2 with the best mean accuracy on folds, of equal ones the smallest, and that accuracy."""
    means = [float(np.mean([trained(rest, fold, l2)[0] for rest, fold in folds(train, number)])) for l2 in L2]
    winner = int(np.argmax([round(100 * mean, 2) for mean in means]))
    return L2[winner], means[winner]


def evaluated(records: Sequence[Record], **given: Any) -> Evaluation:
    task = SyntheticDataset.create(RecordKind.SENTENCE, records, config={"task": "TOY"})
    return Transfer(**given).evaluate(Vectors(), task)


def test_sentevals_classifier_is_the_default() -> None:
    assert Transfer().classifier == "senteval"


def test_nested_folds_trained_together_equal_folds_trained_one_by_one() -> None:
    records = sentences(100)
    found = evaluated(records, folds=2)
    accuracies, devs, chosen, predicted = [], [], [], {}
    data = items(records)
    for rest, fold in folds(data, 2):
        l2, dev = best_l2(rest, 2)
        classes = trained(rest, None, l2)[1](fold[0])
        accuracies.append(float((classes == fold[1]).mean()))
        devs.append(dev)
        chosen.append(l2)
        predicted.update(zip(map(tuple, fold[0]), classes, strict=True))
    assert found.items["predicted"] == [predicted[tuple(vector)] for vector in data[0]]
    assert found.scores["accuracy"] == pytest.approx(np.mean(accuracies))
    assert found.scores["dev_accuracy"] == pytest.approx(np.mean(devs))
    assert (found.scores["lowest_L2"], found.scores["highest_L2"]) == (min(chosen), max(chosen))


def test_train_folds_choose_and_5_percent_of_train_stop_the_training() -> None:
    train, test = sentences(200, "train", "abc"), sentences(80, "test", "abc", first=500)
    found = evaluated([*test, *train], folds=2)
    l2, dev = best_l2(items(train), 2)
    assert found.scores["highest_L2"] == l2
    assert found.scores["dev_accuracy"] == pytest.approx(dev)
    assert found.items["predicted"] == trained(items(train), None, l2)[1](items(test)[0]).tolist()


def test_dev_data_choose_and_stop_the_training() -> None:
    train, dev = sentences(90, "train"), sentences(80, "dev", first=200)
    test = sentences(70, "test", first=400)
    found = evaluated([*test, *train, *dev], seed=7)
    outcomes = [trained(items(train), items(dev), l2, seed=7) for l2 in L2]
    winner = int(np.argmax([round(100 * accuracy, 2) for accuracy, _ in outcomes]))
    assert found.scores["highest_L2"] == L2[winner]
    assert found.scores["dev_accuracy"] == pytest.approx(outcomes[winner][0])
    assert found.items["predicted"] == outcomes[winner][1](items(test)[0]).tolist()


def test_vectors_are_not_normalised() -> None:
    class Longer(Vectors):
        def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
            return np.float32(1000) * super().encode(sentences)

    task = SyntheticDataset.create(RecordKind.SENTENCE, sentences(150), config={"task": "TOY"})
    one, other = (Transfer(folds=2).evaluate(model, task) for model in (Vectors(), Longer()))
    assert one.items["predicted"] != other.items["predicted"]


def test_the_global_random_state_is_unchanged() -> None:
    np.random.seed(3)
    torch.manual_seed(3)
    expected = (np.random.random(), float(torch.rand(1)))
    np.random.seed(3)
    torch.manual_seed(3)
    evaluated([*sentences(40), *sentences(40, "train", first=200)], folds=2)
    assert (np.random.random(), float(torch.rand(1))) == expected


def test_too_few_items_for_dev_data_are_refused() -> None:
    fault = "TOY: 19 items to learn from; classifier: senteval needs 20, for 5 % of them end its training;"
    with pytest.raises(UserError, match=fault):
        evaluated([*sentences(19, "train"), *sentences(9, first=50)], folds=2)
    evaluated([*sentences(19, "train"), *sentences(9, first=50)], folds=2, classifier="logistic-regression")


@pytest.mark.parametrize("classifier", ["senteval", "logistic-regression"])
@pytest.mark.parametrize(("learnt", "fits"), [((), 6), (("train",), 3), (("train", "dev"), 2)])
def test_every_fit_is_reported(classifier: Any, learnt: Sequence[Any], fits: int) -> None:
    parts = [sentences(60, part, first=100 * number) for number, part in enumerate(("test", *learnt))]
    records = [record for part in parts for record in part]
    task = SyntheticDataset.create(RecordKind.SENTENCE, records, config={"task": "TOY"})
    lines = Lines()
    Transfer(folds=2, classifier=classifier).evaluate_with_progress(Vectors(), task, lines)
    assert (lines.counts["classify TOY"].total, lines.counts["classify TOY"].done) == (fits, fits)
