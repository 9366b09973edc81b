"""Who can be found: how many people are unique, which attributes identify them, and what to make coarser."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import datassay as da
from datassay._checks import counted
from datassay._errors import InputError
from datassay.data import Table
from datassay.identity import MOST_EXACT, Crowd, count_crowds, exact_seconds, mean_bits, measured_bins, order_seconds
from datassay.report.content import Block, Card, Facts, Figure, Grid, Number, Paragraph, Section, paragraph, sentence
from datassay.report.figures import as_svg
from datassay.report.job import MOST_ATTRIBUTES, Job, in_commas, named, percent
from datassay.results import BLUE, SILVER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BITS, COARSER = "uniqueness-shapley", "coarsening"
RISK, GIVEN_AWAY = "reidentification-risk", "reidentification-shapley"
SHOWN = 15  # attributes in a figure
LONGEST = 60.0  # seconds on one core for the bits of everybody; where it could take longer, they are estimated
DRAWN = 10_000  # people to estimate them from


def found(job: Job) -> Section:
    """The section about identification."""
    names, dropped = job.attributes
    if not names:
        raise InputError(
            "no column is a category, a whole number or a date: all are measurements with decimals, which nobody knows "
            "of a person; name what an attacker could know with --quasi-identifiers"
        )
    table = job.table
    bins: dict[str, float] = measured_bins(table, names)
    crowds = count_crowds(table, names, bins)
    bits = _bits(job, names, bins, crowds.alike(bins), crowds.varying(bins))
    job.records["bits"] = bits.totals
    job.records["alike"] = bits.alike
    plan = da.suggest_coarsening(table, names, coarsen=bins, progress=job.stages.part("uniqueness", 0.5))
    means, unique, below = bits.means, float((bits.alike <= 1).mean()), float((bits.alike < 5).mean())
    top, most = str(means.ids[means.values.argmax()]), float(means.values.max())
    tops = _foremost([str(name) for name in means.ids], means.values, bits.half)
    each = " each" if len(tops) > 1 else ""
    job.notes += [note for note in means.notes if note not in table.notes]
    facts: Facts = {
        "people": len(table),
        "attributes": len(names),
        "share_unique": unique,
        "share_below.5": below,
        "smallest_group": float(bits.alike.min()),
        "total_bits": bits.total,
        "most_identifying": top,
        **{f"bits.{name}": float(value) for name, value in zip(means.ids, means.values, strict=True)},
        **({} if bits.half is None else {"bits_within": float(bits.half.max())}),
        "share_unique_after_coarsening": float(plan.values[-1]),
    }
    blocks: list[Block] = [
        *_direct(table),
        paragraph(
            f"Taken together, ⟦{len(names)}⟧ attributes ({_listed(names)}) tell ⟦{bits.total:.1f} bits⟧ about a "
            f"person, of the ⟦{np.log2(len(table)):.1f}⟧ that single out one of {len(table):,}. "
            f"⟦{percent(unique)}⟧ of the people are alone with their combination, and "
            f"⟦{percent(below)}⟧ share it with fewer than four others.",
            BITS,
        ),
        *((bits.estimated,) if bits.estimated else ()),
        _bits_figure(bits, tops, most),
        _attribute_table(bits, {name: one.unique for name, one in crowds.without(bins).items()}),
        *([_coarsening(plan)] if len(plan) > 1 else []),
        *_risk(job, table, facts),
    ]
    steps = _listed([f"{name} in steps of {width:g}" for name, width in list(bins.items())[:6]])
    steps += " and so on" if len(bins) > 6 else ""
    by = counted(len(names), "attribute") + (f" of {len(names) + len(dropped)}" if dropped else "")
    foremost = f"; {_most(tops, 'identifies', 'identify')} people most (⟦{most:.1f} bits⟧{each})."
    alike = ": all are alike."
    return Section(
        finding=sentence(
            f"⟦{percent(unique)}⟧ of the people are unique by {by}{foremost if bits.total > 0 else alike}", BITS
        ),
        advice=sentence(_advised(plan), COARSER),
        cards=(
            Card("unique people", Number(percent(unique), BITS), f"of {len(table):,}"),
            *(
                (Card("most identifying " + ("attributes" if each else "attribute"), Number(_among(tops), BITS),
                      f"{most:.2f} bits{each}"),)
                if bits.total > 0
                else ()
            ),
            *((Card("mean risk of being found", Number(f"{facts['mean_risk']:.2f}", RISK), "a score from 0 to 1"),)
              if "mean_risk" in facts else ()),
        ),
        blocks=tuple(blocks),
        unseen=(
            "What an attacker can learn elsewhere: attributes are taken to be known as they stand here"
            + (f", and measurements to some precision ({steps})." if bins else "."),
            *((f"Attributes that hold measurements, or say too little to be looked at: {_listed(dropped)}. Name them "
               "with --quasi-identifiers if somebody could know them.",) if dropped else ()),
            *((f"The label {table.label}, in the count of unique people.",)
              if table.label is not None and table.label not in names else ()),
            *((f"The columns {named(job.aside)}, which number the rows.",) if job.aside else ()),
            *((f"Risk in the whole table: people were searched for in a sample of {len(job.sample):,} records, and "
               "among more people one hides better.",) if job.sampled else ()),
        ),
        facts=facts,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Bits:
    """What attributes tell: each of them on average, and all of them of every person."""

    means: "da.AttributeMeans"
    total: float
    totals: NDArray[np.float64]
    alike: NDArray[np.float64]  # how many have the same attributes
    over: str  # what the means are taken over
    estimated: Paragraph | None = None  # why they are estimates, if they are

    @property
    def half(self) -> NDArray[np.float64] | None:
        """Half the widths of the intervals of the means, if they are estimates."""
        return None if self.means.upper is None else self.means.upper - self.means.values


def _bits(job: Job, names: list[str], bins: dict[str, float], crowd: Crowd, varying: int) -> _Bits:
    """Bits of everybody; or, where these would take too long, means estimated from some people."""
    show = job.stages.part("uniqueness", 0.5)
    how: dict[str, Any] = {"coarsen": bins, "seed": job.seed, "n_jobs": job.run["n_jobs"], "progress": show}
    exact = varying <= MOST_EXACT
    fewest = 16 * varying  # orders
    seconds = exact_seconds(crowd.distinct, varying) if exact else fewest * order_seconds(crowd.distinct, crowd.people)
    if seconds <= LONGEST:
        all_ = da.uniqueness_shapley(job.table, names, tolerance=None if len(names) <= 20 else 0.05, **how)
        means = all_.mean()
        over = "all orders of learning the attributes"
        if all_.mean_half is not None and all_.parameters.get("permutations") is not None:
            orders = int(str(all_.parameters["permutations"]))
            over = f"{orders:,} random orders (to ± {all_.mean_half.max():.2g} bits) of learning the attributes"
        return _Bits(means, means.total, all_.totals, all_.group_sizes, over)
    tried = None if exact else int(max(fewest, LONGEST / order_seconds(crowd.distinct, DRAWN)))
    means = mean_bits(job.table, names, people=DRAWN, permutations=tried, **how)
    assert means.upper is not None
    alike = crowd.sizes()
    totals = np.log2(crowd.people / alike)
    drawn = f"{DRAWN:,} people drawn at random"
    way = "" if exact else f", for each of whom {int(str(means.parameters['permutations'])):,} random orders were tried"
    what = "Exact values of everybody could take" if exact else "Values of everybody would be estimates, too, and take"
    estimated = paragraph(
        f"What each attribute tells is estimated here, from {drawn} and counted among all {crowd.people:,}{way}: to ± "
        f"⟦{(means.upper - means.values).max():.2g} bits⟧, each with probability 95%. Who is unique, and what coarser "
        f"attributes change, is counted. {what} {_long(seconds)} on one core, for {crowd.distinct:,} different rows "
        f"and {varying} attributes; a report takes at most {_long(LONGEST)} for them. To compute them: "
        f"{_command(job, names, bins)}",
        BITS,
    )
    over = f"all orders of learning the attributes and {drawn}"
    return _Bits(means, float(totals.mean()), totals, alike, over, estimated)


def bits_seconds(rows: int, attributes: int) -> float:
    """About how long bits take one core if rows are soon alone, as they mostly are."""
    exact = exact_seconds(rows, attributes)
    return exact / 4 if exact <= LONGEST else 2.2e-6 * rows * min(attributes, MOST_ATTRIBUTES)


def _long(seconds: float) -> str:
    if seconds < 120:
        return counted(seconds, "second")
    return f"{seconds / 60:,.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"


def _command(job: Job, names: list[str], bins: dict[str, float]) -> str:
    """What computes the bits of everybody exactly, by the same attributes."""
    said = f"datassay unique {shlex.quote(job.table.name)} --columns {shlex.quote(in_commas(names))}"
    said += "".join(f" --coarsen {shlex.quote(f'{name}={width:g}')}" for name, width in bins.items())
    categories = [name for name in job.categorical if name in names]
    said += f" --categorical {shlex.quote(in_commas(categories))}" if categories else ""
    return said + ("" if job.table.id is None else f" --id {shlex.quote(job.table.id)}")


def _advised(plan: "da.CoarseningPlan") -> str:
    target = float(str(plan.parameters["target"]))
    below, after = percent(float(plan.below[-1])), percent(float(plan.values[-1]))
    if len(plan) == 1 and plan.values[0] <= target:
        if plan.below[0] == 0:
            return f"That is no more than ⟦{target:.0%}⟧: no attribute has to be made coarser for this."
        return (
            f"That is no more than ⟦{target:.0%}⟧, where making attributes coarser stops; decide whether the ⟦{below}⟧ "
            f"in groups under {plan.size} may be found."
        )
    if len(plan) == 1:
        return "No coarser attribute that was tried makes fewer people unique: release less, or groups of people alike."
    steps = named(plan.ids[1:3])
    gone = [str(name) for name in plan.attributes[1:] if plan.coarsen[str(name)] is None]
    losing = f", which leave out {named(list(dict.fromkeys(gone)))}," if gone else ""
    if plan.values[-1] > 0.5:
        return (
            f"Release fewer attributes, or groups of people alike: even after {counted(len(plan) - 1, 'step')} "
            f"({steps} first) ⟦{after}⟧ would be unique."
        )
    return (
        f"Make attributes coarser, beginning with {steps}; after all steps of the plan{losing} ⟦{after}⟧ would be "
        f"unique and ⟦{below}⟧ in groups under {plan.size}."
    )


def _listed(names: list[str], most: int = 12) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def _direct(table: Table) -> Iterator[Paragraph]:
    """Text that was set aside: it identifies people, the more the more it differs."""
    for name in table.carried:
        column = table.columns[name]
        different = len(np.unique(column.data))
        if column.kind == "categorical" and different > max(20, len(table) // 10):
            yield paragraph(
                f"{name} holds text with ⟦{different:,}⟧ different values in {len(table):,} records. It was set aside "
                "here and is in no number of this page; whoever knows it finds people by it, and it belongs in no "
                "release.",
                BITS,
            )


def _foremost(names: list[str], means: NDArray[np.float64], half: NDArray[np.float64] | None) -> list[str]:
    """The attribute of the largest mean, and those that cannot be told from it: equal, or within what is by chance."""
    first = int(means.argmax())
    slack = 1e-9 if half is None else np.maximum(half + half[first], 1e-9)
    near = np.flatnonzero(means >= means[first] - slack)
    return [names[j] for j in near[np.argsort(-means[near], kind="stable")]]


def _among(names: list[str]) -> str:
    return named(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} others"


def _most(names: list[str], one: str, many: str) -> str:
    return f"{_among(names)} {one if len(names) == 1 else many}"


def _bits_figure(bits: _Bits, tops: list[str], most: float) -> Figure:
    means, total = bits.means, bits.total
    shown = np.argsort(-means.values, kind="stable")[:SHOWN][::-1]

    def draw(axes: "Axes") -> None:
        at = np.arange(len(shown))
        axes.barh(at + 0.2, means.values[shown], 0.38, color=BLUE, label="with the others")
        axes.barh(at - 0.2, means.entropies[shown], 0.38, color=SILVER, label="alone")
        axes.set_yticks(at, [_short(str(means.ids[j])) for j in shown])
        axes.set_xlabel("bits")
        axes.legend(frameon=False)

    return Figure(
        f"{_most(tops, 'identifies', 'identify')} people most: {most:.1f} of {total:.1f} bits"
        + (" each" if len(tops) > 1 else "")
        if total > 0
        else "No attribute tells anybody apart",
        as_svg(draw, 0.3 * len(shown) + 0.9),
        f"Blue: what an attribute adds to finding a person, averaged over {bits.over}; "
        + (
            f"the bars add up to what all tell{'' if bits.half is None else ', but for chance'}."
            if len(means.ids) <= SHOWN
            else f"the {SHOWN} of {len(means.ids)} attributes that tell most."
        )
        + " Grey: what it tells if it is all that is known.",
        BITS,
    )


def _short(name: str, most: int = 22) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _attribute_table(bits: _Bits, without: dict[str, float]) -> Grid:
    means = bits.means
    order = np.argsort(-means.values, kind="stable")[:SHOWN]
    names = [str(name) for name in means.ids]
    rows = []
    for j in order:
        share = means.values[j] / means.total if means.total > 0 else 0.0
        alone = without[names[j]] if len(names) > 1 else 0.0
        rows.append((names[j], f"{means.values[j]:.2f}", percent(share), f"{means.entropies[j]:.2f}", percent(alone)))
    return Grid(
        "What each attribute tells",
        ("attribute", "bits", "of what all tell", "bits alone", "unique people without it"),
        tuple(rows),
        ("text", "number", "number", "number", "number"),
        BITS,
        "" if bits.half is None else f"Bits are estimates, to ± {bits.half.max():.2g}; the other columns are counted.",
    )


def _coarsening(plan: "da.CoarseningPlan") -> Grid:
    steps = zip(plan.ids, plan.values, plan.below, strict=True)
    return Grid(
        f"What to make coarser: from {percent(plan.values[0])} unique to {percent(plan.values[-1])}",
        ("step", "change", "unique people", f"in groups under {plan.size}"),
        tuple((str(at), str(name), percent(unique), percent(below)) for at, (name, unique, below) in enumerate(steps)),
        ("number", "text", "number", "number"),
        COARSER,
        "Each step is the change, of those tried (wider steps of numbers, fewer digits of codes, rare values put "
        "together), that leaves the fewest people unique, given the steps before it; an attribute is left out only "
        "where none of these helps. For changes of your own: datassay unique --coarsen.",
    )


def _risk(job: Job, table: Table, facts: Facts) -> list[Block]:
    """The risk that people are found in the table as it is, who is most at risk, and what gives them away."""
    sample = job.sample
    attributes = job.attacked_count(sample.label is not None)
    how: dict[str, Any] = {"columns": job.attacked, "seed": job.seed, "n_jobs": job.run["n_jobs"]}
    if attributes < 2 or len(sample) < 20:
        return []
    searched = job.people(3 if job.quick else 12, 50, 300 if job.quick else 5000, attributes)
    risk = da.reidentification_risk(
        sample, sample, people=None if searched >= len(sample) else searched,
        progress=job.stages.part("risk", 0.7), **how,
    )  # fmt: skip
    if searched >= len(sample):
        job.record("risk", risk.values)
    drawn = job.people(3 if job.quick else 8, 20, 300, attributes)
    given_away = da.reidentification_shapley(
        sample, sample, people=drawn if drawn < len(sample) else None, progress=job.stages.part("risk", 0.3), **how,
    )  # fmt: skip
    first = risk.highest(10)
    everybody = "the table" if not job.sampled else f"a sample of {len(sample):,} records of the table"
    of_whom = "" if len(risk) == len(table) else f" of {len(risk):,} searched for"
    what = da.reidentification_shapley(sample, sample, people=risk.ids[first], **how)
    facts |= {"mean_risk": risk.mean(), "highest_risk": float(risk.values.max()), "risk_searched": len(risk)}
    rows = np.array([int(np.flatnonzero(sample.ids == one)[0]) for one in risk.ids[first]])
    blocks: list[Block] = [
        paragraph(
            f"If {everybody} were given away as it is, somebody who knows some attributes of a person finds them "
            f"with a mean risk of ⟦{risk.mean():.3f}⟧ ({counted(len(risk), 'person', 'people')} searched for; a "
            f"record picked at random scores ⟦{risk.guesses.mean():.3f}⟧): {risk.verdict()}. The risk is a score "
            "and no probability: how well those can be linked to the person who are nearest by what is known, "
            "times how much they tell of the rest.",
            RISK,
        ),
        _given_away_figure(given_away),
        job.listed(
            f"The {'ten' if len(first) == 10 else len(first)} people most at risk{of_whom}, and what gives them away",
            rows,
            {
                "risk": [f"{one:.3f}" for one in risk.values[first]],
                "stands out by": [_stands_out(what.of(one)) for one in risk.ids[first]],
            },
            GIVEN_AWAY,
        ),
    ]
    return blocks if risk.values.max() > 0 else blocks[:2]


def _stands_out(what: dict[str, float]) -> str:
    return named(sorted(what, key=lambda name: -what[name])[:2])


def _given_away_figure(what: "da.RiskShapley") -> Figure:
    means = what.mean()
    tops = _foremost(list(what.columns), what.values.mean(axis=0), what.mean_half())
    names = list(means)[:SHOWN][::-1]

    def draw(axes: "Axes") -> None:
        axes.barh([_short(name) for name in names], [means[name] for name in names], color=BLUE)
        axes.set_xlabel("re-identification Shapley value")

    return Figure(
        f"{_most(tops, 'gives', 'give')} people away most"
        if max(means.values()) > 0
        else "No attribute gives anybody away",
        as_svg(draw, 0.26 * len(names) + 0.8),
        "What knowing an attribute adds to the risk that a person is found, averaged over "
        f"{'all orders' if what.lower is None else 'random orders'} of learning them and over "
        f"{counted(len(what), 'person', 'people')}.",
        GIVEN_AWAY,
    )
