"""What a model of noisy centres gives away, beside what one of the records themselves would: LiRA before and after."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Attacker
from datassay._errors import InputError, UsageError
from datassay._run import DEFAULT_MEMORY
from datassay._work import Progress
from datassay.attacks import Attack, membership_attack
from datassay.market.disclosure import Disclosure
from datassay.results import Fact, FrameKind, as_facts, check_axes, make_frame, new_axes, save_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Leakage:
    """The same membership attack on a k-NN of the records (``before``) and of their noisy centres (``after``)."""

    before: Attack
    after: Attack
    attacker: str = "outsider"

    def __repr__(self) -> str:
        return f"Leakage(AUC {self.before.auc:.3f} before, {self.after.auc:.3f} after)"

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``auc_before``, ``auc_after``; ``tpr_before``, ``tpr_after`` at 5% false positives."""
        both = {"before": self.before, "after": self.after}
        found = {f"auc_{when}": one.auc for when, one in both.items()}
        return as_facts({**found, **{f"tpr_{when}": one.tpr(0.05) for when, one in both.items()}})

    def summary(self) -> str:
        """How much less the attack finds, in words."""
        lines = [
            f"Membership by {self.before.method} ({self.attacker}), on the records as they are and on noisy centres:"
        ]
        for what, fpr in (("AUC", None), ("members found at 5% false positives", 0.05)):
            told = [
                f"{(one.auc if fpr is None else one.tpr(fpr)):.3f} ({low:.3f} to {high:.3f})"
                for one in (self.before, self.after)
                for low, high in [one.interval(fpr)]
            ]
            lines.append(f"  {what}: {told[0]} before, {told[1]} after (95% intervals)")
        return "\n".join(lines)

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        both = (self.before, self.after)
        told = {"score": "values", "id": "ids", "member": "members", "game": "games"}
        columns = {name: np.concatenate([getattr(one, held) for one in both]) for name, held in told.items()}
        return columns | {"model": np.repeat(["records", "noisy centres"], [len(one) for one in both])}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """Every score of both attacks: score, id, member, game, and which model was attacked."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to Parquet or JSON (:func:`datassay.load_result` reads it) or CSV (the table alone)."""
        header = {
            "kind": "leakage",
            "attacker": self.attacker,
            "method": self.before.method,
            "parameters": dict(self.before.parameters or {}),
            "seed": self.before.seed,
        }
        return save_columns(path, header, self._columns())

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw both ROC curves; returns the axes."""
        if ax is None:
            ax = new_axes(5, 5)
        check_axes(ax)
        self.before.plot(ax, "records")
        return self.after.plot(ax, "noisy centres")


def disclosure_leakage(
    X: object,
    y: object,
    game: Disclosure,
    *,
    attacker: Attacker = "outsider",
    k: int = 1,
    games: int = 48,
    targets: int | None = 100,
    shadows: int = 16,
    seed: int = 0,
    n_jobs: int | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Progress = None,
) -> Leakage:
    """What disclosure saves the owners: LiRA on a k-NN of the records, and on a k-NN of the centres a consumer has.

    The attacker knows a person's record and asks the model about it. Where the model holds the noisy centre instead,
    the record is no longer its own nearest neighbour.

    Parameters
    ----------
    X, y
        The records that the game was about (a table; y may then be None).
    game
        How it went; records that were never queried are left out.
    attacker
        ``"outsider"``: knows how the game was played but not the centres, and makes shadow models of noisy copies of
        their own. ``"insider"``: knows the centres (as the consumer does) and makes shadow models of these.
    k
        Of the k-NN under attack; 1 leaks the most.
    games, targets, shadows, seed, n_jobs, memory, progress
        As in :func:`datassay.membership_attack`.

    References
    ----------
    Mesana, thesis, §3.4.3. Carlini et al., Membership Inference Attacks From First Principles, 2022.
    Mathematics §7, §9.

    Examples
    --------
    >>> import datassay as da, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.uniform(size=(80, 2)), rng.uniform(size=(40, 2))
    >>> y, y_val = rng.integers(0, 2, 80), rng.integers(0, 2, 40)
    >>> game = da.disclosure_game(X, y, X_val, y_val, "random", share=1.0, t_max=3, target=1.0, bounds=(0, 1), seed=0)
    >>> leakage = da.disclosure_leakage(X, y, game, games=8, targets=40)
    >>> leakage.before.auc > leakage.after.auc
    True
    """
    if not isinstance(game, Disclosure):
        raise UsageError(f"game must be what disclosure_game returns, got {type(game).__name__}")
    _checks.choice("attacker", attacker, get_args(Attacker))
    points, labels = game.as_played(X, y)
    if points.shape != game.centres.shape:
        raise InputError(f"X must be the records of the game, {game.centres.shape}; got {points.shape}")
    rows = np.flatnonzero(game.received > 0)
    if len(rows) < 4:
        raise InputError(f"{len(rows)} records were queried; an attack needs at least 4")
    if not np.array_equal(labels, game.labels):
        raise InputError("y must be the labels of the records in the game, one for each")
    if targets is not None:
        targets = min(_checks.integer("targets", targets, at_least=2), len(rows))
    shadows = _checks.integer("shadows", shadows, at_least=2)
    own = None
    if attacker == "outsider":
        rng = np.random.default_rng([_checks.integer("seed", seed, at_least=0), 2**32])
        own = [_rehearsed(points[rows], game, game.received[rows, None], rng) for _ in range(shadows)]
    before, after = (
        membership_attack(
            points[rows], labels[rows], "lira", k, str(game.parameters["metric"]), held=held, shadow_held=theirs,
            games=games, targets=targets, shadows=shadows, seed=seed, ids=game.ids[rows], n_jobs=n_jobs, memory=memory,
            progress=progress,
        )
        for held, theirs in ((None, None), (game.centres[rows], own))
    )  # fmt: skip
    return Leakage(before, after, attacker)


def load_leakage(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> Leakage:
    """What :meth:`Leakage.save` wrote."""
    rows = columns["model"] == "records"
    before, after = (
        Attack(
            columns["score"][some].astype(np.float64),
            columns["id"][some],
            columns["member"][some].astype(bool),
            str(header["method"]),
            columns["game"][some].astype(np.int64),
            header["parameters"],
            header["seed"],
        )
        for some in (rows, ~rows)
    )
    return Leakage(before, after, str(header["attacker"]))


def _rehearsed(
    points: NDArray[np.float64], game: Disclosure, copies: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Centres of so many noisy copies, drawn at once: a sum of n Laplace variables is a difference of two Gamma(n)."""
    mechanism = game.mechanism
    noise = rng.gamma(copies, size=points.shape) - rng.gamma(copies, size=points.shape)
    return mechanism.from_unit(mechanism.to_unit(points) + noise / copies / mechanism.epsilon)
