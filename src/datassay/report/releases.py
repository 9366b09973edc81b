"""What to release: strategies on the plane of risk and utility, and the one to pick."""

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from datassay._checks import counted
from datassay._errors import InputError, UsageError
from datassay.identity import reidentification_risk
from datassay.release import compare_releases, fidelity, make_release, pareto_front
from datassay.report.content import Block, Card, Facts, Figure, Grid, Kind, Number, Section, Text, paragraph, sentence
from datassay.report.figures import as_svg
from datassay.report.job import Job, named, percent
from datassay.results import BLUE, ORANGE, RED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRATEGIES, UTILITY, RISK = "release-strategies", "release-utility", "reidentification-risk"
FULL = ("keep", "k=2", "k=4", "k=8", "k=16", "k=32", "remove=0.25", "copula")
QUICK = ("keep", "k=2", "k=8", "k=32", "copula")
REMOVALS = ("remove", "shapley", "waka")
KEPT = 0.9  # share of the utility that a strategy worth picking keeps
SPLITS = 3  # of the data into those released and those predicted: one alone is a matter of luck
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Compared:
    """Strategies by name (the data as they are first); risk, likeness and predictions, a row for each split."""

    names: list[str]
    risk: Floats
    highest: Floats
    alike: Floats
    mcc: Floats | None
    people: int
    tested: int
    notes: tuple[str, ...]

    @property
    def by_prediction(self) -> bool:
        """Whether labels can be predicted at all: then that is the utility, and likeness otherwise."""
        return self.mcc is not None and float(self.mcc[:, 0].mean()) > self.error

    @property
    def utility(self) -> Floats:
        """What is weighed against risk, on every split."""
        return self.mcc if self.mcc is not None and self.by_prediction else self.alike

    @property
    def error(self) -> float:
        """Up to what difference two means of Matthews' correlation differ by chance, about.

        Of a correlation of yes/no answers about √((1 − ρ²)/n), also where ρ is near 1; twice that.
        """
        if self.mcc is None:
            return 0.0
        n = max(1, self.tested * len(self.mcc))
        return float(2 * np.sqrt(max(1 - float(self.mcc[:, 0].mean()) ** 2, 1 / n) / n))

    @property
    def changes(self) -> NDArray[np.bool_]:
        """Which strategies change the records of those who stay, and leave something that is like the original."""
        kinds = np.array([name.partition("=")[0] for name in self.names])
        return ~np.isin(kinds, ("keep", *REMOVALS))

    def pick(self, split: int | None = None) -> int | None:
        """Of the changes that keep most of the utility the one of least risk, if that is less than as it is.

        Leaving people out helps those left out and nobody else: it is shown, and not picked. Nor is what is less like
        the original than random values would be.
        """
        rows = slice(None) if split is None else slice(split, split + 1)
        useful, risk, alike = (a[rows].mean(axis=0) for a in (self.utility, self.risk, self.alike))
        enough = np.flatnonzero((useful >= KEPT * useful[0]) & (risk < risk[0]) & (alike > 0) & self.changes)
        return int(enough[np.lexsort((-useful[enough], risk[enough]))[0]]) if len(enough) else None


def releases(job: Job) -> Section:
    """The section about what to publish."""
    if len(job.sample) < 20:
        raise InputError(f"{counted(len(job.sample), 'record')}: too few to compare releases, which takes 20")
    strategies = _fitting(job)
    compared = _with_label(job, strategies) if job.sample.label is not None else _without_label(job, strategies)
    at = compared.pick()
    risk, useful = compared.risk.mean(axis=0), compared.utility.mean(axis=0)
    what = "predictive quality" if compared.by_prediction else "likeness to the original"
    facts: Facts = {"recommended_release": None if at is None else compared.names[at], "risk_as_it_is": float(risk[0])}
    if at is not None:
        kept = float(useful[at] / useful[0])
        facts |= {"risk_recommended": float(risk[at]), "utility_kept": kept}
        finding, advice = _picked(compared, at, what, kept)
        cards: tuple[Card, ...] = (
            Card("pick", Number(compared.names[at], STRATEGIES), _in_words(compared.names[at])),
            Card("mean risk of being found", Number(f"{risk[at]:.2f}", RISK), f"as it is: {risk[0]:.2f}"),
            Card(f"{what} kept", Number(percent(min(kept, 1.0)), UTILITY)),
        )
    else:
        finding, advice = _not_picked(compared, what)
        cards = (
            Card("pick", Number("none", STRATEGIES), "see the table"),
            Card("mean risk of being found", Number(f"{risk[0]:.2f}", RISK), "as it is"),
        )
    numbers = {"risk": compared.risk, "fidelity": compared.alike, "mcc": compared.mcc}
    means = {measure: found.mean(axis=0) for measure, found in numbers.items() if found is not None}
    for measure, found in (*means.items(), ("highest_risk", compared.highest.max(axis=0))):
        facts |= {f"{measure}.{name}": float(one) for name, one in zip(compared.names, found, strict=True)}
    return Section(
        finding=finding,
        advice=advice,
        cards=cards,
        blocks=_blocks(job, compared, at, what),
        unseen=(
            "Attacks by matching with another data set, and attributes that are not in the table.",
            "Differential privacy: none of these strategies promises it. Groups of k people alike hide a person among "
            "k; they do not bound what is learned from the release. All of a group have one value in every attribute, "
            "the label too, so whoever finds the group learns it; datassay release --help has l-diversity and "
            "t-closeness.",
            "CTGAN and TVAE: datassay release --strategies keep,ctgan,tvae, with the extra «synthesis».",
            *((f"{len(job.table) - len(job.sample):,} records that are not in the sample; among more people one hides "
               "better.",) if job.sampled else ()),
        ),
        facts=facts,
    )  # fmt: skip


def _picked(compared: _Compared, at: int, what: str, kept: float) -> tuple[Text, Text]:
    name, risk = compared.names[at], compared.risk.mean(axis=0)
    by = percent(1 - risk[at] / risk[0])
    fall = f"With {_in_words(name)} ({name}) the mean risk of being found falls by ⟦{by}⟧, and "
    finding = sentence(fall, RISK) + sentence(f"⟦{percent(min(kept, 1.0))}⟧ of the {what} is kept.", UTILITY)
    picks = [compared.pick(split) for split in range(len(compared.risk))]
    rivals = sorted({compared.names[one] for one in picks if one is not None and one != at})
    luck = f", though on some splits of the data it would be {named(rivals, 'or')}" if rivals else ""
    if any(one is None for one in picks):
        luck += (" or" if luck else ", though on some splits of the data it would be") + " none"
    return finding, (f"Of {len(compared.names)} ways to release the data, pick {name}{luck}.",)


def _not_picked(compared: _Compared, what: str) -> tuple[Text, Text]:
    risk, useful = compared.risk.mean(axis=0), compared.utility.mean(axis=0)
    others = np.flatnonzero(compared.changes)
    found = f"the mean risk of being found is ⟦{risk[0]:.2f}⟧."
    keeping = others[useful[others] >= KEPT * useful[0]]
    advice = "Release less of it, or not at all."
    if len(others) == 0:
        finding, advice = (
            f"As it is, {found}",
            "Compare ways to change the data as well, such as --strategies k=8,copula.",
        )
    elif len(keeping) and not (risk[keeping] < risk[0]).any():
        tried = "No way to change the data that was tried lowers the mean risk of being found, which is"
        finding, advice = f"{tried} ⟦{risk[0]:.2f}⟧.", "Nothing has to be changed for this." if risk[0] == 0 else advice
    elif len(keeping):
        finding = f"What keeps its use is no more like the original than random values; as it is, {found}"
    else:
        ways, cheapest = counted(len(others), "way"), int(others[np.argmax(useful[others])])
        finding = f"None of {ways} to change the data keeps {KEPT:.0%} of its {what}; as it is, {found}"
        lost = percent(float(1 - useful[cheapest] / useful[0]))
        advice = f"Decide what counts more: {compared.names[cheapest]} costs least, ⟦{lost}⟧ of the {what}."
    return sentence(finding, RISK), sentence(advice, UTILITY)


def _fitting(job: Job) -> tuple[str, ...]:
    """Strategies that the table is large enough for; the data as they are come first."""
    if job.strategies is not None:
        return ("keep", *(name for name in job.strategies if name != "keep"))
    n = 0.7 * len(job.sample)
    wanted = QUICK if job.quick else FULL
    return tuple(name for name in wanted if not name.startswith("k=") or 2 * int(name[2:]) <= n)


def _people(job: Job, runs: int) -> int:
    seconds = (6 if job.quick else 40) / runs
    return min(job.people(seconds, 30, 1000, job.attacked_count(True)), int(0.7 * len(job.sample)))


def _with_label(job: Job, strategies: tuple[str, ...]) -> _Compared:
    people = _people(job, SPLITS * len(strategies))
    found = [
        compare_releases(
            job.sample, strategies=strategies, k=job.k, seed=job.seed + split, columns=job.attacked, people=people,
            n_jobs=job.run["n_jobs"], progress=job.stages.part("releases", 1 / SPLITS),
        )
        for split in range(SPLITS)
    ]  # fmt: skip
    return _Compared(
        list(strategies),
        np.array([one.values for one in found]),
        np.array([one.risks.max(axis=1) for one in found]),
        np.array([one.fidelity for one in found]),
        np.array([one.mcc for one in found]),
        len(found[0].people),
        len(job.sample) - round(0.85 * len(job.sample)),
        tuple(dict.fromkeys(note for one in found for note in one.notes)),
    )


def _without_label(job: Job, strategies: tuple[str, ...]) -> _Compared:
    table, show = job.sample, job.stages.part("releases")
    people = min(_people(job, len(strategies)), len(table))
    risks, alike, notes = [], [], []
    for at, name in enumerate(strategies):
        if name.partition("=")[0] in ("shapley", "waka"):
            raise UsageError(f"strategy {name!r} removes by value, and the table has no label: name it with --label")
        made = make_release(name, table, seed=job.seed)
        risks.append(
            reidentification_risk(
                table, made, columns=job.attacked, people=None if people == len(table) else people, seed=job.seed,
                n_jobs=job.run["n_jobs"],
            ).values
        )  # fmt: skip
        alike.append(fidelity(table, made))
        notes += [f"{name}: {note}" for note in made.notes]
        show(at + 1, len(strategies))
    found = np.array(risks)
    return _Compared(
        list(strategies), found.mean(axis=1)[None], found.max(axis=1)[None], np.array([alike]), None, people, 0,
        tuple(notes),
    )  # fmt: skip


def _in_words(name: str) -> str:
    """A strategy in words."""
    kind, _, size = name.partition("=")
    if kind == "k":
        return f"groups of {size} people alike"
    if kind == "remove":
        return f"{float(size):.0%} left out at random"
    if kind in ("shapley", "waka"):
        return f"the least valuable {float(size):.0%} left out"
    return {"keep": "the data as they are"}.get(kind, "synthetic people")


def _command(job: Job, name: str) -> str:
    """What makes the release of the table as it was read here: what was set aside must not slip into it."""
    table = job.table
    if table.label is not None:
        return (
            f"datassay release {shlex.quote(table.name)}{job.reading} --strategies {shlex.quote(f'keep,{name}')} "
            f"--write {shlex.quote(name)} --to released.csv"
        )
    read_by = {"id": table.id, "ignore": list(table.carried), "categorical": list(job.categorical)}
    how = "".join(f", {option}={one!r}" for option, one in read_by.items() if one)
    return f"da.release.make_release({name!r}, da.read_table({table.name!r}{how})).save('released.csv', ids=False)"


def _least_helped(compared: _Compared, at: int | None) -> list[Block]:
    """What the pick does for the person most at risk, and what it has to do with other ways."""
    if at is None:
        return []
    name = compared.names[at]
    before, after = (float(one) for one in compared.highest.max(axis=0)[[0, at]])
    kind, _, size = name.partition("=")
    words = (
        "This is one way, and making attributes coarser another: each is looked at by itself. Elsewhere on this page "
        "the mean risk can be another, as other people are searched for, among more of them."
    )
    if kind == "k" and int(size) < 5:
        words = f"In groups of {size}, whoever knows the others finds the last one. {words}"
    if after > 0.9 * before:
        hardly = f"The person most at risk is hardly helped: ⟦{after:.3f}⟧ with {name} and ⟦{before:.3f}⟧ as it is."
        words = f"{hardly} Look at those who stand out one by one. {words}"
    return [paragraph(words, RISK)]


def _blocks(job: Job, compared: _Compared, at: int | None, what: str) -> tuple[Block, ...]:
    useful, risk = compared.utility.mean(axis=0), compared.risk.mean(axis=0)
    front = pareto_front(1 - risk, useful)
    numbers = {"mean risk": risk, "highest risk": compared.highest.max(axis=0), "likeness": compared.alike.mean(axis=0)}
    if compared.mcc is not None:
        numbers["prediction (MCC)"] = compared.mcc.mean(axis=0)
    rows = []
    for i, name in enumerate(compared.names):
        mark = "pick" if i == at else "yes" if front[i] else ""
        rows.append((name, _in_words(name), *(f"{column[i]:.3f}" for column in numbers.values()), mark))
    between: list[Kind] = ["number" for _ in numbers]
    if compared.by_prediction:
        sure = (
            f" Means over {len(compared.risk)} splits, on each of which the labels of {compared.tested:,} people were "
            f"predicted: differences of MCC up to about {compared.error:.2f} are within chance."
        )
    elif compared.mcc is not None:
        sure = " The label cannot be predicted from the other attributes here, so likeness is what counts."
    else:
        sure = ""

    def draw(axes: "Axes") -> None:
        order = np.flatnonzero(front)[np.argsort(useful[front], kind="stable")]
        safe = 1 - risk
        axes.plot(useful[order], safe[order], color=ORANGE, zorder=1, label="worth considering")
        axes.scatter(useful, safe, color=[ORANGE if mark else BLUE for mark in front], zorder=2)
        if at is not None:
            axes.scatter(useful[at], safe[at], s=120, facecolors="none", edgecolors=RED, zorder=3, label="the pick")
        for i, name in enumerate(compared.names):
            axes.annotate(name, (useful[i], safe[i]), textcoords="offset points", xytext=(6, 5), fontsize=9)
        axes.margins(x=0.18, y=0.12)
        use = "predictions: Matthews' correlation" if compared.by_prediction else "likeness to the original"
        axes.set(xlabel=use, ylabel="safety: 1 − mean risk")
        axes.legend(frameon=False)

    used = " and used to predict people who are in neither" if compared.mcc is not None else ""
    made = f" To make it: {_command(job, compared.names[at])}" if at is not None else ""
    return (
        paragraph(
            f"Each strategy was applied to the data, ⟦{compared.people:,}⟧ people were searched for in the result, "
            f"and the result was compared with the original{used}. The pick is the strategy of least mean risk "
            f"among those that change the data and keep {KEPT:.0%} of the {what}. Leaving people out helps those "
            f"left out and nobody else: it is shown and not picked.{made}",
            RISK,
        ),
        *_least_helped(compared, at),
        Figure(
            f"{compared.names[at]} is the pick: mean risk {risk[0]:.2f} → {risk[at]:.2f}"
            if at is not None
            else f"Nothing to pick: as it is, the mean risk is {risk[0]:.2f}",
            as_svg(draw, 3.6),
            "Up is safer, right is more useful. Worth considering is what no other strategy beats: none is as good in "
            "both, and better in one." + sure,
            STRATEGIES,
        ),
        Grid(
            "Strategies", ("strategy", "what it does", *numbers, "worth considering"), tuple(rows),
            ("text", "text", *between, "text"), STRATEGIES,
            "Risk is a score and no probability: 0 is none, 1 that an attacker finds the person and learns all the "
            "rest, 0.5 also that they find the person and learn nothing more. The highest is that of any person on any "
            "split. Likeness: 1 is the same, 0 no more like the original than random values, below 0 less."
            + ("" if not compared.notes else " Notes: " + "; ".join(map(job.discreet, compared.notes[:4])) + "."),
        ),
    )  # fmt: skip
