"""What is the data worth: who helps, who hurts, whose label to check."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from datassay._checks import counted
from datassay._errors import InputError
from datassay.evaluate import Suspects, detect_errors, likely_errors, removal_curve
from datassay.report.content import Block, Card, Facts, Figure, Grid, Kind, Number, Section, paragraph, sentence
from datassay.report.figures import as_svg
from datassay.report.job import FEWEST, Job, percent
from datassay.report.methods import METHODS
from datassay.results import Values
from datassay.value import knn_shapley

METHOD, ERRORS = "knn-shapley", "label-errors"
ORDERS = 20  # of random removal beside that by value
SHARES = tuple(round(0.05 * step, 2) for step in range(11))
LOPSIDED = 0.8  # share of a smaller class of negative value from which values are more about the class
MANY_CLASSES = 8  # more are not told apart in a figure


def worth(job: Job) -> Section:
    """The section about values."""
    values = job.valued(0.7)
    votes = 2 * job.k
    suspects = likely_errors(job.near, values=values, k=votes, progress=job.stages.part("values", 0.1), **job.run)
    if "leaks" in job.wanted:  # from the same lists, which are in nobody's way afterwards
        with suppress(InputError):  # what is wrong is said there
            _ = job.exposed
    judged = job.telling = len(values) >= FEWEST and _predictable(suspects)
    by_chance = len(values) >= FEWEST and not judged
    if not judged:
        suspects = replace(suspects, likely=np.zeros(len(values), bool))
    job.record("value", values.values)
    if judged:
        job.record("likely_mislabelled", suspects.likely)
    n, negative = len(values), _negative(values)
    likely = int(suspects.likely.sum())
    share = float(negative.mean())
    first = suspects.first(10)
    score = _guess(values) + float(values.values.sum())
    classes = 0 if values.labels is None else len(np.unique(values.labels))
    drawn = values if 1 < classes <= MANY_CLASSES else replace(values, labels=None)
    distribution = Figure(
        f"{percent(share)} of the records have a negative value",
        as_svg(drawn.plot, x=METHODS[METHOD].title),
        f"Values of {n:,} records" + ("." if drawn.labels is None else ", by class."),
        METHOD,
    )
    blocks: list[Block] = [_total(job, values), distribution, *_classes(values, suspects, judged)]
    blocks.append(_ranked(job, values, suspects, values.lowest(10), -1, judged))
    if likely:
        blocks.append(
            job.listed(
                f"Check the labels of these first, of {counted(likely, 'likely mistake')}",
                first,
                {
                    "label": [str(one) for one in suspects.labels[first]],
                    "its neighbours say": [str(one) for one in suspects.suggested[first]],
                    f"of its {votes} neighbours": [f"{one:.0%}" for one in suspects.votes[first]],
                    "value": [f"{one:.3g}" for one in suspects.values[first]],
                },
                ERRORS,
                "Neighbours can be wrong as well: look at the record before you change its label.",
            )
        )
    blocks.append(_ranked(job, values, suspects, values.highest(10), 1, judged))
    facts: Facts = {
        "records_valued": n,
        "share_negative": share,
        "likely_mislabelled": likely if judged else None,
        "share_likely_mislabelled": likely / n if judged else None,
        "score": score,
    }
    if job.truth is not None:
        blocks.append(_checked(job, values, suspects, facts))
    if not job.quick and n >= 100:
        blocks += _removal(job, facts)
    _, worst, smaller = _negative_in(values, suspects.labels)
    lopsided = ""
    if smaller and worst > LOPSIDED:
        lopsided = (
            f" But {percent(worst)} of the smaller class {smaller} have a negative value: weigh classes alike "
            "(--balance 1) before you act on values."
        )
    harm = "hurts more than it helps" if negative.sum() == 1 else "hurt more than they help"
    who = job.these(suspects.ids[first[:3]] if likely else values.ids[values.lowest(3)])
    mistaken = sentence(f", and ⟦{likely:,}⟧ {'looks' if likely == 1 else 'look'} mislabelled.", ERRORS)
    return Section(
        finding=(
            "Neighbours do not clearly agree on labels more often than by chance, so that values say little of single "
            "records: " if by_chance else "",
            *sentence(f"⟦{counted(int(negative.sum()), 'record')}⟧ of {n:,} (⟦{percent(share)}⟧) {harm}", METHOD),
            *(mistaken if judged else (".",)),
        ),
        advice=(
            "Act on no single value; look for attributes that tell the label, or value the records for a model of "
            "your own."
            if by_chance
            else f"Check the labels of the records listed, beginning with {who}.{lopsided}"
            if likely
            else f"Look at the records of least value, beginning with {who}."
            + (f" Of {n} records, though, little is sure." if n < FEWEST else ""),
        ),
        cards=(
            Card("records of negative value", Number(percent(share), METHOD), f"{int(negative.sum()):,} of {n:,}"),
            *((Card("likely mislabelled", Number(f"{likely:,}", ERRORS), f"{percent(likely / n)} of the records"),)
              if judged else ()),
            Card(
                "share of right neighbours", Number(f"{score:.3f}", METHOD),
                f"guessing: {_guess(values):.3f}; always the most frequent class: {_most_frequent(job):.3f}",
            ),
        ),
        blocks=tuple(blocks),
        unseen=_unseen(job),
        facts=facts,
    )  # fmt: skip


def _negative(values: Values) -> NDArray[np.bool_]:
    """Who hurts: values that are negative beyond rounding."""
    return np.asarray(values.values < -1e-12)


def _predictable(suspects: Suspects) -> bool:
    """Whether neighbours agree on labels more often than by chance: if not, no label can be called a mistake."""
    sizes = np.unique(suspects.labels, return_counts=True)[1] / len(suspects)
    chance, n = float((sizes**2).sum()), len(suspects)
    return bool(suspects.own.mean() > chance + 3 * np.sqrt(chance * (1 - chance) / n))


def _guess(values: Values) -> float:
    return 1 / float(str(values.parameters["n_classes"]))


def _negative_in(values: Values, labels: NDArray[np.generic]) -> tuple[NDArray[np.float64], float, str]:
    """The share of each class that hurts; the largest of them, and the class if it is smaller than another."""
    names, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    shares = np.bincount(codes, _negative(values)) / sizes
    worst = int(shares.argmax())
    return shares, float(shares[worst]), str(names[worst]) if sizes[worst] < sizes.max() else ""


def _most_frequent(job: Job) -> float:
    """How often the most frequent class is right."""
    return float(np.unique(job.judges.labels, return_counts=True)[1].max() / len(job.judges))


def _total(job: Job, values: Values) -> Block:
    by = "the other records, each in turn" if job.validation is None else f"{job.validation.name}"
    return paragraph(
        f"A record's value is what it adds, on average over all groups of the others, to how well the ⟦{job.k}⟧ "
        f"nearest neighbours predict {by}. Together the values bring the share of right neighbours from "
        f"⟦{_guess(values):.3f}⟧ (guessing) to ⟦{_guess(values) + values.values.sum():.3f}⟧; always naming the "
        f"most frequent class would be right for ⟦{_most_frequent(job):.3f}⟧. A negative value means: to a random "
        "group of the others, the record does more harm than good.",
        METHOD,
    )


def _classes(values: Values, suspects: Suspects, judged: bool) -> list[Block]:
    names, codes, sizes = np.unique(suspects.labels, return_inverse=True, return_counts=True)
    means = np.bincount(codes, values.values) / sizes
    shares, worst, smaller = _negative_in(values, suspects.labels)
    mistaken = np.bincount(codes, suspects.likely)
    columns, rows = ["class", "records", "mean value", "negative"], []
    for c in np.argsort(-sizes, kind="stable")[:10]:
        row = [str(names[c]), f"{sizes[c]:,}", f"{means[c]:.3g}", percent(float(shares[c]))]
        rows.append((*row, f"{int(mistaken[c]):,}") if judged else tuple(row))
    columns += ["likely mislabelled"] if judged else []
    numbers: list[Kind] = ["number" for _ in columns[1:]]
    more = "" if len(names) <= 10 else f"The ten largest of {len(names):,} classes."
    blocks: list[Block] = [Grid("By class", tuple(columns), tuple(rows), ("text", *numbers), METHOD, more)]
    if smaller and worst > 0.5:
        blocks.append(
            paragraph(
                f"Do not simply drop what is negative: ⟦{percent(worst)}⟧ of the smaller class, {smaller}, "
                "would go. Classes of equal weight (--balance 1) are fairer to small ones.",
                METHOD,
            )
        )
    return blocks


def _ranked(job: Job, values: Values, suspects: Suspects, rows: NDArray[np.intp], sign: int, judged: bool) -> Grid:
    """The records of most or of least value; the title says that they help or hurt only if all of them do."""
    so = bool((np.sign(values.values[rows]) == sign).all())
    kind = ("that help most" if so else "of most value") if sign > 0 else ("that hurt most" if so else "of least value")
    return job.listed(
        f"The {len(rows)} records {kind}" if len(rows) < 10 else f"The ten records {kind}",
        rows,
        {
            "label": [str(one) for one in suspects.labels[rows]],
            "value": [f"{one:.3g}" for one in values.values[rows]],
            **({"likely mislabelled": ["yes" if one else "" for one in suspects.likely[rows]]} if judged else {}),
        },
        METHOD,
    )


def _checked(job: Job, values: Values, suspects: Suspects, facts: Facts) -> Block:
    assert job.truth is not None
    truth = job.truth[job.rows]
    if truth.all() or not truth.any():
        return paragraph(f"The column {job.truth_name} marks all records or none: nothing to compare with.", METHOD)
    found = detect_errors(values, truth)
    right = float(truth[suspects.likely].mean()) if suspects.likely.any() else 0.0
    caught = float(suspects.likely[truth].mean())
    facts |= {"auroc": found.auroc, "mislabelled_precision": right, "mislabelled_recall": caught}
    return paragraph(
        f"Compared with the column {job.truth_name}: low values find the marked records with AUROC "
        f"⟦{found.auroc:.3f}⟧; of those called likely mislabelled, ⟦{percent(right)}⟧ are marked, and these are "
        f"⟦{percent(caught)}⟧ of all that are marked.",
        "detect-errors",
    )


def _removal(job: Job, facts: Facts) -> list[Block]:
    train, validation, test = job.sample.split(0.6, 0.2, 0.2, seed=job.seed)
    if len(set(train.labels.tolist())) < 2:
        return []
    values = knn_shapley(train, X_val=validation, k=job.k, **job.run)
    curve = removal_curve(
        values, train, X_test=test, k=job.k, fractions=SHARES, n_random=ORDERS,
        seed=job.seed, progress=job.stages.part("values", 0.2), **job.run,
    )  # fmt: skip
    whole, tenth = float(curve.scores["accuracy"][0]), float(curve.scores["accuracy"][2])
    chance = float(curve.random["accuracy"][2])
    facts |= {"accuracy": whole, "accuracy_without_worst_tenth": tenth}
    share = (whole * len(test) + 2) / (len(test) + 4)  # Agresti & Coull: of use at 0 and 1 as well
    noise = float(2 * np.sqrt(share * (1 - share) / (len(test) + 4)))
    change = "improves" if tenth > whole + noise else "spoils" if tenth < whole - noise else "does not clearly change"
    hurting = float(_negative(values).mean())
    step = int(np.clip(round(hurting / 0.05), 0, len(SHARES) - 1))
    there, by_chance = float(curve.scores["accuracy"][step]), float(curve.random["accuracy"][step])
    verdict = (
        "better than" if there > by_chance + noise else "worse than" if there < by_chance - noise
        else "no better, beyond chance, than"
    )  # fmt: skip
    return [
        Figure(
            f"Leaving out the least valuable tenth {change} predictions: accuracy {whole:.3f} → {tenth:.3f}",
            as_svg(lambda axes: curve.plot("accuracy", axes)),
            f"Accuracy of {job.k} nearest neighbours on {len(test):,} records that played no part in the values, as "
            f"records of a training set of {len(train):,} are left out; the band is from the 5% to the 95% quantile of "
            f"{ORDERS} random orders ({chance:.3f} on average at a tenth). Differences up to about {noise:.3f} are "
            "within chance.",
            "removal-curve",
        ),
        paragraph(
            f"Leaving out about as many as have a negative value, ⟦{SHARES[step]:.0%}⟧, gives an accuracy of "
            f"⟦{there:.3f}⟧: {verdict} leaving out as many at random (⟦{by_chance:.3f}⟧). Values say whom to look "
            "at, not whom to drop unseen.",
            "removal-curve",
        ),
    ]


def _unseen(job: Job) -> tuple[str, ...]:
    found = [
        "Other models: values are those for nearest neighbours. datassay value --method data-shapley values for yours."
    ]
    if not job.telling:
        found.append(
            f"Mistaken labels: it takes {FEWEST} records, and labels that neighbours agree on more often than by "
            "chance."
        )
    if job.sampled:
        found.append(f"{len(job.table) - len(job.sample):,} records that are not in the sample of {len(job.sample):,}.")
    if job.table.carried:
        found.append(f"Columns that are not features: {', '.join(job.table.carried)}.")
    return tuple(found)
