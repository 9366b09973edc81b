"""What a coalition of records is worth to a model: fit it to their records, score it on the validation set.

The players are records, or owners who hold many of them. A utility depends on the coalition alone: a coalition's
records come in the order of the data, and where a model can start from somewhere, it starts from the model of all
records. So utilities can be computed anywhere, in any order, and kept on disk by coalition.

Rules for what can go wrong: a coalition to which the model cannot be fitted (one class only, say) or whose score is
not a number is worth what no data is worth, and is counted; a worker that dies is replaced and its work done again; ^C
keeps what is there.
"""

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError, first_line
from datassay.data import Inputs, Table, is_missing, prepare
from datassay.neighbors import as_floats
from datassay.results import Floats, Parameter
from datassay.value.models.fingerprint import fingerprint
from datassay.value.models.options import Groups, OnFailure, Scorer, Scoring, Stopping, Utility

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

CLIPPED = "clipped_log_loss"
LARGEST_KERNEL = 64  # features up to which Newton's method beats scikit-learn's solvers, for any number of records


class Estimator(Protocol):
    """Anything with scikit-learn's ``fit`` and ``predict``."""

    def fit(self, X: Any, y: Any) -> object:
        """Learn from rows and targets."""

    def predict(self, X: Any) -> Any:
        """Predict targets."""


@dataclass(frozen=True, eq=False)
class Task:
    """Coalitions to be evaluated together.

    ``sets``: one coalition a row of ``members``. ``chain``: the players ``order`` join the coalition ``members`` one
    after the other, until it is within ``truncation`` of all. ``joined``: each of the players ``order`` joins it alone.
    ``bag``: the records ``order``, some of them repeatedly; how well the model does on each of the others.
    """

    kind: Literal["sets", "chain", "joined", "bag"]
    members: Bools
    order: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    truncation: float = -1.0

    def coalitions(self) -> Iterator[Bools]:
        """The coalitions, in order."""
        if self.kind == "sets":
            yield from self.members
            return
        present = self.members.copy()
        for player in self.order:
            present[player] = True
            yield present
            if self.kind == "joined":
                present[player] = False


@dataclass(frozen=True, eq=False)
class Answer:
    """Utilities of a task's coalitions (NaN where there is no model), and how many were freshly computed.

    ``failures`` counts coalitions of somebody that have no model; ``message`` is what the first of them said.
    """

    utilities: Floats
    fresh: int
    failures: int = 0
    message: str = ""


class Evaluator(Protocol):
    """Computes utilities; NaN where a coalition has no model."""

    threads: bool
    on_failure: OnFailure
    target: float
    empty: float

    def full(self) -> float:
        """The utility of everybody; an exception says what is wrong with the model."""

    def run(self, task: Task, deadline: float | None) -> Answer | None:
        """The utilities of a task; None if it is too late."""


@dataclass(eq=False)
class FittedModels:
    """Any scikit-learn estimator, fitted to one coalition after the other."""

    model: Any
    scorer: Scorer | None
    scoring: str | None
    X: Floats
    y: NDArray[np.generic]
    X_val: Floats
    y_val: NDArray[np.generic]
    owner: Ints
    on_failure: OnFailure
    target: float = math.nan
    empty: float = math.nan
    threads: bool = False
    _whole: Any = None

    def _fit(self, rows: Ints) -> Any:
        from sklearn.base import clone

        model = self.model
        y = self.y[rows]
        if self._whole is not None and len(np.unique(y)) == len(self._whole.classes_):
            model = copy.copy(self._whole)  # with a warm start: from the model of all records
            model.coef_, model.intercept_ = self._whole.coef_.copy(), self._whole.intercept_.copy()
        elif self._whole is not None:
            model = clone(self.model)
        model.fit(self.X[rows], y)
        return model

    def _score(self, model: Any) -> float:
        if self.scoring == "accuracy":
            return float((model.predict(self.X_val) == self.y_val).mean())
        assert self.scorer is not None
        return float(self.scorer(model, self.X_val, self.y_val))

    def full(self) -> float:
        """The utility of everybody; an exception says what is wrong with the model."""
        from sklearn.linear_model import LogisticRegression

        model = self._fit(np.arange(len(self.y)))
        try:
            value = self._score(model)
        except Exception as error:
            hint = ""
            if "pos_label" in str(error):
                hint = f"; {self.scoring}_macro needs no positive class"
            elif self.scoring is None:
                hint = "; scoring must be a function of (model, X, y) that returns a number"
            raise InputError(f"the scoring failed on the validation records: {first_line(error)}{hint}") from error
        if type(self.model) is LogisticRegression and self.model.solver != "liblinear":
            self._whole = copy.copy(model).set_params(warm_start=True)
        return value

    def _bag(self, rows: Ints) -> Floats:
        """How well the model of these records does on each of the others; NaN for its own."""
        from sklearn.base import is_regressor

        self.model.fit(self.X[rows], self.y[rows])
        outside = np.ones(len(self.y), np.bool_)
        outside[rows] = False
        well = np.full(len(self.y), math.nan)
        if outside.any():
            predicted = self.model.predict(self.X[outside])
            right = -((predicted - self.y[outside]) ** 2) if is_regressor(self.model) else predicted == self.y[outside]
            well[outside] = right
        return well

    def run(self, task: Task, deadline: float | None) -> Answer | None:
        """The utilities of a task; None if it is too late."""
        from sklearn import config_context

        utilities: list[float] = []
        message, failures = "", 0
        if task.kind == "bag":
            if deadline is not None and time.time() > deadline:
                return None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    return Answer(self._bag(task.order), 1)
                except Exception as error:
                    if self.on_failure == "raise":
                        raise InputError(f"the model cannot be fitted to a bag: {first_line(error)}") from error
                    return Answer(np.full(len(self.y), math.nan), 1, 1, first_line(error))
        with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
            warnings.simplefilter("ignore")
            for members in task.coalitions():
                if deadline is not None and time.time() > deadline:
                    return None
                rows = np.flatnonzero(members[self.owner])
                value = math.nan
                try:
                    value = self._score(self._fit(rows)) if len(rows) else math.nan
                    if len(rows) and not math.isfinite(value):
                        message, value = message or f"the score was {value}", math.nan
                        if self.on_failure == "raise":
                            raise InputError(f"the score of a coalition of {len(rows)} records is not a number")
                except InputError:
                    raise
                except Exception as error:
                    if self.on_failure == "raise":
                        raise InputError(
                            f"the model cannot be fitted to a coalition of {len(rows)} records: {error}"
                        ) from error
                    message = message or first_line(error)
                utilities.append(value)
                failures += len(rows) > 0 and math.isnan(value)
                if task.kind == "chain":
                    reached = self.empty if math.isnan(value) else value
                    if abs(self.target - reached) <= task.truncation:
                        break
        return Answer(np.array(utilities), len(utilities), failures, message)


@dataclass(eq=False)
class LogisticModels:
    """Binary logistic regression by our own Newton's method: scikit-learn's, or the stable one."""

    X: Floats
    sign: Floats
    X_val: Floats
    sign_val: Floats
    owner: Ints
    ridge: Floats
    per_record: bool
    needs_both: bool
    kind: int
    tolerance: float
    on_failure: OnFailure
    target: float = math.nan
    empty: float = math.nan
    threads: bool = True
    start: Floats = field(default_factory=lambda: np.empty(0))

    def full(self) -> float:
        """The utility of everybody; an exception says what is wrong with the model."""
        from datassay.value.models import kernels

        if self.needs_both and len(np.unique(self.sign)) < 2:
            raise ValueError("there is one class only, and logistic regression needs two")
        self.start = np.zeros(self.X.shape[1])
        w = np.empty_like(self.start)
        every = np.arange(len(self.X))
        if not self.per_record:
            # From the model of all records it is not far to any other. Where stability is promised, a coalition's model
            # must not know of anybody else, not even by where it starts.
            kernels.logistic_fit(self.X, self.sign, every, self.ridge, self.per_record, self.start, self.tolerance, w)
            self.start = w
        found = self.run(Task("sets", np.ones((1, int(self.owner.max()) + 1), np.bool_)), None)
        assert found is not None
        return float(found.utilities[0])

    def run(self, task: Task, deadline: float | None) -> Answer | None:
        """The utilities of a task; None if it is too late."""
        from datassay.value.models import kernels

        if deadline is not None and time.time() > deadline:
            return None
        mode = {"sets": kernels.SETS, "chain": kernels.CHAIN, "joined": kernels.JOINED}[task.kind]
        out = np.empty(len(task.members) if task.kind == "sets" else len(task.order))
        used = kernels.logistic_utilities(
            np.atleast_2d(task.members), task.order, mode, self.owner, self.X, self.sign, self.X_val, self.sign_val,
            self.ridge, self.per_record, self.needs_both, self.start, self.tolerance, self.kind, self.target,
            self.empty, task.truncation, out,
        )  # fmt: skip
        out = out[:used]
        failed = np.isnan(out)
        if task.kind == "sets":
            failed &= task.members.any(axis=1)
        if not failed.any():
            return Answer(out, len(out))
        reason = "logistic regression needs records of two classes" if self.needs_both else "no minimum was found"
        if self.on_failure == "raise":
            raise InputError(f"the model cannot be fitted to a coalition: {reason}")
        return Answer(out, len(out), int(failed.sum()), reason)


@dataclass(frozen=True, eq=False)
class ModelGame:
    """Players, what a coalition of them is worth to a model, and what is told about both."""

    inputs: Inputs
    ids: NDArray[np.generic]
    labels: NDArray[np.generic] | None
    owner: Ints
    sizes: Ints | None
    evaluator: Evaluator
    empty: float
    full: float
    parameters: dict[str, Parameter]
    notes: tuple[str, ...]
    depends_on: tuple[object, ...]
    seconds: float
    rules: Stopping

    @cached_property
    def fingerprint(self) -> str:
        """What utilities depend on beside the coalition, as a digest; empty where it cannot be told."""
        return fingerprint(*self.depends_on)

    @property
    def at_once(self) -> int:
        """As many coalitions as are worth a task: about a second's, so that little is lost when it is cut short."""
        return max(4, int(1 / max(self.seconds, 1e-4)))

    @property
    def n_players(self) -> int:
        """How many players there are."""
        return len(self.ids)

    def filled(self, utilities: Floats) -> Floats:
        """Utilities with what no data is worth where a coalition has no model."""
        return np.where(np.isnan(utilities), self.empty, utilities)


def make_model_game(
    model: Any,
    X: object,
    y: object,
    X_val: object | None,
    y_val: object | None,
    asked: Utility,
    most: int | None = None,
) -> ModelGame:
    """Check everything that does not depend on how coalitions are drawn, and value the set of all records.

    ``most`` coalitions are drawn if the caller set no limit.
    """
    rules = Stopping.of(asked, most)
    model = checked_model(model, rules.seed)
    on_failure, empty = asked.get("on_failure", "empty"), asked.get("empty")
    fast = _checks.boolean("fast", asked.get("fast", True))
    _checks.choice("on_failure", on_failure, ("empty", "raise"))
    if X_val is None:
        raise UsageError("X_val must be given: records to score the model on, no part of the training data")
    numeric = is_regressor(model)
    inputs = prepare(X, y, X_val, y_val, ids=asked.get("ids"), numeric=numeric)
    points, points_val = as_floats("X", inputs.points), as_floats("X_val", inputs.points_val)
    points, points_val = (np.ascontiguousarray(p, np.float64) for p in (points, points_val))
    if points.shape[1] != points_val.shape[1]:
        raise InputError(f"X has {points.shape[1]} columns and X_val {points_val.shape[1]}")
    if not len(points_val):
        raise InputError("X_val has no rows")
    if is_stable(model) and inputs.n_classes != 2:
        raise InputError(f"StableLogisticRegression tells two classes apart, and there are {inputs.n_classes}")
    for name, rows, labels in (("y", points, inputs.labels), ("y_val", points_val, inputs.labels_val)):
        if len(rows) != len(labels):
            raise InputError(f"{name} has {len(labels)} entries for {len(rows)} rows")
    names, owner, sizes = players(asked.get("groups"), inputs, X)
    known, scorer = _scorer(model, asked.get("scoring"), numeric)
    notes: list[str] = list(inputs.notes)
    if empty is None:
        empty, note = _worth_of_nothing(known, scorer, inputs, points_val)
        notes += [note] if note else []
    empty = _checks.number("empty", empty)
    evaluator = _evaluator(model, known, scorer, inputs, (points, points_val), owner, on_failure, fast)
    if isinstance(evaluator, LogisticModels) and not evaluator.per_record:
        notes.append("logistic regression was fitted by datassay's own Newton's method (fast=False: by the model's)")
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            full = evaluator.full()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the model cannot be fitted to all {len(points)} records: {first_line(error)}") from error
    if not math.isfinite(full):
        raise InputError(f"the score of the model of all {len(points)} records is {full}")
    if caught:
        notes.append(f"fitted to all records, the model warned: {first_line(caught[0].message)}")  # type: ignore[arg-type]
    seconds = 1e-4 if isinstance(evaluator, LogisticModels) else time.perf_counter() - started
    evaluator.target, evaluator.empty = full, empty
    parameters: dict[str, Parameter] = {
        "model": model_name(model),
        "scoring": known or ("score" if scorer is _own_score else getattr(scorer, "__name__", "score given")),
        "n_validation": len(points_val),
        "n_classes": None if numeric else inputs.n_classes,
        "empty": empty,
        "full": full,
    }
    if sizes is not None:
        parameters["n_records"] = len(owner)
    depends_on = (
        model, scorer if known is None else known, points, points_val, names, owner, type(evaluator).__name__,
        inputs.labels, inputs.labels_val,
    )  # fmt: skip
    return ModelGame(
        inputs, names, None if sizes is not None or numeric else inputs.labels, owner, sizes, evaluator, empty, full,
        parameters, tuple(notes), depends_on, seconds, rules,
    )  # fmt: skip


def is_regressor(model: Any) -> bool:
    """Whether the model predicts numbers rather than classes."""
    from sklearn import base

    return _tagged(base.is_regressor, model)


def _tagged(is_kind: Callable[[Any], bool], model: Any) -> bool:
    """Whether scikit-learn takes the model for one of this kind."""
    try:
        return bool(is_kind(model))
    except Exception:  # a stranger's estimator, without scikit-learn's tags
        return False


def is_stable(model: Any) -> bool:
    """Whether the model is our own learner of known stability, and not something derived from it."""
    # scikit-learn is slow to import: not before it is used
    from datassay.value.models.stable import StableLogisticRegression

    return type(model) is StableLogisticRegression


def checked_model(model: Any, seed: int) -> Any:
    """A copy of the model, its random numbers fixed by ``seed`` where they are not fixed already."""
    from sklearn.base import clone

    if isinstance(model, type):
        raise UsageError(f"model must be an estimator, got the class {model.__name__}; write {model.__name__}()")
    if not (hasattr(model, "fit") and hasattr(model, "predict")):
        first = (
            "; the model comes first, as in data_shapley(model, X, y, X_val=X_val, y_val=y_val)"
            if isinstance(model, Table | list | tuple) or hasattr(model, "shape")  # what could be X
            else ""
        )
        raise UsageError(f"model must have scikit-learn's fit and predict, got {type(model).__name__}{first}")
    try:
        copied = clone(model)
    except TypeError as error:
        raise UsageError(f"model must be a scikit-learn estimator that can be cloned: {first_line(error)}") from None
    parameters = copied.get_params(deep=True)
    states = {n: value for n, value in parameters.items() if n.split("__")[-1] == "random_state"}
    loose: dict[str, Any] = {n: seed for n, value in states.items() if value is None}
    # A generator would go on from fit to fit, and a utility depend on those before it.
    loose |= {n: int(copy.deepcopy(v).randint(2**31)) for n, v in states.items() if hasattr(v, "randint")}
    # A utility must depend on its coalition alone.
    loose |= {n: False for n, value in parameters.items() if n.split("__")[-1] == "warm_start" and value is True}
    return copied.set_params(**loose) if loose else copied


def model_name(model: Any) -> str:
    """The model and its settings, on one line."""
    return " ".join(str(model).split())


def players(
    groups: Groups | None, inputs: Inputs, X: object
) -> tuple[NDArray[np.generic], Ints, NDArray[np.int64] | None]:
    """Who plays: every record, or the owners named by ``groups``; the player of each record; records by player."""
    n = len(inputs.labels)
    if groups is None:
        return inputs.ids, np.arange(n), None
    column = None
    if isinstance(groups, str):
        if not isinstance(X, Table):
            raise UsageError(f"groups={groups!r} names a column, and X is no Table; give one owner for each record")
        if groups in X.features:
            raise UsageError(f"groups={groups!r} is a feature of {X.name}: read it with ignore=[{groups!r}]")
        column, groups = groups, X[groups]
    # A list goes through object: numpy would turn what is missing among strings into a string.
    names = np.array(groups, dtype=object) if isinstance(groups, list | tuple) else np.asarray(groups)
    if names.shape != (n,):
        raise InputError(f"groups must have one owner for each of the {n} records, got shape {names.shape}")
    if names.dtype.kind not in "biuU":
        plain = [name.item() if isinstance(name, np.generic) else name for name in names.tolist()]
        missing = [row for row, name in enumerate(plain) if is_missing(name)]
        if missing:
            what = "groups" if column is None else f"column {column!r}"
            raise InputError(
                f"{what} names no owner in {len(missing)} of {n} records, first at row {missing[0]} (counting from 0); "
                "name one, or leave those records out"
            )
        whole = all(isinstance(name, int) for name in plain)
        names = np.array(plain, np.int64) if whole else np.array([str(name) for name in plain])
    owners, codes, sizes = np.unique(names, return_inverse=True, return_counts=True)
    return owners, codes.astype(np.int64), sizes


def _scorer(model: Any, scoring: Scoring, numeric: bool) -> tuple[str | None, Scorer | None]:
    """The name of the score, if it has one, and a function of (model, X, y)."""
    if scoring is None:
        from sklearn.base import is_classifier

        if is_stable(model):
            scoring = CLIPPED
        elif numeric:
            scoring = "r2"
        elif _tagged(is_classifier, model):
            scoring = "accuracy"
        elif hasattr(model, "score"):
            return None, _own_score
        else:
            raise UsageError(f"{type(model).__name__} has no score of its own: name one with scoring")
    if not isinstance(scoring, str):
        if not callable(scoring):
            raise UsageError(f"scoring must be a name of scikit-learn's or a function (model, X, y), got {scoring!r}")
        return None, scoring
    if scoring == CLIPPED:
        return scoring, _clipped_log_loss
    from sklearn.metrics import get_scorer, get_scorer_names

    if scoring not in get_scorer_names():
        close = _checks.closest(scoring, [*get_scorer_names(), CLIPPED])
        hint = f"; did you mean {close!r}?" if close else "; see sklearn.metrics.get_scorer_names()"
        raise UsageError(f"there is no scoring {scoring!r}{hint}")
    return scoring, get_scorer(scoring)


def _own_score(model: Any, X: Any, y: Any) -> float:
    return float(model.score(X, y))


def _clipped_log_loss(model: Any, X: Any, y: Any) -> float:
    """Minus the mean log loss, and no worse than guessing."""
    from sklearn.metrics import log_loss

    loss = log_loss(y, model.predict_proba(X), labels=model.classes_)
    return max(-float(loss), -math.log(len(model.classes_)))


def _worth_of_nothing(
    scoring: str | None, scorer: Scorer | None, inputs: Inputs, points_val: Floats
) -> tuple[float, str]:
    """The score of guessing, where it is known; otherwise that of a constant prediction."""
    classes = max(1, inputs.n_classes)
    if scoring in ("accuracy", "balanced_accuracy"):
        return 1 / classes, ""
    if scoring in ("neg_log_loss", CLIPPED):
        return -math.log(classes), ""
    if scoring is not None and scoring.startswith("roc_auc"):
        return 0.5, ""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    constant = DummyRegressor() if inputs.n_classes == 0 else DummyClassifier(strategy="prior")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            constant.fit(points_val, inputs.labels_val)
            assert scorer is not None
            worth = float(scorer(constant, points_val, inputs.labels_val))
    except Exception:
        worth = math.nan
    if not math.isfinite(worth):
        return 0.0, "no data is taken to be worth 0, since this scoring has no score for guessing; empty= sets it"
    return worth, f"no data is taken to be worth {worth:.4g}, the score of a constant prediction; empty= sets it"


def _evaluator(
    model: Any,
    scoring: str | None,
    scorer: Scorer | None,
    inputs: Inputs,
    both: tuple[Floats, Floats],
    owner: Ints,
    on_failure: OnFailure,
    fast: bool,
) -> Evaluator:
    from datassay.value.models import kernels

    points, points_val = both
    kinds = {"accuracy": kernels.ACCURACY, "neg_log_loss": kernels.LOG_LOSS, CLIPPED: kernels.CLIPPED_LOG_LOSS}
    ours = fast or is_stable(model)  # the stable learner has no other solver
    problem = _as_logistic(model) if ours and scoring in kinds and inputs.n_classes == 2 else None
    n, d = points.shape
    if problem is not None and (problem.per_record or d <= LARGEST_KERNEL or (d <= 4 * LARGEST_KERNEL and n <= 4 * d)):
        prepared, prepared_val = problem.prepare(points), problem.prepare(points_val)
        ridge = np.full(prepared.shape[1], problem.penalty)
        if problem.free_intercept:
            ridge[-1] = 0.0
        signs = [np.where(codes == 1, 1.0, -1.0) for codes in (inputs.codes, inputs.codes_val)]
        return LogisticModels(
            prepared, signs[0], prepared_val, signs[1], owner, ridge, problem.per_record, problem.needs_both,
            kinds[scoring or ""], problem.tolerance, on_failure,
        )  # fmt: skip
    return FittedModels(model, scorer, scoring, points, inputs.labels, points_val, inputs.labels_val, owner, on_failure)


@dataclass(frozen=True)
class _Logistic:
    """A logistic regression that our own solver can take over."""

    penalty: float
    per_record: bool
    free_intercept: bool
    needs_both: bool
    tolerance: float
    prepare: Callable[[Floats], Floats]


def _as_logistic(model: Any) -> _Logistic | None:
    """What is minimised, if the model is a logistic regression with an L2 penalty and nothing else to it."""
    from sklearn.linear_model import LogisticRegression

    if is_stable(model):
        model.check_parameters()
        return _Logistic(model.lam, True, False, False, model.tolerance, model.prepare)
    if type(model) is not LogisticRegression:
        return None
    own = model.get_params()
    penalised = own.get("penalty") in ("l2", "deprecated") and not own.get("l1_ratio")
    plain = penalised and not own.get("class_weight") and not own.get("dual")
    if not plain or own["solver"] == "liblinear" or not (isinstance(own["C"], int | float) and 0 < own["C"] < 1e12):
        return None

    def with_constant(points: Floats) -> Floats:
        return np.hstack([points, np.ones((len(points), 1))]) if own["fit_intercept"] else points

    return _Logistic(1 / own["C"], False, bool(own["fit_intercept"]), True, 1e-8, with_constant)
