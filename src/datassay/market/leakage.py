"""What a model of noisy centres gives away, compared with a model of the records themselves: LiRA before and after."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack, cast, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Attacker, Metric
from datassay._errors import InputError, UsageError
from datassay._run import Blocks, documented
from datassay._version import __version__
from datassay.attacks import Attack, membership_attack
from datassay.data import Labels, Points
from datassay.market.game import Disclosure
from datassay.results import Axes, Columns, Fact, Parameter, Result, as_facts, axes_on


@dataclass(frozen=True, eq=False)
class Leakage(Result):
    """The same membership attack on a k-NN of the records (``before``) and of their noisy centres (``after``).

    Its frame has every score of both attacks: score, id, member, game, and which model was attacked.
    """

    ASIDE: ClassVar = ("before", "after")

    before: Attack
    after: Attack
    attacker: str = "outsider"
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

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
            found = [
                f"{(one.auc if fpr is None else one.tpr(fpr)):.3f} ({low:.3f} to {high:.3f})"
                for one in (self.before, self.after)
                for low, high in [one.interval(fpr)]
            ]
            lines.append(f"  {what}: {found[0]} before, {found[1]} after (95% intervals)")
        return self._in_words(lines)

    def __len__(self) -> int:
        return len(self.before) + len(self.after)

    def _who(self) -> str:
        return "scores"

    def _columns(self) -> Columns:
        both = (self.before, self.after)
        parts = [one._columns() for one in both]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in ("score", "id", "member", "game")}
        return columns | {"model": np.repeat(["records", "noisy centres"], [len(one) for one in both])}

    def _header(self) -> dict[str, object]:
        before, after = self.before._header(), self.after._header()
        return {**before, **super()._header(), "before": before, "after": after}

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        rows = {"before": columns["model"] == "records", "after": columns["model"] != "records"}
        parts = {when: {name: column[some] for name, column in columns.items()} for when, some in rows.items()}
        made = {when: Attack._load(header.get(when, header), part) for when, part in parts.items()}  # both alike once
        return {**super()._fields(header, columns), **made}

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw both ROC curves; returns the axes. ``label`` stands before their names in the legend."""
        ax = axes_on(ax, 5, 5)
        start = "" if label is None else f"{label}, "
        self.before.plot(ax, f"{start}records")
        return self.after.plot(ax, f"{start}noisy centres")


@documented(membership_attack)
def disclosure_leakage(
    X: Points,
    y: Labels | None,
    game: Disclosure,
    *,
    attacker: Attacker = "outsider",
    k: int = 1,
    games: int = 48,
    targets: int | None = 100,
    shadows: int = 16,
    seed: int = 0,
    **run: Unpack[Blocks],
) -> Leakage:
    """What disclosure spares the owners: LiRA on a k-NN of the records, and on a k-NN of the centres a consumer has.

    The attacker knows a person's record and asks the model about it. If the model holds the noisy centre instead, the
    record is no longer its own nearest neighbour.

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
            points[rows], labels[rows], "lira", k, cast(Metric, game.parameters["metric"]), held=held,
            shadow_held=theirs, games=games, targets=targets, shadows=shadows, seed=seed, ids=game.ids[rows],
            **run,
        )
        for held, theirs in ((None, None), (game.centres[rows], own))
    )  # fmt: skip
    return Leakage(before, after, attacker, before.parameters, tuple(dict.fromkeys((*before.notes, *after.notes))))


def _rehearsed(
    points: NDArray[np.float64], game: Disclosure, copies: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Centres of so many noisy copies, drawn at once: a sum of n Laplace variables is a difference of two Gamma(n)."""
    mechanism = game.mechanism
    noise = rng.gamma(copies, size=points.shape) - rng.gamma(copies, size=points.shape)
    return mechanism.from_unit(mechanism.to_unit(points) + noise / copies / mechanism.epsilon)
