"""What to release: strategies on the plane of risk and utility, and the one to pick."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay.data import Table
from datassay.identity import reidentification_risk
from datassay.release import compare_releases, fidelity, make_release
from datassay.report.content import Block, Card, Facts, Figure, Grid, Kind, Number, Paragraph, Section
from datassay.report.figures import as_svg
from datassay.report.job import Job, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRATEGIES, UTILITY, RISK = "release-strategies", "release-utility", "reidentification-risk"
FULL = ("keep", "k=2", "k=4", "k=8", "k=16", "k=32", "remove=0.25", "copula")
QUICK = ("keep", "k=2", "k=8", "k=32", "copula")
REMOVALS = ("remove", "shapley", "waka")
KEPT = 0.9  # share of the utility that a strategy worth picking keeps
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Compared:
    """Strategies by name, risk and utility; of the data as they are first."""

    names: list[str]
    risk: Floats
    fidelity: Floats
    mcc: Floats | None
    people: int
    tested: int
    notes: tuple[str, ...]

    @property
    def utility(self) -> Floats:
        """What is weighed against risk: predictions of the label, or likeness where there is nothing to predict."""
        return self.fidelity if self.mcc is None or self.mcc[0] <= 0 else self.mcc

    @property
    def by_prediction(self) -> bool:
        return self.utility is self.mcc

    @property
    def front(self) -> NDArray[np.bool_]:
        safe, useful = -self.risk, self.utility
        better = (safe[:, None] >= safe) & (useful[:, None] >= useful)
        better &= (safe[:, None] > safe) | (useful[:, None] > useful)
        return np.asarray(~better.any(axis=0))

    @property
    def changes(self) -> NDArray[np.bool_]:
        """Which strategies change the records of those who stay; the data as they are count as well."""
        return np.array([name.partition("=")[0] not in REMOVALS for name in self.names])

    @property
    def pick(self) -> int:
        """Of those that keep most of the utility the one of least risk; the data as they are if nothing else does.

        Leaving people out helps those left out and nobody else: it is shown, and not picked.
        """
        enough = np.flatnonzero((self.utility >= KEPT * self.utility[0]) & self.changes)
        return int(enough[np.lexsort((-self.utility[enough], self.risk[enough]))[0]])


def releases(job: Job) -> Section:
    """The section about what to publish."""
    if len(job.sample) < 20:
        raise InputError(f"{len(job.sample)} records are too few to compare releases: it takes 20")
    strategies = _fitting(job)
    compared = _with_label(job, strategies) if job.sample.label is not None else _without_label(job, strategies)
    at = compared.pick
    name, risk = compared.names[at], compared.risk
    kept = compared.utility[at] / compared.utility[0] if compared.utility[0] > 0 else 1.0
    what = "predictive quality" if compared.by_prediction else "likeness to the original"
    facts: Facts = {
        "recommended_release": name,
        "risk_as_it_is": float(risk[0]),
        "risk_recommended": float(risk[at]),
        "utility_kept": float(kept),
        **{f"risk.{one}": float(number) for one, number in zip(compared.names, risk, strict=True)},
        **{f"fidelity.{one}": float(number) for one, number in zip(compared.names, compared.fidelity, strict=True)},
    }
    if compared.mcc is not None:
        facts |= {f"mcc.{one}": float(number) for one, number in zip(compared.names, compared.mcc, strict=True)}
    less = 1 - risk[at] / risk[0] if risk[0] > 0 else 0.0
    if at == 0:
        finding: tuple[str | Number, ...] = (
            f"None of {len(compared.names) - 1} ways to change the data keeps {KEPT:.0%} of its {what}; as it is, the "
            "mean risk of being found is ", Number(f"{risk[0]:.2f}", RISK), ".",
        )  # fmt: skip
        changes = np.flatnonzero(compared.changes)[1:]
        cheapest = int(changes[np.argmax(compared.utility[changes])]) if len(changes) else 0
        advice: tuple[str | Number, ...] = (
            f"Decide what counts more: {compared.names[cheapest]} costs least, ",
            Number(percent(1 - compared.utility[cheapest] / compared.utility[0]), UTILITY), f" of the {what}.",
        )  # fmt: skip
    else:
        finding = (
            f"With {_told(name)} ({name}) the risk of being found falls by ", Number(percent(less), RISK), ", and ",
            Number(percent(min(kept, 1.0)), UTILITY), f" of the {what} is kept.",
        )  # fmt: skip
        advice = (f"Of {len(compared.names)} ways to release the data, pick {name}.",)
    return Section(
        finding=finding,
        advice=advice,
        cards=(
            Card("pick", Number(name, STRATEGIES), _told(name)),
            Card("risk of being found", Number(f"{risk[at]:.2f}", RISK), f"as it is: {risk[0]:.2f}"),
            Card(f"{what} kept", Number(percent(min(kept, 1.0)), UTILITY)),
        ),
        blocks=_blocks(job, compared, at, what),
        unseen=(
            "Attacks by matching with another data set, and attributes that are not in the table.",
            "Differential privacy: none of these strategies promises it. k-anonymity hides a person among k alike; it "
            "does not bound what is learned from the release.",
            *((f"CTGAN and TVAE: {'they take minutes; ' if not job.quick else ''}datassay release --strategies "
               "keep,ctgan,tvae with the extra «synthesis».",)),
            *((f"{len(job.table) - len(job.sample):,} records that are not in the sample; among more people one hides "
               "better.",) if job.sampled else ()),
        ),
        facts=facts,
    )  # fmt: skip


def _fitting(job: Job) -> tuple[str, ...]:
    """Strategies that the table is large enough for; the data as they are come first."""
    if job.strategies is not None:
        return ("keep", *(name for name in job.strategies if name != "keep"))
    n = 0.7 * len(job.sample)
    wanted = QUICK if job.quick else FULL
    return tuple(name for name in wanted if not name.startswith("k=") or 2 * int(name[2:]) <= n)


def _people(job: Job, strategies: int) -> int:
    attributes = len(job.sample.features) + 1 if job.attacked is None else len(job.attacked)
    return job.people((6 if job.quick else 30) / strategies, 30, 1000, attributes)


def _with_label(job: Job, strategies: tuple[str, ...]) -> _Compared:
    found = compare_releases(
        job.sample, strategies=strategies, k=job.k, seed=job.seed, columns=job.attacked,
        people=min(_people(job, len(strategies)), int(0.7 * len(job.sample))),
        n_jobs=job.n_jobs, progress=job.stages.part("releases"),
    )  # fmt: skip
    tested = len(job.sample) - round(0.85 * len(job.sample))
    return _Compared(
        found.ids.tolist(), found.values, found.fidelity, found.mcc, len(found.people), tested, found.notes
    )


def _without_label(job: Job, strategies: tuple[str, ...]) -> _Compared:
    table: Table = job.sample
    show = job.stages.part("releases")
    people = min(_people(job, len(strategies)), len(table))
    risks, alike, notes = [], [], []
    for at, name in enumerate(strategies):
        if name.partition("=")[0] in ("shapley", "waka"):
            raise InputError(f"strategy {name!r} removes by value, and the table has no label: name it with --label")
        made = make_release(name, table, seed=job.seed)
        risks.append(
            reidentification_risk(
                table,
                made,
                columns=job.attacked,
                people=None if people == len(table) else people,
                seed=job.seed,
                n_jobs=job.n_jobs,
            ).mean()
        )
        alike.append(fidelity(table, made))
        notes += [f"{name}: {note}" for note in made.notes]
        show(at + 1, len(strategies))
    return _Compared(list(strategies), np.array(risks), np.array(alike), None, people, 0, tuple(notes))


def _told(name: str) -> str:
    """A strategy in words."""
    kind, _, size = name.partition("=")
    if kind == "k":
        return f"groups of {size} people alike"
    if kind == "remove":
        return f"{float(size):.0%} left out at random"
    if kind in ("shapley", "waka"):
        return f"the least valuable {float(size):.0%} left out"
    return {"keep": "the data as they are"}.get(kind, "synthetic people")


def _blocks(job: Job, compared: _Compared, at: int, what: str) -> tuple[Block, ...]:
    useful, front = compared.utility, compared.front
    error = 2 * (1 - useful[0] ** 2) / np.sqrt(compared.tested) if compared.by_prediction else 0.0
    columns = ["strategy", "what it does", "risk", "likeness"]
    if compared.mcc is not None:
        columns.append("prediction (MCC)")
    columns.append("best trade-off")
    rows = []
    for i, name in enumerate(compared.names):
        row = [name, _told(name), f"{compared.risk[i]:.3f}", f"{compared.fidelity[i]:.3f}"]
        if compared.mcc is not None:
            row.append(f"{compared.mcc[i]:.3f}")
        rows.append((*row, ("pick" if i == at else "yes") if front[i] or i == at else ""))
    numbers: list[Kind] = ["number" for _ in columns[3:]]
    kinds: tuple[Kind, ...] = ("text", "text", *numbers, "text")
    sure = (
        f" Labels of {compared.tested:,} people were predicted: differences of MCC under {error:.2f} are within chance."
        if compared.by_prediction
        else ""
    )

    def draw(axes: "Axes") -> None:
        order = np.flatnonzero(front)[np.argsort(useful[front], kind="stable")]
        safe = 1 - compared.risk
        axes.plot(useful[order], safe[order], color="#ee7733", zorder=1, label="no other is better in both")
        axes.scatter(useful, safe, color=["#ee7733" if mark else "#4477aa" for mark in front], zorder=2)
        axes.scatter(useful[at], safe[at], s=120, facecolors="none", edgecolors="#cc3311", zorder=3, label="the pick")
        for i, name in enumerate(compared.names):
            axes.annotate(name, (useful[i], safe[i]), textcoords="offset points", xytext=(6, 5), fontsize=9)
        axes.margins(x=0.18, y=0.12)
        axes.set_xlabel("predictions: Matthews' correlation" if compared.by_prediction else "likeness to the original")
        axes.set_ylabel("safety: 1 − mean risk")
        axes.legend(frameon=False)

    return (
        Paragraph(
            (
                "Each strategy was applied to the data, ", Number(f"{compared.people:,}", RISK), " people were "
                "searched for in the result, and the result was compared with the original",
                *((" and used to predict people who are in neither",) if compared.mcc is not None else ()),
                f". The pick is the strategy of least risk among those that keep {KEPT:.0%} of the {what}; leaving "
                "people out helps those left out and nobody else, so it is shown and not picked.",
            )
        ),
        Figure(
            f"{compared.names[at]} is the pick: risk {compared.risk[0]:.2f} → {compared.risk[at]:.2f}",
            as_svg(draw, 3.6),
            "Up is safer, right is more useful." + sure,
            STRATEGIES,
        ),
        Grid("Strategies", tuple(columns), tuple(rows), kinds, STRATEGIES, "; ".join(compared.notes[:4])),
    )  # fmt: skip
