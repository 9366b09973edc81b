"""What an attack found out: one score for each target, whether it was a member, and how well the two agree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay._version import __version__
from datassay.attacks.figures import draw_roc
from datassay.results import Axes, Fact, Floats, Parameter, PerRecord, as_facts, axes_on


def auc(scores: NDArray[np.floating[Any]], members: NDArray[np.bool_]) -> float:
    """Chance that a member scores higher than a non-member, ties counting half.

    >>> import numpy as np
    >>> auc(np.array([3.0, 2.0, 2.0, 1.0]), np.array([True, True, False, False]))
    0.875
    """
    from scipy.stats import rankdata

    inside = int(members.sum())
    outside = len(members) - inside
    if inside == 0 or outside == 0:
        raise InputError("an attack needs members and non-members among its targets")
    return float((rankdata(scores)[members].sum() - inside * (inside + 1) / 2) / (inside * outside))


def tpr_at(scores: NDArray[np.floating[Any]], members: NDArray[np.bool_], fpr: float) -> float:
    """The largest share of members above a threshold that at most ``fpr`` of the non-members exceed.

    >>> import numpy as np
    >>> tpr_at(np.array([5.0, 4.0, 3.0, 2.0]), np.array([True, False, True, False]), 0.0)
    0.5
    """
    fpr = _checks.number("fpr", fpr, at_least=0, at_most=1)
    if members.all() or not members.any():
        raise InputError("an attack needs members and non-members among its targets")
    outside = np.sort(scores[~members])[::-1]
    allowed = int(np.floor(fpr * len(outside) + 1e-9))
    if allowed >= len(outside):
        return 1.0
    return float((scores[members] > outside[allowed]).mean())


_Game = tuple[Floats, NDArray[np.bool_]]


def _measured(game: _Game, fpr: float | None) -> float:
    return auc(*game) if fpr is None else tpr_at(*game, fpr)


def _pooled(games: list[_Game]) -> _Game:
    return np.concatenate([scores for scores, _ in games]), np.concatenate([members for _, members in games])


@dataclass(frozen=True, eq=False)
class Attack(PerRecord):
    """Scores of an attack, one for each target of each game; the higher, the more it looks like a member.

    Attributes
    ----------
    values
        The scores.
    ids, members, games
        Which record each score is about, whether it was a member, and in which game (0, 1, …).
    method, parameters, seed, notes, version
        How the scores were obtained.

    Examples
    --------
    >>> import datassay as da, numpy as np
    >>> attack = da.Attack(np.array([2.0, 1.0, 0.0]), np.arange(3), np.array([True, False, False]), "example")
    >>> attack.auc
    1.0
    """

    ROWS: ClassVar = "targets"
    COLUMNS: ClassVar = {"id": "ids", "score": "values", "member": "members", "game": "games"}

    values: Floats
    ids: NDArray[np.generic]
    members: NDArray[np.bool_]
    method: str
    games: NDArray[np.int64] | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    seed: int | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __post_init__(self) -> None:
        if self.games is None:
            object.__setattr__(self, "games", np.zeros(len(self.values), np.int64))
        super().__post_init__()

    def __repr__(self) -> str:
        both = self.members.any() and not self.members.all()
        return f"Attack({self.method}: {len(self):,} targets{f', AUC {self.auc:.3f}' if both else ''})"

    def _by_game(self) -> list[_Game]:
        assert self.games is not None
        games = [(self.values[self.games == g], self.members[self.games == g]) for g in np.unique(self.games)]
        # Games with few targets may have members only, or none: they tell nothing.
        telling = [(scores, members) for scores, members in games if members.any() and not members.all()]
        return telling or [(self.values, self.members)]

    @property
    def auc(self) -> float:
        """Area under the ROC curve, the mean over games; 0.5 is guessing."""
        return float(np.mean([auc(*game) for game in self._by_game()]))

    def tpr(self, fpr: float) -> float:
        """Share of members found when at most ``fpr`` of the non-members are accused, all games taken together.

        A single game has too few non-members to show a low rate.
        """
        return tpr_at(self.values, self.members, fpr)

    def spread(self, fpr: float | None = None) -> float:
        """Standard deviation over games of the AUC, or of the true-positive rate at ``fpr``."""
        return float(np.std([_measured(game, fpr) for game in self._by_game()]))

    def interval(
        self, fpr: float | None = None, confidence: float = 0.95, repeats: int = 1000, seed: int = 0
    ) -> tuple[float, float]:
        """A bootstrap interval of the AUC, or of the true-positive rate at ``fpr``.

        Games are drawn again with replacement; within a single game, its targets are.
        """
        confidence = _checks.number("confidence", confidence, above=0, below=1)
        repeats = _checks.integer("repeats", repeats, at_least=10)
        rng = np.random.default_rng(_checks.integer("seed", seed, at_least=0))
        games = self._by_game()

        drawn = np.empty(repeats)
        if len(games) > 1 and fpr is not None:
            for at in range(repeats):
                again = rng.integers(0, len(games), len(games))
                drawn[at] = tpr_at(*_pooled([games[g] for g in again]), fpr)
        elif len(games) > 1:
            each = np.array([auc(*game) for game in games])
            drawn = each[rng.integers(0, len(each), (repeats, len(each)))].mean(axis=1)
        else:
            scores, members = games[0]
            inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
            for at in range(repeats):
                again = np.concatenate([rng.choice(inside, len(inside)), rng.choice(outside, len(outside))])
                drawn[at] = _measured((scores[again], members[again]), fpr)
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
        return float(low), float(high)

    def success_rates(self, threshold: float | None = None) -> tuple[NDArray[np.generic], Floats]:
        """For each record, how often the attack is right about it: ids, and rates; 0.5 is guessing.

        It says «member» where the score is above ``threshold``, and a score at the threshold counts half. Left out, the
        threshold is 0 for likelihood ratios (``lira``) and the median score of the game otherwise. A rate is the mean
        of that over games with the record in and that over games with it out: how often it happened to be in says
        nothing. Attacks on all records in every game (``targets=None``) give the best estimates.
        """
        assert self.games is not None
        if threshold is None and self.method == "lira":
            threshold = 0.0
        threshold = threshold if threshold is None else _checks.number("threshold", threshold)
        guess = np.empty(len(self))
        for g in np.unique(self.games):
            rows = self.games == g
            limit = float(np.median(self.values[rows])) if threshold is None else threshold
            guess[rows] = (1.0 + np.sign(self.values[rows] - limit)) / 2
        right = np.where(self.members, guess, 1 - guess)
        names, at = np.unique(self.ids, return_inverse=True)
        rates = np.zeros(len(names))
        for kind in (True, False):
            rows = self.members == kind
            count = np.bincount(at[rows], minlength=len(names))
            total = np.bincount(at[rows], right[rows], minlength=len(names))
            rates += np.where(count > 0, total / np.maximum(count, 1), 0.5) / 2
        return names, rates

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``targets``, ``members`` among them, ``games``; ``auc``, with ``auc_low`` and ``auc_high`` of its 95% interval;
        ``tpr.0.05``, ``tpr.0.01`` and ``tpr.0.001``, members found at so many false positives. None where there are
        too few non-members to say, or only members.
        """
        outside = int((~self.members).sum())
        both = 0 < outside < len(self)
        low, high = self.interval() if both else (None, None)
        rates = {f: self.tpr(f) if both and f * outside >= 1 else None for f in (0.05, 0.01, 0.001)}
        found = {"targets": len(self), "members": len(self) - outside, "games": len(self._by_game())}
        curve = {"auc": self.auc if both else None, "auc_low": low, "auc_high": high}
        return as_facts({**found, **curve, **{f"tpr.{rate:g}": share for rate, share in rates.items()}})

    def summary(self) -> str:
        """How well the attack works, in words."""
        low, high = self.interval()
        games = len(self._by_game())
        lines = [
            f"{self.method}: {len(self):,} targets in {games} game{'s' * (games > 1)}, "
            f"{int(self.members.sum()):,} of them members.",
            f"AUC {self.auc:.3f} (95% interval {low:.3f} to {high:.3f}; guessing is 0.5).",
        ]
        for fpr in (0.05, 0.01, 0.001):
            if fpr * int((~self.members).sum()) < 1:
                lines.append(f"There are too few non-members to show {fpr:.1%} false positives.")
                continue
            low, high = self.interval(fpr)
            lines.append(
                f"Members found at {fpr:.1%} false positives: {self.tpr(fpr):.1%} ({low:.1%} to {high:.1%}; guessing "
                f"finds {fpr:.1%})."
            )
        return self._in_words(lines)

    def plot(self, ax: Axes | None = None, label: str | None = None) -> Axes:
        """Draw the ROC curve of all games, both axes logarithmic; returns the axes. Several attacks can share them."""
        least = 0.5 / max(int((~self.members).sum()), 1)
        rates = np.unique(np.concatenate([np.geomspace(least, 1, 200), [1.0]]))
        everything = _pooled(self._by_game())
        found = np.array([tpr_at(*everything, rate) for rate in rates])
        return draw_roc(axes_on(ax, 5, 5), rates, found, f"{label or self.method} (AUC {self.auc:.3f})")
