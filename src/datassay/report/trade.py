"""How to trade: what a consumer would buy at which prices, and how many owners that pays."""

import numpy as np

import datassay as da
from datassay._checks import counted
from datassay._errors import InputError
from datassay.report.content import Card, Facts, Figure, Grid, Number, Section, paragraph, sentence
from datassay.report.figures import as_svg
from datassay.report.job import Job, percent

METHOD = "price"
SHARE = 0.8


def trade(job: Job) -> Section:
    """The section about prices."""
    values = job.valued()
    if not (values.values > 0).any():
        raise InputError("no record has a positive value: there is nothing to sell")
    found = da.search_prices(values, share=SHARE, progress=job.stages.part("prices"))
    best, fair = found.best, found.most_inclusive
    n = len(values)
    least, most = (percent(float(end)) for end in (np.min(found.inclusiveness), np.max(found.inclusiveness)))
    by_revenue, at_most = (percent(float(found.inclusiveness[at])) for at in (best, fair))
    sure = int(found.proven.sum())
    proven = f"all {len(found)} prices."
    if sure < len(found):
        proven = f"{sure} of {len(found)} prices; elsewhere it is the best found."
    facts: Facts = {
        "owners_paid_at_highest_revenue": float(found.inclusiveness[best]),
        "owners_paid_at_most": float(found.inclusiveness[fair]),
        "gini_at_highest_revenue": float(found.gini[best]),
    }
    rows = []
    for title, at in (("highest revenue", best), ("most owners paid", fair)):
        prices = (f"{found.theta[at]:g}", f"{found.gamma[at]:.3g}", f"{found.cost[at]:.3g}")
        paid = (f"{int(found.bought[at]):,}", percent(float(found.inclusiveness[at])), f"{found.gini[at]:.2f}")
        rows.append((title, *prices, *paid))
    return Section(
        finding=sentence(
            f"A consumer who wants {SHARE:.0%} of the value pays ⟦{by_revenue}⟧ of the owners at the prices that earn "
            f"most, and ⟦{at_most}⟧ at those that pay the most owners.",
            METHOD,
        ),
        advice=sentence(
            "Sell none of it by these values: they say little of single records here."
            if not job.telling
            else "None of the prices that were tried pays more owners."
            if found.inclusiveness[fair] <= found.inclusiveness[best]
            else f"For many owners to be paid, choose θ = ⟦{found.theta[fair]:g}⟧ and γ = ⟦{found.gamma[fair]:.3g}⟧.",
            METHOD,
        ),
        cards=(
            Card("owners paid, highest revenue", Number(by_revenue, METHOD)),
            Card("owners paid, at most", Number(at_most, METHOD), f"of {n:,}"),
        ),
        blocks=(
            paragraph(
                "Each record is taken to have an owner. One of value φ > 0 costs φ + γ φ^θ. The consumer buys the "
                "cheapest records that add up to what they want; "
                f"⟦{counted(int((values.values > 0).sum()), 'record')}⟧ of {n:,} are for sale.",
                METHOD,
            ),
            Figure(
                f"The prices decide who is paid: {least} to {most} of the owners"
                if least != most
                else f"At all prices that were tried {most} of the owners are paid",
                as_svg(found.plot),
                "Share of owners paid against θ, a line for each markup (privacy cost as a part of the value).",
                METHOD,
            ),
            Grid(
                "Two choices of the owner",
                ("prices", "θ", "γ", "revenue", "records sold", "owners paid", "Gini of payments"),
                tuple(rows),
                ("text", "number", "number", "number", "number", "number", "number"),
                METHOD,
                f"Nothing cheaper would do, and that is proven, at {proven}",
            ),
        ),
        unseen=(
            "What anybody would really pay: prices are in units of value.",
            "Noisy copies instead of records: datassay market play.",
        ),
        facts=facts,
    )
