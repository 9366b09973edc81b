"""What can be told: values under differential privacy, and what ε means for the people in the data."""

import math
from typing import TYPE_CHECKING

import numpy as np

from datassay._errors import InputError
from datassay.evaluate import detect_errors
from datassay.privacy import Guarantee, private_tknn_shapley
from datassay.report.content import Card, Facts, Figure, Grid, Number, Paragraph, Section
from datassay.report.figures import as_svg
from datassay.report.job import Job
from datassay.value import tknn_shapley, tune_tau

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRIVATE, LEDGER = "private-tknn-shapley", "ledger"
TRIED = (0.1, 0.5, 1.0, 2.0, 5.0)
MOST_VALIDATION = 200  # every validation point needs noise of its own: more of them, more noise


def told(job: Job) -> Section:
    """The section about private values."""
    if job.sample.label is None:
        raise InputError("private values are values, and the table has no label: name it with --label")
    if len(job.sample) < 50 and job.validation is None:
        raise InputError(
            f"{len(job.sample)} records are too few to set some apart as public ones: it takes 50, or a file of public "
            "records with --validation"
        )
    from scipy.stats import spearmanr

    if job.validation is None:
        private, public = job.sample.split(0.8, seed=job.seed)
    else:
        private, public = job.sample, job.validation
    if len(public) > MOST_VALIDATION:
        public = public.select(np.sort(np.random.default_rng(job.seed).permutation(len(public))[:MOST_VALIDATION]))
    tau = float(tune_tau(public, n_jobs=job.n_jobs).best)  # of the public records alone
    openly = tknn_shapley(private, X_val=public, tau=tau, **job.run)
    budgets = sorted({job.epsilon} if job.quick else {*TRIED, job.epsilon})
    show = job.stages.part("private values")
    agree, caught = {}, {}
    guarantee: Guarantee | None = None
    truth = None
    if job.truth is not None:
        marked = dict(zip(job.table.ids.tolist(), job.truth.tolist(), strict=True))
        truth = np.array([marked[one] for one in private.ids.tolist()], bool)
        truth = None if truth.all() or not truth.any() else truth
    for at, epsilon in enumerate(budgets):
        values = private_tknn_shapley(private, X_val=public, tau=tau, epsilon=epsilon, delta=job.delta, **job.run)
        alike = np.ptp(openly.values) == 0 or np.ptp(values.values) == 0
        agree[epsilon] = 0.0 if alike else float(spearmanr(values.values, openly.values).statistic)
        if truth is not None:
            caught[epsilon] = detect_errors(values.values, truth).auroc
        if epsilon == job.epsilon:
            guarantee = values.guarantee
        show(at + 1, len(budgets))
    assert guarantee is not None
    here = agree[job.epsilon]
    facts: Facts = {
        "epsilon": job.epsilon,
        "delta": job.delta,
        "private_rank_correlation": here,
        **{f"private_rank_correlation.{epsilon:g}": one for epsilon, one in agree.items()},
    }
    enough = [epsilon for epsilon in budgets if agree[epsilon] >= 0.8]
    good = here >= 0.8
    times = math.exp(job.epsilon)
    where = "a fifth of the table" if job.validation is None else job.validation.name
    return Section(
        finding=(
            "Each owner can be told what their record is worth with ε = ", Number(f"{job.epsilon:g}", PRIVATE),
            ": such values agree with the open ones to a rank correlation of ", Number(f"{here:.2f}", PRIVATE), ".",
        ),
        advice=(
            "Tell each owner their own value, and keep a ledger of what is told."
            if good
            else f"Raise ε to {enough[0]:g}, or bring more public records, before you rely on their order."
            if enough
            else "Too much noise: bring more records before you tell owners a value.",
        ),
        cards=(
            Card("ε", Number(f"{job.epsilon:g}", PRIVATE), f"δ = {job.delta:.2g}, {guarantee.neighbours}"),
            Card("agreement with open values", Number(f"{here:.2f}", PRIVATE), "rank correlation"),
            Card("odds of being found out", Number(f"× {times:.3g}", PRIVATE), "at the most, up to δ"),
        ),
        blocks=(
            Paragraph(("What is promised: ", Number(str(guarantee), PRIVATE), ".")),
            Paragraph(
                (
                    "What ε means: whatever anybody concludes from the values told, they would conclude it with nearly "
                    "the same probability had any one record been left out or added: at most ",
                    Number(f"e^{job.epsilon:g} = {times:.3g}", PRIVATE), " times as likely, but for a chance of ",
                    Number(f"{job.delta:.2g}", PRIVATE), ". Somebody who thought it as likely as not that a person is "
                    "in the data can become at most ", Number(f"{times / (1 + times):.0%}", PRIVATE), " sure of it. "
                    f"An ε of 0.1 allows {math.exp(0.1) / (1 + math.exp(0.1)):.1%}, one of 5 allows "
                    f"{math.exp(5) / (1 + math.exp(5)):.1%}.",
                )
            ),
            *((_curve(agree, job.epsilon, here),) if len(agree) > 1 else ()),
            Grid(
                "What each ε buys",
                ("ε", "agreement with open values", *(("finds marked records (AUROC)",) if caught else ())),
                tuple(
                    (f"{epsilon:g}", f"{agree[epsilon]:.2f}", *((f"{caught[epsilon]:.3f}",) if caught else ()))
                    for epsilon in budgets
                ),
                ("number", "number", *(("number",) if caught else ())),
                PRIVATE,
                "Noise is drawn anew in every report, and no seed repeats it.",
            ),
            Paragraph(
                (
                    f"This was a trial with {len(public):,} records of {where} in the place of public ones: nothing "
                    "was released and no budget was spent. To do it for real, with a ",
                    Number("ledger", LEDGER), " that cannot be overspent: datassay private-value people.csv "
                    f"--validation public.csv --epsilon {job.epsilon:g} --ledger market.ledger --budget-epsilon "
                    f"{2 * job.epsilon:g}.",
                )
            ),
        ),
        unseen=(
            "This page itself: it is made of the data and promises no privacy.",
            "Private releases of anything but values of records.",
        ),
        facts=facts,
    )  # fmt: skip


def _curve(agree: dict[float, float], epsilon: float, here: float) -> Figure:
    def draw(axes: "Axes") -> None:
        axes.plot(list(agree), list(agree.values()), marker="o", markersize=4, color="#4477aa")
        axes.axvline(epsilon, color="#bbbbbb", linewidth=1, linestyle="dashed", label=f"ε = {epsilon:g}")
        axes.set(xscale="log", ylim=(min(0.0, *agree.values()), 1.02))
        axes.set_xticks(list(agree), [f"{one:g}" for one in agree])
        axes.minorticks_off()
        axes.set_xlabel("ε")
        axes.set_ylabel("rank correlation with open values")
        axes.legend(frameon=False)

    return Figure(
        f"At ε = {epsilon:g} private values agree with open ones to {here:.2f}",
        as_svg(draw, 2.8),
        "Agreement of private with open values over ε; one draw of noise each.",
        PRIVATE,
    )
