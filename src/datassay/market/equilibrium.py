"""The owner chooses ε and T_max, the consumer how much to explore: every pairing is played out."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import IO, Any, ClassVar, Unpack, get_args

import numpy as np

from datassay import _checks
from datassay._choices import Measure, Metric, Unseen, Utility
from datassay._errors import InputError, UsageError
from datassay._run import Blocks, Schedule, documented
from datassay._version import __version__
from datassay._work import Bar, chunks, in_order, thread_count
from datassay.data import Ids, Labels, PathLike, Points
from datassay.market.disclosure import disclosure_game
from datassay.market.figures import draw_lines, draw_map
from datassay.market.game import INTERRUPTED, MOST_QUERIES, Bounds, GameRules, GameSetup, inputs_of, play
from datassay.market.pricing import gini
from datassay.privacy import fingerprint
from datassay.results import Axes, Fact, Floats, Parameter, Result, as_facts, axes_on

MEASURES: tuple[Measure, ...] = get_args(Measure)
_SHOWN = {
    "reached": "share of games that reach the target",
    "gini": "Gini of spending",
    "budget": "budget spent (ε a feature × queries)",
    "spearman": "rank correlation of Q with true values",
    "inclusiveness": "share of records queried",
    "utility": "utility at the end",
    "queries": "queries",
}


@dataclass(frozen=True, eq=False)
class Equilibrium(Result):
    """Games at every ε, T_max and exploration c, some times over: one entry a game.

    Attributes
    ----------
    epsilon, t_max, exploration, repeat
        The setting of each game.
    reached, queries, budget, utility, gini, inclusiveness, spearman
        How it ended: whether the target was reached, queries made, budget spent (ε a feature × queries), utility, Gini
        coefficient of spending, share of records queried, rank correlation of Q with true values.
    target, parameters, seed, notes, version
        The consumer's target, and how the games were played.
    """

    COLUMNS: ClassVar = {name: name for name in ("epsilon", "t_max", "exploration", "repeat", *MEASURES)}

    epsilon: Floats
    t_max: Floats
    exploration: Floats
    repeat: Floats
    reached: Floats
    queries: Floats
    budget: Floats
    utility: Floats
    gini: Floats
    inclusiveness: Floats
    spearman: Floats
    target: float
    parameters: Mapping[str, Parameter]
    seed: int
    notes: tuple[str, ...] = ()
    version: str = __version__

    def _who(self) -> str:
        return "games"

    def __repr__(self) -> str:
        return f"Equilibrium({len(self):,} games, {self.reached.mean():.0%} of them reach {self.target:.4g})"

    def table(self, what: str = "reached", epsilon: float | None = None) -> tuple[Floats, Floats, Floats]:
        """Means over repeats: T_max (rows), exploration (columns), and the table; ε may be left out if there is one.

        ``budget`` and ``queries`` are those of games that reached the target, not a number where none did.
        """
        _checks.choice("what", what, MEASURES)
        here = self.epsilon == self._one(epsilon)
        rows, columns = np.unique(self.t_max[here]), np.unique(self.exploration[here])
        found = np.full((len(rows), len(columns)), math.nan)
        for (i, t_max), (j, c) in product(enumerate(rows), enumerate(columns)):
            cell = here & (self.t_max == t_max) & (self.exploration == c)
            if what in ("budget", "queries"):
                cell &= self.reached > 0
            values = getattr(self, what)[cell]
            if np.isfinite(values).any():
                found[i, j] = np.nanmean(values)
        return rows, columns, found

    def _one(self, epsilon: float | None) -> float:
        known = np.unique(self.epsilon)
        listed = ", ".join(f"{one:g}" for one in known)
        if epsilon is None and len(known) > 1:
            raise UsageError(f"name one epsilon of {listed}")
        one = float(known[0]) if epsilon is None else _checks.number("epsilon", epsilon, above=0)
        if one not in known:
            raise UsageError(f"there is no epsilon={one:g}; there are {listed}")
        return one

    def best_response(self, epsilon: float, t_max: int, chance: float = 1.0) -> tuple[float, float] | None:
        """The consumer's choice: the exploration with the least mean budget, and that budget.

        Of those that reach the target in a share ``chance`` of the repeats at least; None if none do. Games that fail
        count towards the budget.
        """
        chance = _checks.number("chance", chance, above=0, at_most=1)
        here = (self.epsilon == epsilon) & (self.t_max == t_max)
        options = []
        for c in np.unique(self.exploration[here]).tolist():
            cell = here & (self.exploration == c)
            if self.reached[cell].mean() >= chance:
                options.append((float(self.budget[cell].mean()), c))
        return min(options)[::-1] if options else None

    def solution(self, chance: float = 1.0) -> dict[str, float] | None:
        """The owner leads: ε and T_max for which the consumer's best response spends the most; None if none succeeds.

        max over (ε, T_max) of min over c of the mean budget to the target; of equals the most even in its spending.
        """
        best: dict[str, float] | None = None
        for epsilon, t_max in sorted(set(zip(self.epsilon.tolist(), self.t_max.tolist(), strict=True))):
            answer = self.best_response(epsilon, int(t_max), chance)
            if answer is None:
                continue
            c, spent = answer
            cell = (self.epsilon == epsilon) & (self.t_max == t_max) & (self.exploration == c) & (self.reached > 0)
            uneven = float(self.gini[cell].mean())
            if best is None or (spent, -uneven) > (best["budget"], -best["gini"]):
                best = {"epsilon": epsilon, "t_max": t_max, "exploration": c, "budget": spent, "gini": uneven}
        return best

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``games``, ``share_reached``, ``target``; and of the :meth:`solution` ``best_epsilon``, ``best_t_max``,
        ``best_exploration``, ``best_budget`` and ``best_gini``, None if no setting reaches the target every time.
        """
        solution = self.solution() or {}
        best = {f"best_{n}": solution.get(n) for n in ("epsilon", "t_max", "exploration", "budget", "gini")}
        return as_facts({"games": len(self), "share_reached": self.reached.mean(), "target": self.target, **best})

    def summary(self) -> str:
        """Who would choose what, in words."""
        lines = [
            f"{len(self):,} games at {len(np.unique(self.epsilon))} ε × {len(np.unique(self.t_max))} T_max × "
            f"{len(np.unique(self.exploration))} explorations: {self.reached.mean():.1%} reach the target of "
            f"{self.target:.4f}."
        ]
        found = self.solution()
        if found is None:
            lines.append("No setting reaches the target every time: raise ε or T_max, or lower the target.")
        else:
            lines.append(
                f"The owner does best with ε = {found['epsilon']:g} and T_max = {found['t_max']:g}: the consumer "
                f"answers with c = {found['exploration']:g} and spends {found['budget']:.6g} with a Gini coefficient "
                f"of {found['gini']:.3f}."
            )
        for epsilon in np.unique(self.epsilon):
            rows, columns, share = self.table("reached", float(epsilon))
            lines.append(f"Share of games that reach the target, ε = {epsilon:g} (rows T_max, columns c):")
            lines.append("  T_max " + " ".join(f"{c:>8g}" for c in columns))
            lines += [f"  {t:>5g} " + " ".join(f"{x:>8.2f}" for x in row) for t, row in zip(rows, share, strict=True)]
        return self._in_words(lines)

    def plot(
        self, what: str = "reached", epsilon: float | None = None, ax: Axes | None = None, *, label: str | None = None
    ) -> Axes:
        """Draw a map of T_max against exploration, or for ``budget`` and ``queries`` a curve for every exploration.

        Returns the axes. With a ``label``, which stands before their names in the legend, curves are drawn of anything,
        so that several searches can share the axes.
        """
        rows, columns, found = self.table(what, epsilon)
        ax = axes_on(ax, 6, 4.5)
        to_target = what in ("budget", "queries")
        if to_target or label is not None:
            start = "" if label is None else f"{label}, "
            draw_lines(ax, [(f"{start}c = {c:g}", rows, found[:, j]) for j, c in enumerate(columns)], "T_max", 4)
            ax.set_ylabel(f"{_SHOWN[what]} to the target" if to_target else _SHOWN[what])
        else:
            draw_map(ax, rows.tolist(), columns.tolist(), found, lowest=-1.0 if what == "spearman" else 0.0)
        ax.set_title(f"{_SHOWN[what][0].upper()}{_SHOWN[what][1:]}, ε = {self._one(epsilon):g}", loc="left")
        return ax


Cell = tuple[float, int, float, int]


@documented(disclosure_game)
def search_equilibrium(
    X: Points,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    epsilons: Sequence[float] = (1.0,),
    t_maxes: Sequence[int] = (10, 20, 50),
    explorations: Sequence[float] = (0.0, 0.001, 0.01, 0.1),
    target: float | None = None,
    *,
    repeats: int = 3,
    k: int = 5,
    metric: Metric = "euclidean",
    utility: Utility = "votes",
    bounds: Bounds = "validation",
    learning_rate: float = 0.1,
    unseen: Unseen = "origin",
    resume: PathLike | None = None,
    seed: int = 0,
    ids: Ids | None = None,
    **run: Unpack[Blocks],
) -> Equilibrium:
    """Rehearse the disclosure game at every (ε, T_max) of the owner and every exploration c of the bandit.

    The owner leads with ε and T_max, the consumer follows with c. There is no formula for the outcome, so every pairing
    is played ``repeats`` times, each repeat with the same noise at every setting. ``result.solution()`` is the
    Stackelberg equilibrium on the grid; ``plot("reached")``, ``plot("gini")`` and ``plot("budget")`` are the maps.

    Parameters
    ----------
    epsilons, t_maxes, explorations
        What to try.
    repeats, seed
        Games at each setting, and the seed of their noise.
    resume
        A file that keeps every game as it ends. Stopped and called again, with more to try perhaps, the search goes on
        from there.
    n_jobs
        Threads, each of which plays games of its own; all cores if left out. They cannot change the result.

    References
    ----------
    Mesana, thesis, §3.4.2 (hyperparameter search, figures 3.10 to 3.12). Mathematics §9.

    Examples
    --------
    >>> import datassay as da
    >>> train, validation = da.census(80, seed=2).split(0.5)
    >>> found = da.search_equilibrium(
    ...     train, None, validation, None, [2.0], [1, 40], [0.1], target=0.7, repeats=2, bounds=(-3, 3)
    ... )
    >>> found.table("reached")[2].tolist()
    [[0.0], [1.0]]
    """
    for name, given in (("epsilons", epsilons), ("t_maxes", t_maxes), ("explorations", explorations)):
        _checks.not_one_string(name, given, "numbers")
        if not _checks.is_list_of_numbers(given) or len(set(given)) < len(given):
            raise UsageError(f"{name} must be a list of different numbers, got {given!r}")
    cells: list[Cell] = [
        (
            _checks.number("each of epsilons", epsilon, above=0),
            _checks.integer("each of t_maxes", t_max, at_least=1, at_most=MOST_QUERIES),
            _checks.number("each of explorations", c, at_least=0),
            repeat,
        )
        for epsilon, t_max, c in product(epsilons, t_maxes, explorations)
        for repeat in range(_checks.integer("repeats", repeats, at_least=1))
    ]
    rules = GameRules(1, target, k, metric, utility, unseen, every=2**62, learning_rate=learning_rate)
    seed = _checks.integer("seed", seed, at_least=0)
    threads = thread_count(run.get("n_jobs"))
    setup = GameSetup.of(inputs_of(X, y, X_val, y_val, ids), 1.0, bounds, rules.metric, run)
    for epsilon in epsilons:
        setup.at(epsilon).check_reach()
    full, worth = setup.secrets(rules)
    goal = full if rules.target is None else rules.target
    alone = replace(setup, run=Schedule(1, max(1, setup.run.memory // threads), here=True))

    def game(cell: Cell) -> dict[str, float]:
        epsilon, t_max, c, repeat = cell
        here = alone.at(epsilon)
        owner = here.owner(t_max, np.random.default_rng([seed, repeat]), None)
        played = play(here, replace(rules, t_max=t_max, exploration=c), owner, goal, None, worth, None)
        if played.outcome == INTERRUPTED:  # half a game is none, and the search ends with it
            raise KeyboardInterrupt
        queries = int(owner.queries.sum())
        return {
            "reached": float(played.utility >= goal),
            "queries": float(queries),
            "budget": epsilon * queries,
            "utility": played.utility,
            "gini": gini(owner.queries),
            "inclusiveness": float((owner.queries > 0).mean()),
            "spearman": played.table.trajectory()["spearman"][-1],
        }

    parts = (setup.points, setup.inputs.labels, setup.points_val, setup.inputs.labels_val)
    mechanism = (setup.mechanism.low, setup.mechanism.high)
    asked = [__version__, rules.k, metric, utility, unseen, rules.learning_rate, goal, seed]
    common = fingerprint(*parts, *mechanism, asked)  # the data are hashed once
    keys = [fingerprint(common, list(cell)) for cell in cells]
    with _Diary(resume) as diary:
        left = [at for at, key in enumerate(keys) if key not in diary.known]
        with Bar(run.get("progress"), len(cells), "games") as report:
            report(len(cells) - len(left))
            games = in_order(lambda one: game(cells[left[one.start]]), chunks(len(left), 1), threads, report)
            for at, ended in zip(left, games, strict=True):
                diary.write(keys[at], ended)
    settings = zip(("epsilon", "t_max", "exploration", "repeat"), np.array(cells, np.float64).T, strict=True)
    measured: dict[str, Any] = {
        name: np.array([diary.known[key][name] for key in keys], np.float64) for name in MEASURES
    }
    notes = list(setup.inputs.notes)
    if resume is not None and len(left) < len(cells):
        notes.append(f"{len(cells) - len(left)} of {len(cells)} games were taken from {str(resume)!r}")
    if rules.target is None:
        notes.append("the target is what the records as they are would give")
    parameters: dict[str, Parameter] = {
        "k": rules.k, "metric": metric, "utility": utility, "learning_rate": rules.learning_rate, "unseen": unseen,
        "bounds": setup.bounds, "repeats": repeats,
    }  # fmt: skip
    return Equilibrium(**dict(settings), **measured, target=goal, parameters=parameters, seed=seed, notes=tuple(notes))


class _Diary:
    """Games that ended, and their file, if there is one, with a line of JSON each; a last line cut short is dropped."""

    def __init__(self, path: PathLike | None) -> None:
        self.path = None if path is None else Path(path)
        self.known: dict[str, dict[str, float]] = {}
        self._file: IO[str] | None = None

    def __enter__(self) -> "_Diary":
        if self.path is None:
            return self
        if not self.path.absolute().parent.is_dir() or self.path.is_dir():
            raise UsageError(f"games cannot be kept in {str(self.path)!r}: name a file in a folder that exists")
        if self.path.exists():
            text = self.path.read_bytes()
            whole, cut, last = text.rpartition(b"\n")
            foreign = InputError(f"{str(self.path)!r} holds something other than games; it was left as it is")
            start = b'{"key": "'  # of every line, whole or cut short
            try:
                for line in whole.splitlines():
                    self._keep(line)
                with suppress(json.JSONDecodeError):
                    self._keep(last or b"{")
                    whole, cut, last = text, b"", b""  # whole after all, but for the end of the line
            except (ValueError, KeyError, TypeError, AttributeError):
                raise foreign from None
            if not (last.startswith(start) or start.startswith(last)):
                raise foreign
            os.truncate(self.path, len(whole + cut))
            if whole and not cut:
                with self.path.open("ab") as file:
                    file.write(b"\n")
        self._file = self.path.open("a", encoding="utf-8")
        return self

    def _keep(self, line: bytes) -> None:
        kept = json.loads(line)
        ended = {name: math.nan if x is None else float(x) for name, x in kept["game"].items()}
        self.known[kept["key"]] = {name: ended[name] for name in MEASURES}

    def write(self, key: str, ended: dict[str, float]) -> None:
        """Keep a game, in the file at once."""
        self.known[key] = ended
        if self._file is not None:
            plain = {name: None if math.isnan(x) else x for name, x in ended.items()}
            self._file.write(json.dumps({"key": key, "game": plain}) + "\n")
            self._file.flush()

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.close()
