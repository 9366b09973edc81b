"""Models by the names of the command line."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from datassay._choices import Model
from datassay._errors import UsageError


def make_model(name: Model | None = None, *, stable: bool = False, **constants: Any) -> Any:
    """The estimator of that name; without one, logistic regression, ``stable`` or if ``constants`` are for that."""
    if name == "stable-logistic-regression" or (name is None and (stable or constants)):
        from datassay.value import StableLogisticRegression

        return StableLogisticRegression(**constants)
    if constants:
        raise UsageError(f"--kappa and --lam are those of stable-logistic-regression, not of {name}")
    from sklearn import ensemble, linear_model, naive_bayes, neighbors, svm, tree

    models: Mapping[Model, Callable[[], Any]] = {
        "logistic-regression": partial(linear_model.LogisticRegression, max_iter=1000),
        "decision-tree": tree.DecisionTreeClassifier,
        "random-forest": ensemble.RandomForestClassifier,
        "gradient-boosting": ensemble.HistGradientBoostingClassifier,
        "naive-bayes": naive_bayes.GaussianNB,
        "nearest-neighbours": neighbors.KNeighborsClassifier,
        "support-vectors": svm.SVC,
        "ridge-regression": linear_model.Ridge,
        "forest-regression": ensemble.RandomForestRegressor,
    }
    return models[name or "logistic-regression"]()
