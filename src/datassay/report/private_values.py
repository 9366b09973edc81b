"""What can be told: values under differential privacy, and what ε means for the people in the data."""

import math
import shlex
from typing import TYPE_CHECKING

import numpy as np

import datassay as da
from datassay._checks import counted
from datassay._errors import InputError
from datassay.report.content import Card, Facts, Figure, Grid, Number, Paragraph, Section, paragraph, sentence
from datassay.report.figures import as_svg
from datassay.report.job import Job
from datassay.results import BLUE, ORANGE, SILVER, rank_correlation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRIVATE, LEDGER = "private-tknn-shapley", "ledger"
GOOD = 0.8  # rank correlation from which the order of private values can be relied on
TRIED = (0.1, 0.5, 1.0, 2.0, 5.0)
DRAWS, DRAWS_QUICKLY = 7, 3  # of noise for each ε: one alone is a matter of luck
WEAK = 5.0  # ε from which next to nothing is promised
MOST_VALIDATION = 200  # every validation point needs noise of its own: more of them, more noise


def private_values(job: Job) -> Section:
    """The section about private values."""
    job.check_label()
    if len(job.sample) < 50 and job.validation is None:
        raise InputError(
            f"{counted(len(job.sample), 'record')}: too few to set some apart as public ones, which takes 50, or a "
            "file of public records with --validation"
        )
    job.check_classes()
    if job.validation is None:
        private, public = job.sample.split(0.8, seed=job.seed)
    else:
        private, public = job.sample, job.validation
    if len(public) > MOST_VALIDATION:
        public = public.select(np.sort(np.random.default_rng(job.seed).permutation(len(public))[:MOST_VALIDATION]))
    tau = float(da.tune_tau(public, n_jobs=job.run["n_jobs"]).best)  # of the public records alone
    classes = len({str(one) for one in (*job.sample.labels.tolist(), *public.labels.tolist())})
    openly = da.tknn_shapley(private, X_val=public, tau=tau, n_classes=classes, **job.run)
    budgets = sorted({job.epsilon, *(one for one in TRIED if one > job.epsilon or not job.quick)})
    show = job.stages.part("private values")
    agree: dict[float, tuple[float, float, float]] = {}
    caught: dict[float, float] = {}
    released: dict[float, da.PrivateValues] = {}
    truth = None
    if job.truth is not None:
        marked = dict(zip(job.table.ids.tolist(), job.truth.tolist(), strict=True))
        truth = np.array([marked[one] for one in private.ids.tolist()], bool)
        truth = None if truth.all() or not truth.any() else truth
    draws = DRAWS_QUICKLY if job.quick else DRAWS
    near = da.Neighbours(private, public, metric="cosine", memory=job.run["memory"], fitted_on="validation")
    for at, epsilon in enumerate(budgets):
        agreed, detected = [], []
        for _ in range(draws):
            values = da.private_tknn_shapley(
                near, tau=tau, epsilon=epsilon, delta=job.delta, n_classes=classes, **job.run
            )
            released[epsilon] = values
            agreed.append(rank_correlation(values.values, openly.values))
            if truth is not None:
                detected.append(da.detect_errors(values.values, truth).auroc)
        agree[epsilon] = (float(np.median(agreed)), min(agreed), max(agreed))
        if detected:
            caught[epsilon] = float(np.median(detected))
        show(at + 1, len(budgets))
    guarantee = released[job.epsilon].guarantee
    remarks = dict.fromkeys(map(job.discreet, (n for n in released[job.epsilon].notes if n not in job.table.notes)))
    here, lowest, best = agree[job.epsilon]
    ranked = ""
    labels, codes, sizes = np.unique(private.labels.astype(str), return_inverse=True, return_counts=True)
    by_label = all(float(np.ptp(openly.values[codes == label])) <= 1e-12 for label in range(len(labels)))
    label_alone = rank_correlation((np.bincount(codes, openly.values) / sizes)[codes], openly.values)
    facts: Facts = {
        "epsilon": job.epsilon,
        "delta": job.delta,
        "private_rank_correlation": here,
        **{f"private_rank_correlation.{epsilon:g}": one for epsilon, (one, _, _) in agree.items()},
    }
    if job.values is not None:
        at_id = {one: at for at, one in enumerate(job.values.ids.tolist())}
        first = rank_correlation(job.values.values[[at_id[one] for one in private.ids.tolist()]], openly.values)
        facts["open_rank_correlation"] = first
        ranked = (
            " With the k-NN Shapley values, by which this page ranks records, they agree to a rank correlation of "
            f"⟦{first:.2f}⟧: an owner is told another value than that."
        )
    enough = [epsilon for epsilon in budgets if epsilon > job.epsilon and agree[epsilon][0] >= GOOD]
    times = math.exp(job.epsilon)
    one_in = f", 1 in {round(1 / job.delta):,}" if job.delta < 0.1 else ""
    noted = f"Noted on the way: {'; '.join(remarks)}. " if remarks else ""
    where = "a fifth of the table" if job.validation is None else job.validation.name
    return Section(
        finding=sentence(
            f"Each owner can be told what their record is worth with ε = ⟦{job.epsilon:g}⟧: such values agree with "
            f"open ones of the same kind to a rank correlation of about ⟦{here:.2f}⟧"
            + ("; but these differ by the label alone." if by_label and here > 0 else "."),
            PRIVATE,
        ),
        advice=(_advice(job, here, enough, by_label),),
        cards=(
            Card("ε", Number(f"{job.epsilon:g}", PRIVATE), f"δ = {job.delta:.2g}, {guarantee.relation}"),
            Card("agreement with open values", Number(f"{here:.2f}", PRIVATE), f"rank correlation; {lowest:.2f} to "
            f"{best:.2f}"),
            Card("odds of being found out", Number(f"× {times:.3g}", PRIVATE), "at the most, up to δ"),
        ),
        blocks=(
            Paragraph(("What is promised: ", Number(str(guarantee), PRIVATE), ".")),
            paragraph(
                "What ε means: take everything that is told to everybody but the owner of one record. It would be "
                "told with nearly the same probability had that record not been there: at most "
                f"⟦e^{job.epsilon:g} = {times:.3g}⟧ times as likely, but for a chance of δ = ⟦{job.delta:.2g}⟧"
                f"{one_in}. So somebody who thought it as likely as not that a person is in the data "
                f"can become at most ⟦{times / (1 + times):.0%}⟧ sure of it from what others are told, but for "
                f"that chance. (With ε = 0.1 it is {math.exp(0.1) / (1 + math.exp(0.1)):.1%}, with ε = 5 "
                f"{math.exp(5) / (1 + math.exp(5)):.1%}.) What an owner is told about their own record depends on "
                "that record openly: it is for them alone.",
                PRIVATE,
            ),
            paragraph(
                "Open values of the same kind are what would be told without noise: threshold values, by all "
                "neighbours within a distance τ that the public records decide. To tell everybody the mean value "
                f"of their label would agree with them to ⟦{label_alone:.2f}⟧: what is more than "
                f"that is about the record.{ranked}",
                PRIVATE,
            ),
            *((_curve(agree, job.epsilon, here),) if len(agree) > 1 else ()),
            Grid(
                "What each ε buys",
                ("ε", "agreement with open values", *(("finds marked records (AUROC)",) if caught else ())),
                tuple(
                    (f"{epsilon:g}", "{:.2f} ({:.2f} to {:.2f})".format(*agree[epsilon]),
                     *((f"{caught[epsilon]:.3f}",) if caught else ()))
                    for epsilon in budgets
                ),
                ("number", "text", *(("number",) if caught else ())),
                PRIVATE,
                f"Median, lowest and highest of {draws} draws. Noise is drawn anew in every report; no seed repeats "
                "it.",
            ),
            paragraph(
                f"This was a trial with {len(public):,} records of {where} in the place of public ones: nothing was "
                "released and no budget was spent. The promise takes public records that are no part of the private "
                f"ones. {noted}To do it for real, with a ⟦ledger⟧ that cannot be overspent: datassay private-value "
                f"{shlex.quote(job.table.name)} --validation public.csv{job.reading} --epsilon {job.epsilon:g} "
                f"--ledger market.ledger --budget-epsilon {2 * job.epsilon:g}.",
                LEDGER,
            ),
        ),
        unseen=(
            "This page itself: it is made of the data and promises no privacy.",
            "Private releases of anything but values of records.",
        ),
        facts=facts,
    )  # fmt: skip


def _advice(job: Job, here: float, enough: list[float], by_label: bool = False) -> str:
    if job.delta * len(job.table) >= 1:
        return f"Choose a δ far below 1 in {len(job.table):,}: as it is, the promise may fail somebody altogether."
    if job.epsilon >= WEAK:
        return f"Choose a smaller ε: one of {job.epsilon:g} promises next to nothing."
    if by_label:
        return "Do not tell them as what a record is worth: all records of a label have one value."
    if here >= GOOD:
        return "Tell each owner their own value and nobody else's, and keep a ledger of what is told."
    if enough and enough[0] < WEAK:
        return f"Raise ε to {enough[0]:g}, or bring more public records, before you rely on their order."
    return "Do not rely on their order: bring more records."


def _curve(agree: dict[float, tuple[float, float, float]], epsilon: float, here: float) -> Figure:
    budgets = list(agree)
    middle, low, high = (np.array(part) for part in zip(*agree.values(), strict=True))

    def draw(axes: "Axes") -> None:
        axes.fill_between(budgets, low, high, color=SILVER, alpha=0.5, linewidth=0, label="lowest to highest draw")
        axes.plot(budgets, middle, marker="o", markersize=4, color=BLUE, label="median")
        axes.axvline(epsilon, color=ORANGE, linewidth=1, linestyle="dashed", label=f"ε = {epsilon:g}")
        axes.set(xscale="log", ylim=(min(0.0, float(low.min())), 1.02))
        axes.set_xticks(budgets, [f"{one:g}" for one in budgets])
        axes.minorticks_off()
        axes.set(xlabel="ε", ylabel="rank correlation with open values")
        axes.legend(frameon=False)

    return Figure(
        f"At ε = {epsilon:g} private values agree with open ones to about {here:.2f}",
        as_svg(draw, 2.8),
        "Agreement of private with open values over ε.",
        PRIVATE,
    )
