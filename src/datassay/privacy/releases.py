"""Private values: tell every owner what their record is worth without telling about anybody else's.

By SPEC §3, finding 1, the value of a record needs only two numbers a validation point: how many neighbours have the
validation label, and how many have another. One record moves one of the two by one. They are released once, with
discrete Gaussian noise; every owner's value follows from them and the owner's own record, so that owners who put
their heads together learn nothing that the released numbers do not already tell (joint differential privacy).
"""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay._frozen import FrozenMapping
from datassay._version import __version__
from datassay.data import Inputs
from datassay.neighbors import (
    DEFAULT_MEMORY,
    NeighbourGraph,
    Progress,
    Run,
    Within,
    WithinThreshold,
    accumulate,
    collect,
    make_space,
)
from datassay.privacy.accounting import Noise, accountant_of, calibrate, check_delta, check_epsilon, total_epsilon
from datassay.privacy.guarantee import NEIGHBOURS, Guarantee, Neighbours
from datassay.privacy.ledger import Ledger
from datassay.privacy.mechanisms import add_noise
from datassay.results import FrameKind, Parameter, frozen, make_frame, save_columns
from datassay.value.game import Game, Weights, make_game
from datassay.value.knn import harmonic


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """What was released: for each (public) validation point, noisy numbers of matching and other neighbours.

    They are public, and enough to value any record, old or new.
    """

    counts: NDArray[np.int64]
    points: NDArray[np.float64]
    labels: NDArray[np.generic]
    weights: NDArray[np.float64]
    tau: float
    metric: str
    n_classes: int

    def value(self, x: object, y: object) -> float:
        """Value of a record that is not among those counted, from the released numbers alone."""
        from datassay.privacy import kernels

        space = make_space(np.asarray([x], dtype=self.points.dtype), self.points, self.metric)
        assert not isinstance(space, NeighbourGraph)
        distances = np.empty((space.n_validation, 1), space.dtype)
        space.fill(0, distances)
        near = distances[:, 0] <= space.threshold(self.tau)
        table = _harmonic(self.counts, 0)
        total = 0.0
        for t in np.flatnonzero(near):
            matching, others = self.counts[t]
            match = int(self.labels[t] == y)
            total += self.weights[t] * kernels.threshold_value(match, matching, others, table, self.n_classes)
        return float(total / self.weights.sum())


@dataclass(frozen=True, eq=False)
class PrivateValues:
    """Values that may be told, each to the owner of its record, and the guarantee under which they may.

    Not a kind of :class:`datassay.Values`: code that expects the one cannot be handed the other by accident.
    """

    values: NDArray[np.float64]
    ids: NDArray[np.generic]
    method: str
    guarantee: Guarantee
    statistics: NoisyCounts
    parameters: Mapping[str, Parameter]
    labels: NDArray[np.generic] | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __post_init__(self) -> None:
        for name in ("values", "ids", "labels"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(self, name, frozen(column))
        object.__setattr__(self, "parameters", FrozenMapping(self.parameters))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"PrivateValues({len(self)} records by {self.method}; {self.guarantee})"

    def value_record(self, x: object, y: object) -> float:
        """Value of a new record, from the released statistics alone: it costs nothing, however often."""
        return self.statistics.value(x, y)

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        columns = {"id": self.ids, "private_value": self.values, "label": self.labels}
        return {name: column for name, column in columns.items() if column is not None}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """The values as a data frame: id, private_value and label."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the operator's file: values, guarantee and parameters, as Parquet, JSON or (values alone) CSV."""
        header = {
            "kind": "private values",
            "method": self.method,
            "parameters": dict(self.parameters),
            "guarantee": self.guarantee.to_dict(),
            "version": self.version,
            "notes": list(self.notes),
        }
        return save_columns(path, header, self._columns())


def _harmonic(counts: NDArray[np.int64], extra: int) -> NDArray[np.float64]:
    """H_0 … up to the largest number of neighbours that the counts can mean."""
    largest = int(np.maximum(counts, 0).sum(axis=1).max()) + extra + 2
    return harmonic(largest)


def fingerprint(*parts: object) -> str:
    """A digest of arrays and plain values, by content."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            plain = np.ascontiguousarray(part if part.dtype != object else part.astype(np.str_))
            digest.update(f"{plain.dtype.str}{plain.shape}".encode())
            digest.update(plain.tobytes())
        else:
            digest.update(json.dumps(part, sort_keys=True, default=str).encode())
        digest.update(b"|")
    return digest.hexdigest()


def _sample(key: int, row: int, n: int, chance: float) -> NDArray[np.uint8]:
    """Who is in the sample of one validation point: a Poisson sample, the same for the same secret key and row."""
    rng = np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, row]))
    chosen = np.zeros(n, np.uint8)
    at = -1
    while at < n:  # gaps between members are geometric: the work is in proportion to the sample
        gaps = rng.geometric(chance, size=int(n * chance * 1.1) + 16)
        members = at + np.cumsum(gaps)
        chosen[members[members < n]] = 1
        at = int(members[-1])
    return chosen


def _near_validation_points(points: NDArray[np.float64], tau: float, metric: str, run: Run) -> int:
    """The most validation points that one record can be near, wherever it is: max_t #{t' : d(t, t') ≤ 2τ}."""
    if metric == "cosine":  # the angle is a metric; twice the angle, back to minus a cosine
        angle = 2 * np.arccos(np.clip(-tau, -1, 1))
        reach = -1.0 * np.cos(angle) if angle < np.pi else 1.0
        reach = min(1.0, reach + 1e-9)
    else:
        reach = 2 * tau * (1 + 1e-9)
    seen = np.empty(len(points), np.int64)

    def write(block: Within) -> None:
        seen[block.rows] = block.inside.sum(axis=1)

    collect(make_space(points, points, metric), WithinThreshold(float(reach)), write, run)
    return int(seen.max())


def private_tknn_shapley(
    X: object,
    y: object = None,
    X_val: object | None = None,
    y_val: object | None = None,
    tau: float = -0.5,
    metric: str = "cosine",
    weights: Weights = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    neighbours: Neighbours = "add-remove",
    sampling: float = 1.0,
    geometry: bool = False,
    ledger: Ledger | None = None,
    n_classes: int | None = None,
    ids: object | None = None,
    n_jobs: int | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Progress = None,
) -> PrivateValues:
    """Differentially private threshold-neighbour Shapley values, one for each owner.

    Released are, for each validation point, the numbers of matching and of other neighbours, with discrete Gaussian
    noise; values follow from them. The validation set is public and must not be part of the training data.

    Parameters
    ----------
    X, y, X_val, y_val, tau, metric, weights, n_classes, ids, n_jobs, memory, progress
        As in :func:`datassay.tknn_shapley`; ``tau``, ``n_classes`` and the weights are public. Labels must be known in
        public too: give ``n_classes`` if not all of them occur in the validation set.
    epsilon, delta, neighbours
        What is promised: (ε, δ)-differential privacy under ``add-remove`` or ``replace`` of one record.
    sampling
        Chance with which a record takes part in each validation point's counts (fresh Poisson samples).
    geometry
        Use that one record can be near only so many of the (public) validation points; needs less noise where they
        are spread out.
    ledger
        Asked before any noise is drawn. A release made before is served again from it, at no cost.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    _checks.choice("neighbours", neighbours, NEIGHBOURS)
    sampling = _checks.number("sampling", sampling, above=0, at_most=1)
    tau = _checks.number("tau", tau)
    if X_val is None:
        raise InputError("X_val must be given: a public validation set that is no part of the training data")
    game = make_game(
        X, y, X_val, y_val, metric=metric, weights=weights, n_classes=n_classes, ids=ids, n_jobs=n_jobs,
        memory=memory, progress=progress,
    )  # fmt: skip
    if isinstance(game.space, NeighbourGraph) or metric == "precomputed":
        raise InputError(
            "private values need features: later records are valued by their distance to validation points"
        )
    inputs = game.inputs
    points = np.asarray(inputs.points_val)
    _refuse_shared_records(inputs)
    n, m = game.space.n_train, game.space.n_validation
    reached = _near_validation_points(points, tau, metric, game.run) if geometry else m
    noise_kind, count = _noise_for(neighbours, sampling, max(1, reached))
    cost = calibrate(noise_kind, epsilon, delta, count=count, sampling=sampling, neighbours=neighbours)
    notes = list(inputs.notes)
    if delta >= 1 / n:
        notes.append(f"delta={delta:g} is not below 1/N = {1 / n:.3g}: it allows some record to be told outright")

    told: dict[str, Parameter] = {
        "tau": tau, "metric": metric, "epsilon": epsilon, "delta": delta, "neighbours": neighbours,
        "sampling": sampling, "geometry": geometry, "sigma": cost.scale, "n_validation": m, "n_classes": game.n_classes,
    }  # fmt: skip
    number: int | None = None
    counts, key = np.zeros((m, 2), np.int64), 0
    noise: NDArray[np.int64] | None = None
    earlier = None
    if ledger is not None:
        dataset = fingerprint(np.asarray(inputs.points), inputs.labels, inputs.ids)
        request = fingerprint("private_tknn_shapley", told, points, inputs.labels_val, game.weights)
        earlier = ledger.find(dataset, request)
        if earlier is None:
            number = ledger.spend(dataset, request, [cost], "noisy neighbour counts", "owner")
    if earlier is None:
        key = secrets.randbits(64)
        noise = np.rint(add_noise(np.zeros((m, 2), np.int64), noise_kind, cost.scale)).astype(np.int64)
    else:
        assert earlier.result is not None
        counts, key = np.array(json.loads(earlier.result), np.int64), int(earlier.secret or 0)
        notes.append(f"served again from the ledger (release number {earlier.number}), at no cost")
    values = _evaluate(game, tau, sampling, key, noise, counts)
    if ledger is not None and number is not None:
        ledger.complete(number, json.dumps(counts.tolist()), secret=str(key) if sampling < 1 else None)
    guarantee = Guarantee(
        mechanism=f"neighbour counts with {noise_kind} noise, deviation {cost.scale:.4g}, {m} validation points",
        epsilon=total_epsilon([cost], delta),
        delta=delta,
        neighbours=neighbours,
        accountant=accountant_of([cost]),
        sampling=sampling,
        audience="owner",
    )
    statistics = NoisyCounts(counts, points, inputs.labels_val, game.weights, tau, metric, game.n_classes)
    return PrivateValues(
        values, inputs.ids, "private_tknn_shapley", guarantee, statistics, told, inputs.labels, tuple(notes)
    )


def _noise_for(neighbours: Neighbours, sampling: float, points: int) -> tuple[Noise, int]:
    """The kind of noise, and how many single counts one record can move by one.

    Added or removed, a record moves one of the two counts of each validation point near it. Replaced, it may leave one
    count and enter the other. Replaced in a sample, the accountant knows Gaussian noise only; it is rounded afterwards,
    which costs nothing.
    """
    if neighbours == "add-remove":
        return "discrete gaussian", points
    return ("discrete gaussian", 2 * points) if sampling == 1 else ("gaussian", points)


def _row_hashes(points: NDArray[np.generic], codes: NDArray[np.generic]) -> NDArray[np.uint64]:
    """A 64-bit hash of every row and its label; equal rows have equal hashes."""
    odd = np.random.default_rng(0x5EED).integers(0, 2**63, points.shape[1] + 1, dtype=np.uint64) * 2 + 1
    total = codes.astype(np.uint64) * odd[-1]
    for column, factor in zip(points.T, odd[:-1], strict=True):
        words = (column.astype(np.float64) + 0.0).view(np.uint64)  # −0 becomes 0
        total += (words ^ (words >> np.uint64(29))) * factor
    return np.asarray(total)


def _refuse_shared_records(inputs: Inputs) -> None:
    """Validation records are published: a validation set taken out of the training data would give it away."""
    train = _row_hashes(np.asarray(inputs.points), inputs.codes)
    validation = np.unique(_row_hashes(np.asarray(inputs.points_val), inputs.codes_val))
    at = np.minimum(np.searchsorted(validation, train), len(validation) - 1)
    if len(np.unique(at[validation[at] == train])) == len(validation):
        raise InputError(
            "every validation record is also a training record; the validation set is public and must be no part of "
            "the training data"
        )


def _evaluate(
    game: Game, tau: float, sampling: float, key: int, noise: NDArray[np.int64] | None, counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """One pass: fill ``counts`` with what is released (if there is fresh noise) and value every record from it."""
    n = game.space.n_train
    fresh = noise is not None
    drawn = noise if noise is not None else counts
    table = _harmonic(drawn if fresh else counts, n if fresh else 0)
    everybody = np.ones((1, n), np.uint8)

    def add(block: Within, total: NDArray[np.float64]) -> None:
        from datassay.privacy import kernels

        rows = range(block.rows.start, block.rows.stop)
        sampled = everybody if sampling == 1 else np.stack([_sample(key, row, n, sampling) for row in rows])
        kernels.add_private_threshold(
            block.inside, sampled, game.inputs.codes, game.inputs.codes_val[block.rows], game.weights[block.rows],
            drawn[block.rows], table, game.n_classes, fresh, counts[block.rows], total,
        )  # fmt: skip

    return game.mean(accumulate(game.space, WithinThreshold(tau), add, game.run))
