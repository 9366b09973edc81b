"""The utility of a release: is it like the original, and can one learn from it? (Mathematics §9)"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay.data import Table, TableLike, as_table, fit_encoder
from datassay.release.strategies import Release


@dataclass(frozen=True)
class Utility:
    """How a k-NN trained on a release does on people it has never seen."""

    mcc: float
    f1: float
    accuracy: float
    loss: float


def fidelity(original: TableLike, released: Release | TableLike) -> float:
    """How like the original a release is: 1 if each attribute has the same distribution, 0 if it is as good as random.

    (W_rand − W)/W_rand, where W is the mean over attributes of the Wasserstein distance of the released values from the
    original ones: of numbers scaled to 0 … 1, of categories 0/1, so that it is half the sum of the differences of their
    shares (a missing value is one more of them). W_rand is that of uniform draws from each attribute's domain.

    Parameters
    ----------
    original, released
        The table, and what is released of it.

    Examples
    --------
    >>> import datassay as da
    >>> people = da.census(300)
    >>> da.release.fidelity(people, people)
    1.0
    """
    here = as_table(original, text="categorical")
    there = released.table if isinstance(released, Release) else as_table(released, text="categorical", like=here)
    names = [name for name in here.columns if name not in here.carried]
    apart, at_random = [], []
    for name in names:
        if name not in there.columns:
            raise InputError(f"{there.name} lacks the column {name!r} of {here.name}")
        a, b = here.columns[name], there.columns[name]
        if a.kind != b.kind:
            raise InputError(f"column {name!r} is {a.kind} in {here.name} and {b.kind} in {there.name}")
        if a.kind == "categorical":
            first, second = a.decoded().astype(object), b.decoded().astype(object)
            levels = {value: i for i, value in enumerate(dict.fromkeys([*first.tolist(), *second.tolist()]))}
            known = len(set(first.tolist()))
            p = np.bincount([levels[v] for v in first.tolist()], minlength=len(levels)) / len(first)
            q = np.bincount([levels[v] for v in second.tolist()], minlength=len(levels)) / len(second)
            uniform = np.where(np.arange(len(levels)) < known, 1 / known, 0.0)
            apart.append(0.5 * np.abs(p - q).sum())
            at_random.append(0.5 * np.abs(p - uniform).sum())
            continue
        from scipy.stats import wasserstein_distance

        x, y = a.data[~a.missing].astype(np.float64), b.data[~b.missing].astype(np.float64)
        gaps = abs(float(a.missing.mean()) - float(b.missing.mean()))
        low, spread = (float(x.min()), float(np.ptp(x))) if len(x) else (0.0, 0.0)
        if spread == 0 or len(y) == 0:
            same = float((y == low).mean()) if len(y) else 0.0
            apart.append(max(gaps, 1 - same if len(x) else 0.0))
            at_random.append(0.0)
            continue
        x, y = (x - low) / spread, (y - low) / spread
        apart.append(float(wasserstein_distance(x, y)) + gaps)
        # The distance from a uniform distribution is the area between quantile functions.
        ordered, edges = np.sort(x), np.linspace(0, 1, len(x) + 1)
        left, right = edges[:-1], edges[1:]
        inside = np.clip(ordered, left, right)
        within = 0.5 * (inside - left) ** 2 + 0.5 * (right - inside) ** 2
        beyond = (np.maximum(ordered - right, 0) + np.maximum(left - ordered, 0)) * (right - left)
        at_random.append(float((within + beyond).sum()))
    random = float(np.mean(at_random))
    if random == 0:
        return 1.0 if np.mean(apart) == 0 else 0.0
    return float((random - np.mean(apart)) / random)


def _label_names(table: Table) -> NDArray[np.str_]:
    """Labels as text: 1 and 1.0 are the same."""
    labels = table.labels
    if labels.dtype.kind == "f" and (labels.astype(float) != np.floor(labels.astype(float))).any():
        raise InputError(f"the label {table.label!r} of {table.name} holds fractions; a classifier predicts classes")
    return np.array([f"{float(v):g}" for v in labels]) if labels.dtype.kind in "iuf" else labels.astype(np.str_)


def predictive_utility(released: Release | TableLike, test: TableLike, k: int = 5) -> Utility:
    """How well a k-NN classifier trained on a release predicts the label of people it has never seen.

    Matthews' correlation, F1 of the rarer class, accuracy, and loss (1 − confidence in the right label). Columns are
    encoded as the release says, and distances are Euclidean.

    Parameters
    ----------
    released, test
        What the classifier learns from, and people whose label it predicts.
    k
        Number of neighbours.

    Examples
    --------
    >>> import datassay as da
    >>> train, test = da.census(600).split(0.5)
    >>> 0 < da.release.predictive_utility(train, test).mcc < 1
    True
    """
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
    from sklearn.neighbors import KNeighborsClassifier

    train = released.table if isinstance(released, Release) else as_table(released)
    held_out = as_table(test, like=train)
    k = min(_checks.integer("k", k, at_least=1), len(train))
    labels, truth = _label_names(train), _label_names(held_out)
    if not set(truth.tolist()) & set(labels.tolist()):
        raise InputError(
            f"no label of {held_out.name} ({_checks.listed(np.unique(truth))}) is one of {train.name} "
            f"({_checks.listed(np.unique(labels))})"
        )
    # A release may have lost all values of a column, as groups do that share an unknown one: it teaches nothing.
    lost = [name for name in train.features if train.columns[name].missing.all()]
    train = train.set_aside(lost if len(lost) < len(train.features) else [])
    encoder = fit_encoder(train)
    with warnings.catch_warnings():  # the numbers below show that there are many classes
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        model = KNeighborsClassifier(k, n_jobs=-1).fit(encoder.transform(train)[0], labels)
    held_out = held_out.set_aside([name for name in held_out.features if name not in train.features])
    shares = model.predict_proba(encoder.transform(held_out)[0])
    predicted = model.classes_[shares.argmax(axis=1)]
    names, sizes = np.unique(truth, return_counts=True)
    place = {name: i for i, name in enumerate(model.classes_.tolist())}
    right = np.array([shares[i, place[y]] if y in place else 0.0 for i, y in enumerate(truth.tolist())])
    rare = names[sizes.argmin()]
    one = len(names) == 1 and bool((predicted == names[0]).all())  # nothing to correlate
    return Utility(
        mcc=0.0 if one else float(matthews_corrcoef(truth, predicted)),
        f1=float(f1_score(truth == rare, predicted == rare, zero_division=0.0)),
        accuracy=float(accuracy_score(truth, predicted)),
        loss=float(1 - right.mean()),
    )
