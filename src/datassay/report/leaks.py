"""What does the data leak: can members be told from others, and who is exposed for little use."""

import numpy as np
from numpy.typing import NDArray

from datassay.attacks import QUADRANTS, value_and_exposure
from datassay.report.content import Block, Card, Facts, Figure, Number, Section, paragraph, sentence
from datassay.report.figures import as_svg
from datassay.report.job import FEWEST, Job, percent
from datassay.report.methods import METHODS

ATTACK, JOINED = "membership-attack", "value-and-exposure"
FEW = 200  # records: with fewer, what holds of these may not hold of others
DRAWN = 1500  # points in a figure; a page has to stay small


def leaks(job: Job) -> Section:
    """The section about membership and exposure."""
    values = job.valued()
    table, n, k = job.sample, len(job.sample), job.attacked_k
    exposure, attack = job.exposed
    joined = value_and_exposure(values, exposure)
    job.record("exposure", joined.exposure)
    job.record("quadrant", joined.quadrants)
    delete = joined.quadrants == QUADRANTS[0]
    auc, (low, high) = attack.auc, attack.interval()
    works, sure = low > 0.5, job.telling and n >= FEWEST
    drawn = "all records" if len(joined) <= DRAWN else f"{DRAWN:,} of {len(joined):,} records"
    one_class = _of_which_class(table.labels, delete)
    first = joined.candidates(10)
    likely = job.records.get("likely_mislabelled")  # nothing is said where no label was judged
    doubtful = None if likely is None else likely[job.rows][first].astype(np.float64) == 1
    tpr, deleted = attack.tpr(0.05), int(delete.sum())
    facts: Facts = {"auc": auc, "auc_low": low, "auc_high": high, "tpr.0.05": tpr, "delete_first": deleted}
    few = "Allowed to be wrong about 5% of those who are not members, the attacker finds "
    few += f"⟦{percent(tpr)}⟧ of the members."
    blocks: list[Block] = [
        paragraph(
            f"The attack: someone who knows a record asks whether it was among the data of a model of the ⟦{k}⟧ "
            f"nearest neighbours, by the model's error on it. In ⟦{len(attack):,}⟧ trials on models of half of the "
            f"records, a member got a higher score than someone else ⟦{percent(auc)}⟧ of the time, ties counted "
            f"half (AUC ⟦{auc:.3f}⟧, 95% interval {low:.3f} to {high:.3f}; guessing is 0.5). "
            + (few if int((~attack.members).sum()) * 0.05 >= 1 else ""),
            ATTACK,
        ),
        Figure(
            f"{_verdict(low, auc)}: AUC {auc:.2f}",
            as_svg(lambda axes: attack.plot(axes, "t-WaKA")),
            "How many members are found, against how many others are taken for members, both on logarithmic axes; the "
            "dotted line is guessing.",
            ATTACK,
        ),
        Figure(
            f"{percent(float(delete.mean()))} of the records are among the most exposed and the least valuable quarter",
            as_svg(lambda axes: joined.plot(axes, DRAWN), 3.8, x=METHODS["knn-shapley"].title, y="exposure: self-WaKA"),
            f"Value against exposure (self-WaKA: how much a record's own presence shows in the model's error on it). "
            f"Low value is the lowest quarter, high exposure the highest; {drawn} are drawn.",
            JOINED,
        ),
    ]
    if len(first):
        blocks.append(
            job.listed(
                "Delete these first: of low value, the most exposed first"
                if works and sure
                else "Of low value, the most exposed first",
                first,
                {
                    "value": [f"{one:.3g}" for one in joined.values[first]],
                    "exposure": [f"{one:.3g}" for one in joined.exposure[first]],
                    **({} if doubtful is None else {"likely mislabelled": ["yes" if one else "" for one in doubtful]}),
                },
                JOINED,
                "A mislabelled record is exposed because nobody near it has its label: mend the label, and look again. "
                f"No exposure can be more than 1/(2k) = {0.5 / k:.3g}. {one_class}These "
                "are records that a model gives away; whom their attributes give away is another question.",
            )
        )
    return Section(
        finding=(
            *sentence(
                f"{_verdict(low, auc)} of a nearest-neighbour model (AUC ⟦{auc:.2f}⟧; guessing is 0.5). Of ", ATTACK
            ),
            *sentence(
                f"⟦{n:,}⟧ records ⟦{deleted:,}⟧ {'is' if deleted == 1 else 'are'} among the most "
                "exposed quarter and the least valuable one.",
                JOINED,
            ),
        ),
        advice=(
            "Mend the records listed first, and weigh classes alike (--balance 1) before you delete any: one class is "
            "among them far more often than among all."
            if len(first) and works and sure and one_class
            else "Mend or delete the records listed first: they cost privacy and bring little."
            if len(first) and works and sure
            else "Delete nobody for this: values say little here."
            if not sure
            else "Nothing has to be deleted for this.",
        ),
        cards=(
            Card("AUC of the attack", Number(f"{auc:.3f}", ATTACK), f"{low:.3f} to {high:.3f}"),
            Card("members found at 5% false alarms", Number(percent(tpr), ATTACK), "guessing: 5%"),
            Card("most exposed, least valuable", Number(f"{deleted:,}", JOINED), f"of {n:,} records"),
        ),
        blocks=tuple(blocks),
        unseen=(
            "Other models: a network that learns by heart leaks more (da.membership_attack with model= is for yours).",
            *((f"Other people: the interval is about the games played with these {n} records, which are few.",)
              if n < FEW else ()),
            "Attackers who see more than the model's error on a record, or who ask about many records at once.",
            *((f"{len(job.table) - n:,} records that are not in the sample.",) if job.sampled else ()),
        ),
        facts=facts,
    )  # fmt: skip


def _verdict(low: float, auc: float) -> str:
    if low <= 0.5:
        return "This attack does not tell members from others by the errors"
    degree = "hardly" if auc < 0.55 else "somewhat" if auc < 0.7 else "well"
    return f"Members can {degree} be told from others by the errors"


def _of_which_class(labels: NDArray[np.generic], delete: NDArray[np.bool_]) -> str:
    """Whether those to be deleted first are of one class far more than others are."""
    names, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    there = np.bincount(codes[delete], minlength=len(names))
    shares, of_all = there / max(1, int(there.sum())), sizes / len(labels)
    c = int((shares - of_all).argmax())
    if shares[c] - of_all[c] < 0.2:
        return ""
    return (
        f"Of all {there.sum():,} such records {percent(float(shares[c]))} have the label {names[c]!s}, as have "
        f"{percent(float(of_all[c]))} of all records: deleting them thins out that class. "
    )
