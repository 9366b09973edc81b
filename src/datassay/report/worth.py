"""What is the data worth: who helps, who hurts, whose label to check."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay.evaluate import Suspects, detect_errors, likely_errors, removal_curve
from datassay.report.content import Block, Card, Facts, Figure, Grid, Number, Paragraph, Section
from datassay.report.figures import as_svg
from datassay.report.job import Job, count, named, percent
from datassay.results import Values
from datassay.value import knn_shapley

METHOD, ERRORS = "knn-shapley", "label-errors"
SHARES = tuple(round(0.05 * step, 2) for step in range(11))
FEWEST = 30  # records: with fewer no label is called a mistake
MANY_CLASSES = 8  # more are not told apart in a figure


def worth(job: Job) -> Section:
    """The section about values."""
    if job.sample.label is None:
        raise InputError("the table has no label: name the column to predict with --label")
    table = job.sample
    values = knn_shapley(table, X_val=job.validation, k=job.k, progress=job.stages.part("values", 0.45), **job.run)
    job.values = values
    suspects = likely_errors(table, values=values, progress=job.stages.part("values", 0.35), **job.run)
    if len(table) < FEWEST:  # neighbours are then nearly everybody
        suspects = replace(suspects, likely=np.zeros(len(table), bool))
    job.record("value", values.values)
    job.record("likely_mislabelled", suspects.likely)
    n, negative = len(values), values.values < 0
    likely = int(suspects.likely.sum())
    share = float(negative.mean())
    first = suspects.first(10)
    blocks: list[Block] = [_total(job, values), _distribution(values)]
    blocks += _classes(values, suspects)
    blocks.append(_ranked(job, values, suspects, "The ten records that hurt most", values.lowest(10)))
    if likely:
        blocks.append(
            job.listed(
                f"Check the labels of these first, of {count(likely, 'likely mistake')}",
                first,
                {
                    "label": [str(one) for one in suspects.labels[first]],
                    "its neighbours say": [str(one) for one in suspects.suggested[first]],
                    "share of them": [f"{one:.0%}" for one in suspects.votes[first]],
                    "value": [f"{one:.3g}" for one in suspects.values[first]],
                },
                ERRORS,
                "Neighbours can be wrong as well: look at the record before you change its label.",
            )
        )
    blocks.append(_ranked(job, values, suspects, "The ten records that help most", values.highest(10)))
    facts: Facts = {
        "records_valued": n,
        "share_negative": share,
        "likely_mislabelled": likely,
        "share_likely_mislabelled": likely / n,
        "score": float(_guess(values) + values.values.sum()),
    }
    if job.truth is not None:
        blocks.append(_checked(job, values, suspects, facts))
    if not job.quick and n >= 100:
        blocks += _removal(job, facts)
    harm = "hurts" if negative.sum() == 1 else "hurt"
    who = named(suspects.ids[first[:3]]) if likely else named(values.ids[values.lowest(3)])
    return Section(
        finding=(
            Number(count(int(negative.sum()), "record"), METHOD), " of ", f"{n:,} (", Number(percent(share), METHOD),
            f") {harm} more than they help, and ", Number(f"{likely:,}", ERRORS),
            f" {'looks' if likely == 1 else 'look'} mislabelled.",
        ),
        advice=(
            f"Check the labels of the records listed, beginning with {who}."
            if likely
            else f"Look at the records of least value, beginning with {who}.",
        ),
        cards=(
            Card("records of negative value", Number(percent(share), METHOD), f"{int(negative.sum()):,} of {n:,}"),
            Card("likely mislabelled", Number(f"{likely:,}", ERRORS), percent(likely / n) + " of the records"),
            Card("share of right neighbours", Number(f"{_guess(values) + values.values.sum():.3f}", METHOD),
                 f"guessing: {_guess(values):.3f}"),
        ),
        blocks=tuple(blocks),
        unseen=_unseen(job),
        facts=facts,
    )  # fmt: skip


def _guess(values: Values) -> float:
    return 1 / float(str(values.parameters["n_classes"]))


def _total(job: Job, values: Values) -> Paragraph:
    by = "the other records, each in turn" if job.validation is None else f"{job.validation.name}"
    return Paragraph(
        (
            "A record's value is what it adds, on average over all groups of the others, to how well the ",
            Number(f"{job.k}", METHOD), f" nearest neighbours predict {by}. Together the values bring the share of "
            "right neighbours from ", Number(f"{_guess(values):.3f}", METHOD), " (guessing) to ",
            Number(f"{_guess(values) + values.values.sum():.3f}", METHOD),
            ". A negative value means: to a random group of the others, the record does more harm than good.",
        )
    )  # fmt: skip


def _distribution(values: Values) -> Figure:
    classes = len(np.unique(values.labels)) if values.labels is not None else 0
    drawn = values if 1 < classes <= MANY_CLASSES else replace(values, labels=None)
    return Figure(
        f"{percent(float((values.values < 0).mean()))} of the records have a negative value",
        as_svg(drawn.plot),
        f"Values of {len(values):,} records" + (", by class." if drawn.labels is not None else "."),
        METHOD,
    )


def _classes(values: Values, suspects: Suspects) -> list[Block]:
    names, codes, sizes = np.unique(suspects.labels, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")[:10]
    rows = tuple(
        (
            str(names[c]),
            f"{sizes[c]:,}",
            f"{values.values[codes == c].mean():.3g}",
            percent(float((values.values[codes == c] < 0).mean())),
            f"{int(suspects.likely[codes == c].sum()):,}",
        )
        for c in order
    )
    more = "" if len(names) <= 10 else f"The ten largest of {len(names):,} classes."
    blocks: list[Block] = [
        Grid("By class", ("class", "records", "mean value", "negative", "likely mislabelled"), rows,
             ("text", "number", "number", "number", "number"), METHOD, more)
    ]  # fmt: skip
    shares = np.bincount(codes, values.values < 0) / sizes
    worst = int(shares.argmax())
    if shares[worst] > 0.5 and sizes[worst] < sizes.max():
        blocks.append(
            Paragraph(
                (
                    "Do not simply drop what is negative: ", Number(percent(float(shares[worst])), METHOD),
                    f" of the smaller class {names[worst]!s} would go. Classes of equal weight (--balance 1 of "
                    "datassay value) are fairer to small ones.",
                )
            )
        )  # fmt: skip
    return blocks


def _ranked(job: Job, values: Values, suspects: Suspects, title: str, rows: NDArray[np.intp]) -> Grid:
    return job.listed(
        title,
        rows,
        {
            "label": [str(one) for one in suspects.labels[rows]],
            "value": [f"{one:.3g}" for one in values.values[rows]],
            "likely mislabelled": ["yes" if one else "" for one in suspects.likely[rows]],
        },
        METHOD,
    )


def _checked(job: Job, values: Values, suspects: Suspects, facts: Facts) -> Block:
    assert job.truth is not None
    truth = job.truth[job.rows]
    if truth.all() or not truth.any():
        return Paragraph((f"The column {job.truth_name} marks all records or none: nothing to compare with.",))
    found = detect_errors(values, truth)
    right = float(truth[suspects.likely].mean()) if suspects.likely.any() else 0.0
    caught = float(suspects.likely[truth].mean())
    facts |= {
        "auroc": found.auroc,
        "mislabelled_precision": right,
        "mislabelled_recall": caught,
    }
    return Paragraph(
        (
            f"Compared with the column {job.truth_name}: low values find the marked records with AUROC ",
            Number(f"{found.auroc:.3f}", "detect-errors"), "; of those called likely mislabelled, ",
            Number(percent(right), "detect-errors"), " are marked, and these are ",
            Number(percent(caught), "detect-errors"), " of all that are marked.",
        )
    )  # fmt: skip


def _removal(job: Job, facts: Facts) -> list[Block]:
    train, validation, test = job.sample.split(0.6, 0.2, 0.2, seed=job.seed)
    if len(set(train.labels.tolist())) < 2:
        return []
    values = knn_shapley(train, X_val=validation, k=job.k, **job.run)
    curve = removal_curve(
        values, train, X_test=test, k=job.k, fractions=SHARES, n_random=10,
        seed=job.seed, progress=job.stages.part("values", 0.2), **job.run,
    )  # fmt: skip
    whole, tenth = float(curve.scores["accuracy"][0]), float(curve.scores["accuracy"][2])
    chance = float(curve.random["accuracy"][2])
    facts |= {"accuracy": whole, "accuracy_without_worst_tenth": tenth}
    noise = 2 * np.sqrt(whole * (1 - whole) / len(test))
    change = "hardly changes" if abs(tenth - whole) < noise else "improves" if tenth > whole else "spoils"
    return [
        Figure(
            f"Leaving out the least valuable tenth {change} predictions: accuracy {whole:.3f} → {tenth:.3f}",
            as_svg(lambda axes: curve.plot("accuracy", axes)),
            f"Accuracy of {job.k} nearest neighbours on {len(test):,} records that played no part in the values, as "
            f"records of a training set of {len(train):,} are left out; the band holds nine in ten of ten random "
            f"orders ({chance:.3f} at a tenth). Differences under {noise:.3f} are within chance.",
            "removal-curve",
        )
    ]


def _unseen(job: Job) -> tuple[str, ...]:
    found = [
        "Other models: values are those for nearest neighbours. datassay value --method data-shapley values for yours."
    ]
    if len(job.sample) < FEWEST:
        found.append(f"Mistaken labels: it takes {FEWEST} records to tell.")
    if job.sampled:
        found.append(f"{len(job.table) - len(job.sample):,} records that are not in the sample of {len(job.sample):,}.")
    if job.table.carried:
        found.append(f"Columns that are not features: {', '.join(job.table.carried)}.")
    return tuple(found)
