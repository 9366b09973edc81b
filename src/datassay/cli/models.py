"""Models by the names of the command line."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, get_args

from datassay._choices import Model
from datassay._errors import UsageError

_PLAIN, _STABLE = get_args(Model)[:2]
_OF_SKLEARN: Final[Mapping[str, str]] = {
    "logistic-regression": "linear_model.LogisticRegression",
    "decision-tree": "tree.DecisionTreeClassifier",
    "random-forest": "ensemble.RandomForestClassifier",
    "gradient-boosting": "ensemble.HistGradientBoostingClassifier",
    "naive-bayes": "naive_bayes.GaussianNB",
    "nearest-neighbours": "neighbors.KNeighborsClassifier",
    "support-vectors": "svm.SVC",
    "ridge-regression": "linear_model.Ridge",
    "forest-regression": "ensemble.RandomForestRegressor",
}


def make_model(name: Model | None = None, *, stable: bool = False, **constants: Any) -> Any:
    """The estimator of that name; without one, logistic regression, ``stable`` or if ``constants`` are for that."""
    name = name or (_STABLE if stable or constants else _PLAIN)
    if name == _STABLE:
        from datassay.value import StableLogisticRegression

        return StableLogisticRegression(**constants)
    if constants:
        raise UsageError(f"--kappa and --lam are those of stable-logistic-regression, not of {name}")
    module, _, kind = _OF_SKLEARN[name].rpartition(".")
    options = {"max_iter": 1000} if name == _PLAIN else {}
    return getattr(import_module(f"sklearn.{module}"), kind)(**options)
