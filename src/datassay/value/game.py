"""What the k-NN values share: checked inputs, the neighbour space, validation weights, and sums by class."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypeAliasType

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._run import Run, Schedule
from datassay._tensors import without_tensors
from datassay._work import workers
from datassay.data import Inputs, as_labels
from datassay.neighbors import (
    IN_MEMORY,
    AnySpace,
    DeviceSpace,
    EveryDistance,
    Given,
    Neighbours,
    RecordSpace,
    View,
    WithinThreshold,
    neighbours_of,
)
from datassay.results import Floats, Parameter, Values

Weights = TypeAliasType("Weights", ArrayLike | Literal["balanced"] | None)
ELSEWHERE: Final = "records in files are read and valued by threads here: joblib's backend is for records in memory"
SEEN: Final = {WithinThreshold: "inside", EveryDistance: "filled"}  # of a block; of rankings the order


def _formula(name: str, block: Any) -> Callable[..., None]:
    """A formula for this block: compiled for arrays in memory, or in torch for tensors on a device."""
    if block.on_device:
        from datassay.value import device_kernels as where
    else:
        from datassay.value import kernels as where  # type: ignore[no-redef]
    formula: Callable[..., None] = getattr(where, name)
    return formula


def balance_weights(y_val: ArrayLike, ratio: float = 1.0) -> Floats:
    """Validation weights under which the majority class counts ``ratio`` times as much as the minority class.

    Weight 1 for the smallest class (or classes), N_minority · ratio / N_class for every other one, as if the others
    had been downsampled (thesis §1.10; Mathematics §1).

    Parameters
    ----------
    y_val
        The validation labels.
    ratio
        How much the majority class counts, the minority class being 1.

    Examples
    --------
    >>> balance_weights(["sick", "well", "well", "well"], ratio=1.5).tolist()
    [1.0, 0.5, 0.5, 0.5]
    """
    ratio = _checks.number("ratio", ratio, above=0)
    labels = as_labels("y_val", y_val)
    if len(labels) == 0:
        raise InputError("y_val has no rows")
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    weight = np.where(sizes == sizes.min(), 1.0, sizes.min() * ratio / sizes)
    return np.asarray(weight[codes])


@dataclass(frozen=True, eq=False)
class Game:
    """Training points as players; every validation point plays its own game, and values are weighted means."""

    near: Neighbours
    weights: Floats
    n_classes: int
    run: Schedule
    told: dict[str, Parameter]
    folder: object = None

    @property
    def inputs(self) -> Inputs:
        """Points, labels and ids."""
        return self.near.inputs

    @property
    def space(self) -> AnySpace:
        """The points, ready for distances."""
        return self.near.space

    def total(self, view: View[Any], formula: str, *rest: object) -> Floats:
        """Weighted sum over validation points of what a formula of ``kernels`` says of each training point."""
        codes, codes_val, weights = self.inputs.codes, self.inputs.codes_val, self.weights
        seen = attrgetter(SEEN.get(type(view), "order"))

        def add(block: Any, total: Floats) -> None:
            own = block.rows
            _formula(formula, block)(seen(block), codes, codes_val[own], weights[own], *rest, total)

        return self.near.accumulate(view, add, self.run)

    def each(self, view: View[Any], formula: str, *rest: object, like: NDArray[Any] | None = None) -> NDArray[Any]:
        """What a formula of ``kernels`` says of each validation point: a number, or a row ``like`` this one."""
        codes, codes_val = self.inputs.codes, self.inputs.codes_val
        seen = attrgetter(SEEN.get(type(view), "order"))

        def compute(block: Any) -> tuple[NDArray[Any]]:
            found = block.empty() if like is None else np.empty((len(seen(block)), *like.shape), like.dtype)
            _formula(formula, block)(seen(block), codes, codes_val[block.rows], *rest, found)
            return (found,)

        (found,) = self.near.collect(view, compute, self.run)
        return found

    def keeping(self, method: str, parameters: dict[str, Parameter]) -> "Game":
        """The same game, whose passes are kept in the folder of its checkpoint, if it was given one."""
        if self.folder is None:
            return self
        from datassay._checkpoint import Checkpoint, digest

        seen: object = self.space
        if isinstance(self.space, RecordSpace):
            records = self.space.records
            seen = (records.content(), records.centres, records.widths, self.space.seen)
        if isinstance(self.space, DeviceSpace):
            seen = self.space.identity()
        data = digest(seen, self.inputs.codes, self.inputs.codes_val, self.weights)
        checkpoint = Checkpoint(self.folder, method, parameters | self.told, data)
        return replace(self, run=replace(self.run, checkpoint=checkpoint))

    @property
    def streamed(self) -> bool:
        """Whether the records are read in blocks."""
        return isinstance(self.space, RecordSpace)

    @property
    def labels(self) -> NDArray[np.generic]:
        """The label of every record."""
        if not self.streamed:
            return self.inputs.labels
        labels = self.inputs.classes.astype(self.inputs.labels.dtype)[self.inputs.codes]
        labels.setflags(write=False)
        return labels

    @property
    def n_players(self) -> int:
        """Players in each validation point's game."""
        return self.space.n_train - self.space.excludes_self

    @property
    def class_sizes(self) -> Floats:
        """Players of each class in the game of a validation point *of that class*."""
        sizes = np.bincount(self.inputs.codes, minlength=len(self.inputs.classes))
        players: Floats = sizes.astype(np.float64) - float(self.space.excludes_self)
        return players

    def by_class(self, match: ArrayLike, always: ArrayLike = 0.0) -> Floats:
        """Σ over validation points of weight · (match[class] where labels agree + always[class]), per record."""
        n = len(self.inputs.classes)
        match, always = np.broadcast_to(match, n), np.broadcast_to(always, n)
        weight = np.bincount(self.inputs.codes_val, self.weights, minlength=n)
        total = (weight * match)[self.inputs.codes]
        total += (weight * always).sum()
        if self.space.excludes_self:  # a record has no part in its own game
            total -= self.weights * (match + always)[self.inputs.codes]
        return np.asarray(total)

    def mean(self, total: Floats) -> Floats:
        """From a weighted sum over validation points to the weighted mean; of very many records, in its place."""
        if self.streamed:
            total /= self.weights.sum()
            return total
        return np.asarray(total / self.weights.sum())

    def result(
        self,
        values: Floats,
        method: str,
        parameters: dict[str, Parameter],
        notes: tuple[str, ...] = (),
        error: float | None = None,
    ) -> Values:
        """The values as a result that says how they were obtained; ``error`` bounds what each may be off by."""
        lower, upper = (None, None) if error is None else (values - error, values + error)
        if error is not None:
            notes = (*notes, *_drowned(values, error, method))
        for array in (values, lower, upper):
            if array is not None:
                array.setflags(write=False)  # ours alone, so that the result need not copy it
        return Values(
            values=values,
            ids=self.inputs.ids,
            method=method,
            parameters=parameters | self.told,
            labels=self.labels,
            notes=(*self.inputs.notes, *notes),
            lower=lower,
            upper=upper,
        )


def _drowned(values: Floats, error: float, method: str) -> tuple[str, ...]:
    """The note of values of which none is larger than what it may be off by; none otherwise."""
    largest = max(float(values.max()), -float(values.min()))
    if largest > error:
        return ()
    instead = "use knn_banzhaf, which is exact from few neighbours" if method == "knn_shapley" else "give none"
    return (
        f"no value is larger than {largest:.3g} and each may be off by {error:.3g}: no value is known to differ from "
        f"0, and no two are known to be in this order; give a smaller tolerance, or {instead}",
    )


def make_game(
    given: Given, weights: Weights = None, n_classes: int | None = None, *, in_memory: bool = False, **run: Unpack[Run]
) -> Game:
    """Check everything that does not depend on the method, and find the neighbours, unless they were given.

    ``in_memory``: the method wants its data in memory, wherever they come from.
    """
    schedule = Schedule.of(run)
    near = neighbours_of(given, schedule, IN_MEMORY if in_memory else run.get("device"))
    inputs, space = near.inputs, near.space
    if isinstance(space, RecordSpace) and workers(schedule.n_jobs).kind != "threads":
        # Chosen for all that is done meanwhile: it is no error that this is not.
        near = near.having(replace(inputs, notes=(*inputs.notes, ELSEWHERE)))
    if n_classes is None:
        n_classes = inputs.n_classes
    else:
        n_classes = _checks.integer("n_classes", n_classes, at_least=inputs.n_classes)
    told: dict[str, Parameter] = {
        "metric": near.metric,
        "n_classes": n_classes,
        "validation": "each other" if inputs.points_val is None else "given",
        "n_validation": space.n_validation,
        "weights": weights if isinstance(weights, str) else (None if weights is None else "given"),
    }
    if isinstance(space, DeviceSpace):
        told["device"] = space.device.type
    return Game(near, _check_weights(weights, inputs.labels_val), n_classes, schedule, told, run.get("checkpoint"))


def _check_weights(weights: Weights, labels_val: NDArray[np.generic]) -> Floats:
    n = len(labels_val)
    if weights is None:
        return np.ones(n)
    if isinstance(weights, str):
        _checks.choice("weights", weights, ("balanced",))
        return balance_weights(labels_val)
    try:
        given = np.asarray(without_tensors(weights), np.float64)
    except (TypeError, ValueError):
        raise UsageError('weights must be numbers, one for each validation point, or "balanced"') from None
    if given.shape != (n,):
        raise InputError(f"weights must have one entry for each of the {n} validation points, got shape {given.shape}")
    bad = ~(np.isfinite(given) & (given >= 0))
    if bad.any():
        raise InputError(f"weights must be finite and not negative; row {int(bad.argmax())} has {given[bad][0]}")
    if not given.any():
        raise InputError("weights are all zero; at least one validation point must count")
    # Only their proportions matter: brought near 1 by a power of two, exactly, no sum over- or underflows.
    return np.ldexp(given, -int(np.frexp(given.max())[1]))
