"""Who can be found: how many people are unique, which attributes identify them, and what to make coarser."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay.data import Table
from datassay.identity import (
    CoarseningPlan,
    RiskShapley,
    Uniqueness,
    group_sizes,
    measured_bins,
    reidentification_risk,
    reidentification_shapley,
    suggest_coarsening,
    uniqueness_shapley,
)
from datassay.report.content import Block, Card, Facts, Figure, Grid, Number, Paragraph, Section, sentence
from datassay.report.figures import as_svg
from datassay.report.job import Job, count, named, percent
from datassay.results import BLUE, SILVER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BITS, COARSER = "uniqueness-shapley", "coarsening"
RISK, GIVEN_AWAY = "reidentification-risk", "reidentification-shapley"
SHOWN = 15  # attributes in a figure


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
    bits = uniqueness_shapley(
        table, names, coarsen=bins, tolerance=None if len(names) <= 20 else 0.05, seed=job.seed,
        n_jobs=job.run["n_jobs"], progress=job.stages.part("uniqueness", 0.5),
    )  # fmt: skip
    groups = bits.groups()
    job.records["bits"] = bits.totals
    job.records["alike"] = bits.group_sizes
    plan = suggest_coarsening(table, names, coarsen=bins, progress=job.stages.part("uniqueness", 0.5))
    means = bits.mean()
    order = np.argsort(-means.values, kind="stable")
    top = str(means.ids[order[0]])
    tops = _foremost([str(name) for name in means.ids], means.values, bits.mean_half)
    each = " each" if len(tops) > 1 else ""
    job.notes += [note for note in bits.notes if note not in table.notes]
    facts: Facts = {
        "people": len(table),
        "attributes": len(names),
        "share_unique": groups.unique,
        "share_below.5": groups.share_below(5),
        "smallest_group": groups.smallest,
        "total_bits": means.total,
        "most_identifying": top,
        **{f"bits.{name}": float(value) for name, value in zip(means.ids, means.values, strict=True)},
        "share_unique_after_coarsening": float(plan.values[-1]),
    }
    blocks: list[Block] = [
        *_direct(table),
        Paragraph(
            sentence(
                f"Taken together, ⟦{len(names)}⟧ attributes ({_listed(names)}) tell ⟦{means.total:.1f} bits⟧ about a "
                f"person, of the ⟦{np.log2(len(table)):.1f}⟧ that single out one of {len(table):,}. "
                f"⟦{percent(groups.unique)}⟧ of the people are alone with their combination, and "
                f"⟦{percent(groups.share_below(5))}⟧ share it with fewer than four others.",
                BITS,
            )
        ),
        _bits_figure(bits, tops, float(means.values[order[0]]), float(means.total)),
        _attribute_table(table, bits, bins),
        *_coarsening(plan),
        *_risk(job, table, facts),
    ]
    by = count(len(names), "attribute") + (f" of {len(names) + len(dropped)}" if dropped else "")
    foremost = f"; {_most(tops, 'identifies', 'identify')} people most (⟦{means.values[order[0]]:.1f} bits⟧{each})."
    alike = ": all are alike."
    return Section(
        finding=sentence(
            f"⟦{percent(groups.unique)}⟧ of the people are unique by {by}{foremost if means.total > 0 else alike}", BITS
        ),
        advice=_advice(plan),
        cards=(
            Card("unique people", Number(percent(groups.unique), BITS), f"of {len(table):,}"),
            *(
                (Card("most identifying " + ("attributes" if each else "attribute"), Number(_among(tops), BITS),
                      f"{means.values[order[0]]:.2f} bits{each}"),)
                if means.total > 0
                else ()
            ),
            *((Card("mean risk of being found", Number(f"{facts['mean_risk']:.2f}", RISK), "a score from 0 to 1"),)
              if "mean_risk" in facts else ()),
        ),
        blocks=tuple(blocks),
        unseen=(
            "What an attacker can learn elsewhere: attributes are taken to be known as they stand here"
            + (f", and measurements to some precision ({_listed_bins(bins)})." if bins else "."),
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


def _advice(plan: CoarseningPlan) -> tuple[str | Number, ...]:
    return sentence(_advised(plan), COARSER)


def _advised(plan: CoarseningPlan) -> str:
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
            f"Release fewer attributes, or groups of people alike: even after {count(len(plan) - 1, 'step')} "
            f"({steps} first) ⟦{after}⟧ would be unique."
        )
    return (
        f"Make attributes coarser, beginning with {steps}; after all steps of the plan{losing} ⟦{after}⟧ would be "
        f"unique and ⟦{below}⟧ in groups under {plan.size}."
    )


def _listed(names: list[str], most: int = 12) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def _listed_bins(bins: dict[str, float]) -> str:
    steps = [f"{name} in steps of {width:g}" for name, width in list(bins.items())[:6]]
    return _listed(steps) + (" and so on" if len(bins) > 6 else "")


def _direct(table: Table) -> list[Block]:
    """Text that was set aside: it identifies people, the more the more it differs."""
    found: list[Block] = []
    for name in table.carried:
        column = table.columns[name]
        different = len(np.unique(column.data))
        if column.kind == "categorical" and different > max(20, len(table) // 10):
            found.append(
                Paragraph(
                    sentence(
                        f"{name} holds text with ⟦{different:,}⟧ different values in {len(table):,} records. It was "
                        "set aside here and is in no number of this page; whoever knows it finds people by it, and it "
                        "belongs in no release.",
                        BITS,
                    )
                )
            )
    return found


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


def _bits_figure(bits: Uniqueness, tops: list[str], most: float, total: float) -> Figure:
    means = bits.mean()
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
        f"Blue: what an attribute adds to finding a person, averaged over {_orders(bits)} of learning the attributes; "
        + (
            "the bars add up to what all tell."
            if len(means.ids) <= SHOWN
            else f"the {SHOWN} of {len(means.ids)} attributes that tell most."
        )
        + " Grey: what it tells if it is all that is known.",
        BITS,
    )


def _orders(bits: Uniqueness) -> str:
    drawn = bits.parameters.get("permutations")
    if bits.mean_half is None or drawn is None:
        return "all orders"
    return f"{int(str(drawn)):,} random orders (to ± {bits.mean_half.max():.2g} bits)"


def _short(name: str, most: int = 22) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _attribute_table(table: Table, bits: Uniqueness, bins: dict[str, float]) -> Grid:
    means = bits.mean()
    order = np.argsort(-means.values, kind="stable")[:SHOWN]
    names = [str(name) for name in means.ids]
    rows = []
    for j in order:
        without = group_sizes(table, names, coarsen={**bins, names[j]: None}).unique if len(names) > 1 else 0.0
        share = means.values[j] / means.total if means.total > 0 else 0.0
        rows.append((names[j], f"{means.values[j]:.2f}", percent(share), f"{means.entropies[j]:.2f}", percent(without)))
    return Grid(
        "What each attribute tells",
        ("attribute", "bits", "of what all tell", "bits alone", "unique people without it"),
        tuple(rows),
        ("text", "number", "number", "number", "number"),
        BITS,
    )


def _coarsening(plan: CoarseningPlan) -> list[Block]:
    if len(plan) == 1:
        return []
    rows = tuple(
        (str(step), str(name), percent(unique), percent(below))
        for step, (name, unique, below) in enumerate(zip(plan.ids, plan.values, plan.below, strict=True))
    )
    return [
        Grid(
            f"What to make coarser: from {percent(plan.values[0])} unique to {percent(plan.values[-1])}",
            ("step", "change", "unique people", f"in groups under {plan.size}"),
            rows,
            ("number", "text", "number", "number"),
            COARSER,
            "Each step is the change, of those tried (wider steps of numbers, fewer digits of codes, rare values put "
            "together), that leaves the fewest people unique, given the steps before it; an attribute is left out only "
            "where none of these helps. For changes of your own: datassay unique --coarsen.",
        )
    ]


def _risk(job: Job, table: Table, facts: Facts) -> list[Block]:
    """The risk that people are found in the table as it is, who is most at risk, and what gives them away."""
    sample = job.sample
    attributes = len(sample.features) + (sample.label is not None) if job.attacked is None else len(job.attacked)
    how: dict[str, Any] = {"columns": job.attacked, "seed": job.seed, "n_jobs": job.run["n_jobs"]}
    if attributes < 2 or len(sample) < 20:
        return []
    searched = job.people(3 if job.quick else 12, 50, 300 if job.quick else 5000, attributes)
    risk = reidentification_risk(
        sample, sample, people=None if searched >= len(sample) else searched,
        progress=job.stages.part("risk", 0.7), **how,
    )  # fmt: skip
    if searched >= len(sample):
        job.record("risk", risk.values)
    drawn = job.people(3 if job.quick else 8, 20, 300, attributes)
    given_away = reidentification_shapley(
        sample, sample, people=drawn if drawn < len(sample) else None, progress=job.stages.part("risk", 0.3), **how,
    )  # fmt: skip
    first = risk.highest(10)
    everybody = "the table" if not job.sampled else f"a sample of {len(sample):,} records of the table"
    searched_all = len(risk) == len(table)
    what = reidentification_shapley(sample, sample, people=risk.ids[first], **how)
    facts |= {"mean_risk": risk.mean(), "highest_risk": float(risk.values.max()), "risk_searched": len(risk)}
    rows = np.array([int(np.flatnonzero(sample.ids == one)[0]) for one in risk.ids[first]])
    blocks: list[Block] = [
        Paragraph(
            sentence(
                f"If {everybody} were given away as it is, somebody who knows some attributes of a person finds them "
                f"with a mean risk of ⟦{risk.mean():.3f}⟧ ({count(len(risk), 'person', 'people')} searched for; a "
                f"record picked at random scores ⟦{risk.guesses.mean():.3f}⟧): {risk.verdict()}. The risk is a score "
                "and no probability: how well those can be linked to the person who are nearest by what is known, "
                "times how much they tell of the rest.",
                RISK,
            )
        ),
        _given_away_figure(given_away),
        job.listed(
            f"The {'ten' if len(first) == 10 else len(first)} people most at risk"
            + ("" if searched_all else f" of {len(risk):,} searched for")
            + ", and what gives them away",
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


def _given_away_figure(what: RiskShapley) -> Figure:
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
        f"{count(len(what), 'person', 'people')}.",
        GIVEN_AWAY,
    )
