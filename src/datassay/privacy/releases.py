"""Private values: tell every owner what their record is worth without telling about anybody else's.

By Mathematics §3, finding 1, the value of a record needs only two numbers a validation point: how many neighbours have
the validation label, and how many have another. One record moves one of the two by one. They are released once, with
discrete Gaussian noise; every owner's value follows from them and the owner's own record, so that owners who put
their heads together learn nothing that the released numbers do not already tell (joint differential privacy).

The validation set is public, and everything that shapes the counts comes from it alone: how columns are scaled and
encoded, which classes there are, the threshold. What a training record can do is to be counted, and nothing else.
"""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Neighbours, ReleaseKind
from datassay._errors import InputError, UsageError
from datassay._run import DEFAULT_MEMORY
from datassay._tensors import as_array
from datassay._work import Progress
from datassay.data import Inputs
from datassay.neighbors import (
    COSINE,
    EUCLIDEAN,
    FullRanking,
    Ranked,
    Schedule,
    Within,
    WithinThreshold,
    collect,
    make_space,
    metric_of,
)
from datassay.neighbors import Neighbours as Opened
from datassay.privacy import sampling as samples
from datassay.privacy.accounting import Cost, Noise, accountant_of, calibrate, check_delta, check_epsilon, total_epsilon
from datassay.privacy.guarantee import Audience, Guarantee
from datassay.privacy.ledger import Ledger, LedgerLine
from datassay.privacy.mechanisms import add_noise
from datassay.privacy.statistics import COUNTED, COUNTS, NoisyCounts, worths
from datassay.privacy.values import PrivateValues
from datassay.results import Parameter
from datassay.value import Game, Weights, make_game, shapley_total

if TYPE_CHECKING:
    pass


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


@dataclass(frozen=True, eq=False)
class _Setting:
    """What every private release needs: a game whose public parts are public, and the promise to keep."""

    game: Game
    n_classes: int
    epsilon: float
    delta: float
    neighbours: Neighbours
    sampling: float
    ledger: Ledger | None
    notes: list[str]

    @property
    def points(self) -> NDArray[np.float32] | NDArray[np.float64]:
        return as_array(self.game.inputs.points_val)

    def ask(self, method: str, told: dict[str, Parameter], cost: Cost, what: str, audience: Audience) -> "Paid":
        """Pay for the release, or find out that it was made before. No noise has been drawn when this is called."""
        # The scale of noise follows from the rest, to the last bits of a root finder: it is no part of the question.
        asked = {name: value for name, value in told.items() if name != "sigma"}
        inputs = self.game.inputs
        request = fingerprint(method, asked, self.points, inputs.labels_val, self.game.weights)
        if self.sampling < 1:
            what += f", each record sampled with chance {self.sampling:g}"
        return ask_ledger(self.ledger, inputs, request, cost, what, audience, self.notes)

    def promise(self, cost: Cost, mechanism: str, audience: Audience) -> Guarantee:
        """The guarantee that this cost buys."""
        return Guarantee(
            mechanism=mechanism,
            epsilon=total_epsilon([cost], self.delta),
            delta=self.delta,
            neighbours=self.neighbours,
            accountant=accountant_of([cost]),
            sampling=self.sampling,
            audience=audience,
        )


def ask_ledger(
    ledger: Ledger | None, inputs: Inputs, request: str, cost: Cost, what: str, audience: Audience, notes: list[str]
) -> "Paid":
    """Pay for a release, or find out that it was made before. No noise has been drawn when this is called."""
    if ledger is None:
        return Paid(None, None, None)
    dataset = fingerprint(as_array(inputs.points), inputs.labels, inputs.ids)
    earlier = ledger.find(dataset, request)
    if earlier is not None:
        notes.append(f"served again from the ledger (release number {earlier.number}), at no cost")
        return Paid(ledger, earlier.number, earlier)
    return Paid(ledger, ledger.spend(dataset, request, [cost], what, audience), None)


@dataclass(frozen=True)
class Paid:
    """A line of the ledger, or None without one; ``earlier`` is the release if it was made before."""

    ledger: Ledger | None
    number: int | None
    earlier: LedgerLine | None

    def complete(self, result: object, secret: str | None = None) -> None:
        """Keep what was released, if there is a ledger and it was not made before."""
        if self.ledger is not None and self.number is not None and self.earlier is None:
            self.ledger.complete(self.number, json.dumps(result), secret)


def check_ledger(ledger: object) -> None:
    """A ledger, or none."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise UsageError(f"ledger must be a datassay.Ledger, got {type(ledger).__name__}")


def check_public(inputs: Inputs, notes: list[str], shared: tuple[float, float] | None = None) -> NDArray[np.generic]:
    """Refuse a validation set that is part of the private data; the classes that only the private data have."""
    check_apart(inputs, notes, shared=shared)
    unseen = np.bincount(inputs.codes_val, minlength=inputs.n_classes) == 0
    return np.asarray(inputs.classes[unseen])


def check_apart(
    inputs: Inputs, notes: list[str], features_alone: bool = False, shared: tuple[float, float] | None = None
) -> float:
    """Refuse a validation set that is part of the private data; the share of validation records that are in both.

    With ``features_alone``, where features are what is private, a record is the same whatever its label. ``shared`` is
    what :func:`_shared_records` found, if it was asked before.
    """
    share, usual = shared or _shared_records(inputs, features_alone)
    but = ", whatever their labels" if features_alone else ""
    if share >= 0.5 and usual < 0.5:
        most = "every validation record is" if share == 1 else f"{share:.1%} of the validation records are"
        raise InputError(
            f"{most} also in the training data{but}; the validation set is public and must be no part of the private "
            "data"
        )
    if share > 0:
        notes.append(
            f"{share:.1%} of the validation records occur in the training data too{but}; the validation set is taken "
            "to be public"
        )
    return share


def _set_up(
    X: object,
    y: object,
    X_val: object | None,
    y_val: object | None,
    *,
    metric: str,
    weights: Weights,
    n_classes: int | None = None,
    needs_classes: bool = True,
    epsilon: float,
    delta: float,
    neighbours: Neighbours,
    sampling: float,
    ledger: Ledger | None,
    ids: object | None,
    run: Schedule,
) -> _Setting:
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    _checks.choice("neighbours", neighbours, get_args(Neighbours))
    sampling = _checks.number("sampling", sampling, above=0, at_most=1)
    if (X.inputs.points_val if isinstance(X, Opened) else X_val) is None:
        raise UsageError("X_val must be given: a public validation set that is no part of the training data")
    if metric_of(X, metric) == "precomputed":
        raise UsageError("private values need features, so that they depend on each training record by itself")
    check_ledger(ledger)
    game = make_game(
        X, y, X_val, y_val, metric=metric, weights=weights, n_classes=n_classes, ids=ids, n_jobs=run.n_jobs,
        memory=run.memory, progress=run.progress, fitted_on="validation", in_memory=True,
    )  # fmt: skip
    inputs = game.inputs
    notes = list(inputs.notes)
    shared = game.near.once("shared records", lambda: _shared_records(inputs, features_alone=False))
    only_private = check_public(inputs, notes, shared)
    if needs_classes and n_classes is None and len(only_private):
        raise InputError(
            f"training has labels that the public validation set lacks ({_checks.listed(only_private)}); the number of "
            "classes must be public too: give it (n_classes, --classes)"
        )
    n = game.space.n_train
    if delta >= 1 / n:
        notes.append(f"delta={delta:g} is not below 1/N = {1 / n:.3g}: it allows some record to be told outright")
    classes = game.n_classes if n_classes is not None else inputs.n_classes - len(only_private)
    return _Setting(game, classes, epsilon, delta, neighbours, sampling, ledger, notes)


def private_tknn_shapley(
    X: object,
    y: object = None,
    X_val: object | None = None,
    y_val: object | None = None,
    tau: float = -0.5,
    metric: str = COSINE,
    weights: Weights = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    neighbours: Neighbours = "add-remove",
    sampling: float = 1.0,
    release: ReleaseKind = "histogram",
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
    noise; one record moves one of the two by one. Every value follows from them and the owner's own record
    (Mathematics §5), so the guarantee holds against any number of owners who put their values together.

    Parameters
    ----------
    X, y, X_val, y_val, tau, metric, weights, ids, n_jobs, memory, progress
        As in :func:`datassay.tknn_shapley`. The validation set, ``tau`` and the weights are public, and the
        validation set must be no part of the training data. Tables are encoded by the validation table alone;
        features given as numbers must not have been scaled by private statistics.
    epsilon, delta, neighbours
        What is promised: (ε, δ)-differential privacy under ``add-remove`` or ``replace`` of one record.
    sampling
        Chance with which a record takes part in each validation point's counts (fresh Poisson samples): less noise
        for the same promise, at the price of counting fewer.
    release
        ``"histogram"``, or ``"paper"``: the three counts of the TKNN paper, which need √3 times the noise.
    geometry
        Use that one record can be near only so many of the (public) validation points; needs less noise where they
        are spread out.
    ledger
        Asked before any noise is drawn. A release made before is served again from it, at no cost.
    n_classes
        Number of classes; those of the validation set if left out.

    References
    ----------
    Wang et al., Threshold KNN-Shapley: A Linear-Time and Privacy-Friendly Approach to Data Valuation, 2023.
    Mathematics §5.

    Examples
    --------
    >>> import datassay as da, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(500, 2)), rng.normal(size=(20, 2))
    >>> y, y_val = X[:, 0] > 0, X_val[:, 0] > 0
    >>> private = da.private_tknn_shapley(X, y, X_val, y_val, epsilon=1.0, delta=1e-4)
    >>> private.guarantee.epsilon <= 1.0, private.guarantee.audience
    (True, 'owner')
    >>> newcomer = private.value_record([1.0, 0.5], True)  # costs nothing
    """
    tau = _checks.number("tau", tau)
    by = metric_of(X, metric)
    if by == "cosine" and not -1 <= tau <= 1:
        raise UsageError(f"tau={tau:g} is no cosine distance: minus a similarity lies between -1 and 1")
    if by in ("euclidean", "manhattan") and tau < 0:
        raise UsageError(f"tau={tau:g} is below 0, and no distance is")
    _checks.choice("release", release, tuple(COUNTS))
    _checks.boolean("geometry", geometry)
    setting = _set_up(
        X, y, X_val, y_val, metric=metric, weights=weights, n_classes=n_classes, epsilon=epsilon, delta=delta,
        neighbours=neighbours, sampling=sampling, ledger=ledger, ids=ids, run=Schedule(n_jobs, memory, progress),
    )  # fmt: skip
    game, inputs = setting.game, setting.game.inputs
    m = game.space.n_validation
    if release == "paper" and (neighbours != "add-remove" or geometry):
        raise UsageError(
            'release="paper" counts all records at every validation point and is published for add-remove neighbours; '
            "use the histogram for replaced records and for geometry"
        )
    reached = _near_validation_points(setting.points, tau, by, game.run) if geometry else m
    cost = _threshold_cost(release, setting, max(1, reached))
    if geometry and reached == m:
        setting.notes.append("geometry changes nothing here: a record can be near all validation points")
    told: dict[str, Parameter] = {
        "tau": tau, "metric": by, "epsilon": setting.epsilon, "delta": setting.delta, "neighbours": neighbours,
        "sampling": setting.sampling, "release": release, "geometry": geometry, "sigma": cost.scale,
        "n_validation": m, "n_classes": setting.n_classes,
    }  # fmt: skip
    what = f"{COUNTED[release]} of {m} validation points, {cost.noise} noise of scale {cost.scale:.4g} on each count"
    if reached < m:
        what += f"; a record can be near at most {reached} of the points"
    paid = setting.ask("private_tknn_shapley", told, cost, what, "owner")
    columns = len(COUNTS[release])
    if paid.earlier is None:
        key = samples.new_key()
        noise = np.rint(add_noise(np.zeros((m, columns), np.int64), cost.noise, cost.scale)).astype(np.int64)
        counts = np.zeros((m, columns), np.int64)
    else:
        assert paid.earlier.result is not None
        counts = np.array(json.loads(paid.earlier.result), np.int64)
        key, noise = bytes.fromhex(paid.earlier.secret or ""), None
    values = _evaluate(game, setting.n_classes, tau, setting.sampling, key, noise, counts)
    paid.complete(counts.tolist(), secret=key.hex() if setting.sampling < 1 else None)
    typical = max(0.0, float(np.median(counts.sum(axis=1) if release == "histogram" else counts[:, 1])))
    if cost.scale > typical / 2:
        setting.notes.append(
            f"the noise (deviation {cost.scale:.3g}) is large against the neighbours of a validation point (about "
            f"{typical:.3g}): expect rough values. Fewer validation points, sampling, geometry or a larger ε help"
        )
    statistics = NoisyCounts(
        counts,
        setting.points,
        inputs.labels_val,
        game.weights,
        tau,
        by,
        setting.n_classes,
        COUNTS[release],
        inputs.encoder,
    )
    return PrivateValues(
        values,
        inputs.ids,
        "private_tknn_shapley",
        setting.promise(cost, what, "owner"),
        statistics,
        told,
        inputs.labels,
        tuple(setting.notes),
        (cost,),
    )


def _threshold_cost(release: ReleaseKind, setting: _Setting, points: int) -> Cost:
    """Noise that keeps the promise when one record can be near ``points`` validation points.

    Added or removed, a record moves one of the two counts of each of them by one (all three of the paper's: a distance
    of √3). Replaced, it may leave one count and enter the other. Replaced in a sample, the accountant knows Gaussian
    noise only; it is rounded afterwards, which costs nothing.
    """
    noise: Noise = "gaussian"
    sensitivity = math.sqrt(3) if release == "paper" else 1.0
    if release == "histogram" and (setting.neighbours == "add-remove" or setting.sampling == 1):
        noise = "discrete gaussian"
        points *= 2 if setting.neighbours == "replace" else 1
    return calibrate(
        noise,
        setting.epsilon,
        setting.delta,
        sensitivity=sensitivity,
        count=points,
        sampling=setting.sampling,
        neighbours=setting.neighbours,
    )


def _near_validation_points(points: NDArray[np.floating[Any]], tau: float, metric: str, run: Schedule) -> int:
    """The most validation points that one record can be near, wherever it is: max_t #{t' : d(t, t') ≤ 2τ}.

    A little is added to both distances for what rounding may do to them.
    """
    slack = 8 * (points.shape[1] + 8) * float(np.finfo(points.dtype).eps)
    if metric == "cosine":  # the angle is a metric; twice the angle, back to minus a cosine
        angle = 2 * math.acos(min(1.0, max(-1.0, -(tau + slack))))
        reach = 1.0 if angle >= math.pi else min(1.0, slack - math.cos(angle))
    else:  # squares of very small differences vanish
        reach = 2 * tau * (1 + slack) + 4 * math.sqrt(float(np.finfo(points.dtype).tiny))

    def compute(block: Within) -> tuple[NDArray[Any]]:
        return (block.inside.sum(axis=1),)

    (seen,) = collect(make_space(points, points, metric), WithinThreshold(float(reach)), compute, _here(run, None))
    return int(seen.max())


def _here(run: Schedule, progress: Progress) -> Schedule:
    """The same run, by threads of this process: noise and the coins of samples are secret, and stay in it."""
    return Schedule(run.n_jobs, run.memory, progress, here=True)


def _evaluate(
    game: Game,
    n_classes: int,
    tau: float,
    sampling: float,
    key: bytes,
    noise: NDArray[np.int64] | None,
    released: NDArray[np.int64],
) -> NDArray[np.float64]:
    """One pass: fill ``released`` (without noise it holds an earlier release already), and value every record."""
    n, codes = game.space.n_train, game.inputs.codes

    def add(block: Within, total: NDArray[np.float64]) -> None:
        from datassay.privacy import kernels

        rows, targets = block.rows, game.inputs.codes_val[block.rows]
        counts = np.empty((len(block.inside), 3), np.int64)
        if noise is not None and sampling == 1:
            kernels.count_neighbours(block.inside, codes, targets, counts)
        for at in range(len(counts) if sampling < 1 else 0):  # one point's sample at a time
            row = slice(at, at + 1)
            members = samples.members(key, (rows.start + at,), n, sampling)
            if noise is not None:
                kernels.count_members(block.inside[row], codes, targets[row], members, counts[row])
                released[rows.start + at] = _released(counts[row], released.shape[1])[0] + noise[rows.start + at]
            joining, counted = worths(released[rows][row], game.weights[rows][row], n_classes)
            kernels.add_members(block.inside[row], codes, targets[row], members, counted - joining, total)
        if noise is not None and sampling == 1:
            released[rows] = _released(counts, released.shape[1]) + noise[rows]
        joining, counted = worths(released[rows], game.weights[rows], n_classes)
        kernels.add_worths(block.inside, codes, targets, counted if sampling == 1 else joining, total)

    return game.mean(game.near.accumulate(WithinThreshold(tau), add, _here(game.run, game.run.progress)))


def _released(counts: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
    """What is released of (records, neighbours, matching): all three, or matching and others."""
    return counts if columns == 3 else np.stack([counts[:, 2], counts[:, 1] - counts[:, 2]], axis=1)


def private_knn_shapley(
    X: object,
    y: object = None,
    X_val: object | None = None,
    y_val: object | None = None,
    k: int = 5,
    metric: str = EUCLIDEAN,
    weights: Weights = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    neighbours: Neighbours = "add-remove",
    sampling: float = 1.0,
    ledger: Ledger | None = None,
    ids: object | None = None,
    n_jobs: int | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Progress = None,
) -> PrivateValues:
    """Differentially private k-NN Shapley values: the baseline that :func:`private_tknn_shapley` improves on.

    A ``fraction`` value moves by at most 1/(k(k+1)) when another record comes, goes or is replaced (Mathematics §5).
    Every owner's value gets Gaussian noise of its own, so the guarantee is for an owner who sees one value: owners who
    share theirs weaken it, and the result says by how much. Values are of the order 1/N, the noise is not: expect
    little.

    With ``sampling`` below 1 every value is computed among a fresh Poisson sample of the others for each validation
    point, which needs less noise and takes time in proportion to N². Other parameters as in :func:`knn_shapley` and
    :func:`private_tknn_shapley`.

    References
    ----------
    Wang et al., Threshold KNN-Shapley, 2023, appendix B.4. Mathematics §5.

    Examples
    --------
    >>> import datassay as da, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(50, 2)), rng.normal(size=(20, 2))
    >>> y, y_val = X[:, 0] > 0, X_val[:, 0] > 0
    >>> da.private_knn_shapley(X, y, X_val, y_val, delta=1e-3).guarantee.audience
    'owner, no collusion'
    """
    k = _checks.integer("k", k, at_least=1)
    setting = _set_up(
        X, y, X_val, y_val, metric=metric, weights=weights, needs_classes=False, epsilon=epsilon, delta=delta,
        neighbours=neighbours, sampling=sampling, ledger=ledger, ids=ids, run=Schedule(n_jobs, memory, progress),
    )  # fmt: skip
    game, m = setting.game, setting.game.space.n_validation
    sampled = setting.sampling < 1
    # Without samples, noise on the mean (which moves by no more than each value) is the composition over validation
    # points; with them, each point's sample is fresh, and what is released is the mean of m noisy values.
    cost = calibrate(
        "gaussian", setting.epsilon, setting.delta, sensitivity=1 / (k * (k + 1)), count=m if sampled else 1,
        sampling=setting.sampling, neighbours=neighbours,
    )  # fmt: skip
    share = float(np.sqrt((game.weights**2).sum()) / game.weights.sum()) if sampled else 1.0
    scale = cost.scale * share
    told: dict[str, Parameter] = {
        "k": k, "utility": "fraction", "metric": setting.game.near.metric, "epsilon": setting.epsilon,
        "delta": setting.delta, "neighbours": neighbours, "sampling": setting.sampling, "sigma": scale,
        "n_validation": m,
    }  # fmt: skip
    what = f"one k-NN Shapley value an owner, Gaussian noise of deviation {scale:.4g} on each"
    paid = setting.ask("private_knn_shapley", told, cost, what, "owner, no collusion")
    if paid.earlier is None:
        total = _sampled_shapley(game, k, setting.sampling) if sampled else shapley_total(game, k)
        values = np.asarray(add_noise(game.mean(total), "gaussian", scale), np.float64)
        paid.complete(None, secret=json.dumps(values.tolist()))  # every value is for its owner alone
    else:
        assert paid.earlier.secret is not None
        values = np.array(json.loads(paid.earlier.secret), np.float64)
    together = replace(cost, count=10 * cost.count)
    setting.notes.append(
        f"noise is independent from owner to owner: ten owners who share their values face "
        f"ε = {total_epsilon([together], setting.delta):.3g} instead of {total_epsilon([cost], setting.delta):.3g}"
    )
    return PrivateValues(
        values,
        game.inputs.ids,
        "private_knn_shapley",
        setting.promise(cost, what, "owner, no collusion"),
        None,
        told,
        game.inputs.labels,
        tuple(setting.notes),
        (cost,),
    )


def _sampled_shapley(game: Game, k: int, chance: float) -> NDArray[np.float64]:
    """``fraction`` values, every owner's among a fresh sample of the others for each validation point."""
    n = game.space.n_train
    key, log_skip = samples.new_key(), math.log1p(-chance)
    chunk = max(1, int(2**20 / (n * chance + 2)))  # owners whose coins are drawn at a time: 8 MiB of them

    def add(block: Ranked, total: NDArray[np.float64]) -> None:
        from datassay.privacy import kernels

        for at, row in enumerate(range(block.rows.start, block.rows.stop)):
            for start in range(0, n, chunk):
                stop = min(n, start + chunk)
                wanted = int((stop - start) * (n * chance + 1) * 1.2) + 64
                used = -1
                while used < 0:
                    used = kernels.add_sampled_shapley(
                        block.order[at], start, stop, game.inputs.codes, game.inputs.codes_val[row], game.weights[row],
                        k, log_skip, samples.words(key, (row, start), wanted), total,
                    )  # fmt: skip
                    wanted *= 2

    return game.near.accumulate(FullRanking(), add, _here(game.run, game.run.progress))


def _row_hashes(points: NDArray[np.generic], codes: NDArray[np.generic]) -> NDArray[np.uint64]:
    """A 64-bit hash of every row and its label; equal rows have equal hashes."""
    odd = np.random.default_rng(0x5EED).integers(0, 2**63, points.shape[1] + 1, dtype=np.uint64) * 2 + 1
    total = codes.astype(np.uint64) * odd[-1]
    for column, factor in zip(points.T, odd[:-1], strict=True):
        words = (column.astype(np.float64) + 0.0).view(np.uint64)  # −0 becomes 0
        total += (words ^ (words >> np.uint64(29))) * factor
    return np.asarray(total)


def _shared_records(inputs: Inputs, features_alone: bool) -> tuple[float, float]:
    """The share of distinct validation records that are training records too, and of training records with a twin.

    Validation records are published: a validation set taken out of the training data would give it away. Where records
    have few values, they coincide by chance, training records among themselves as well.
    """
    points, points_val = as_array(inputs.points), as_array(inputs.points_val)
    codes, codes_val = (np.zeros_like(some) if features_alone else some for some in (inputs.codes, inputs.codes_val))
    known = np.unique(points_val[:, 0])  # few records agree in one column: the rest need no second look
    at = np.minimum(np.searchsorted(known, points[:, 0]), len(known) - 1)
    alike = np.flatnonzero(known[at] == points[:, 0])
    validation = np.unique(_row_hashes(points_val, codes_val))
    shared = float(np.isin(validation, _row_hashes(points[alike], codes[alike])).mean())
    if shared == 0:
        return 0.0, 0.0
    count = np.unique(_row_hashes(points, codes), return_counts=True)[1]
    return shared, float(count[count > 1].sum() / count.sum())
