"""Published tables on who can be found, done again: uniqueness Shapley (Seiler, Mase & Owen)."""

from math import log
from typing import Final

import numpy as np

import datassay as da
from datassay.reproduce.engine import Cell, Redone, answered, reproduction, row

# Table 3: entropy, Shapley value, and Shapley value of regions with common, moderate and severe flares.
FLARE_TABLE: Final = {
    "zurich_class": (1.64, 1.37, 1.72, 1.62, 1.81),
    "largest_spot_size": (1.52, 1.55, 1.69, 1.62, 1.23),
    "spot_distribution": (1.16, 0.92, 1.17, 1.34, 1.49),
    "activity": (0.43, 0.45, 0.73, 0.67, 0.86),
    "evolution": (0.90, 1.17, 0.98, 0.98, 0.85),
    "previous_activity": (0.18, 0.16, 0.33, 0.43, 0.93),
    "historically_complex": (0.67, 0.77, 0.69, 0.69, 0.29),
    "this_pass": (0.38, 0.35, 0.15, 0.11, 0.03),
    "area": (0.12, 0.07, 0.22, 0.43, 1.36),
}


@reproduction("uniqueness-flare", "What makes solar flares unique (uniqueness Shapley, Table 3)")
def _uniqueness_flare() -> Redone:
    table = da.load_dataset("solar_flare")
    found = da.uniqueness_shapley(table, list(FLARE_TABLE))
    everyone = found.mean()
    ours = {"entropy, nats": everyone.entropies * log(2), "Shapley, bits": everyone.values}
    for kind, column in (("common", "c_class"), ("moderate", "m_class"), ("severe", "x_class")):
        ours[kind] = found.mean(table[column].astype(int) > 0).values
    cells = [
        Cell(name, column, float(values[j]), number, spread=0.005)
        for j, (name, published) in enumerate(FLARE_TABLE.items())
        for (column, values), number in zip(ours.items(), published, strict=True)
    ]
    worst = max(abs(cell.ours - (cell.published or 0.0)) for cell in cells)
    finding = (
        f"all {len(cells)} numbers come out to within {worst:.4f}. The published entropies are in nats and the values "
        "beside them in bits: in bits every entropy exceeds its Shapley value"
    )
    return Redone(cells, finding, all(cell.agrees() for cell in cells))


VOTER_COLUMNS: Final = ("zip", "race", "party", "gender", "age")
# Tables 4 to 6, in the order of VOTER_COLUMNS.
VOTERS_SHAPLEY: Final = (8.58, 1.22, 1.48, 1.17, 5.39)
VOTERS_ENTROPY_NATS: Final = (6.08, 1.08, 1.14, 0.92, 4.24)
VOTER_GROUPS: Final = {
    ("party", "Democratic"): (8.44, 1.54, 1.31, 1.14, 5.47),
    ("party", "Libertarian"): (8.15, 1.16, 6.65, 1.14, 4.54),
    ("party", "Republican"): (8.76, 0.72, 1.51, 1.15, 5.50),
    ("party", "None"): (8.57, 1.32, 1.51, 1.22, 5.23),
    ("gender", "Female"): (8.58, 1.18, 1.46, 0.97, 5.46),
    ("gender", "Male"): (8.61, 1.15, 1.49, 1.20, 5.40),
    ("gender", "No Answer"): (8.42, 1.76, 1.53, 2.24, 4.91),
    ("race", "White"): (8.75, 0.53, 1.58, 1.09, 5.52),
    ("race", "Black"): (8.28, 1.70, 1.14, 1.10, 5.35),
    ("race", "Asian"): (7.56, 5.44, 1.44, 1.09, 5.01),
    ("race", "Native American"): (7.64, 5.14, 1.40, 1.01, 5.13),
    ("race", "No Answer"): (8.45, 2.27, 1.54, 1.91, 4.94),
    ("age", "< 32"): (8.49, 1.52, 1.52, 1.26, 4.63),
    ("age", "32 to < 48"): (8.48, 1.33, 1.50, 1.20, 5.22),
    ("age", "48 to < 64"): (8.61, 1.13, 1.46, 1.15, 5.33),
    ("age", "≥ 64"): (8.71, 0.90, 1.44, 1.09, 6.34),
}
VOTER_CHANGES: Final = {
    ("zip", "county"): (5.55, 1.27, 1.50, 1.19, 5.43),
    ("zip", "one bucket"): (0.00, 1.32, 1.53, 1.19, 5.45),
    ("age", "5"): (8.61, 1.24, 1.50, 1.18, 3.34),
    ("age", "10"): (8.62, 1.24, 1.50, 1.19, 2.39),
    ("age", "25"): (8.63, 1.25, 1.51, 1.19, 1.19),
    ("age", "one bucket"): (8.64, 1.25, 1.51, 1.19, 0.00),
}


@reproduction("uniqueness-voters", "What identifies 7.5 million voters, simulated (uniqueness Shapley, Tables 4–6)")
def _uniqueness_voters() -> Redone:
    found = da.uniqueness_shapley(da.voters(7_538_125), VOTER_COLUMNS)
    means = found.mean()
    entropies = dict(zip(VOTER_COLUMNS, means.entropies * log(2), strict=True))
    cells = row("everyone, Shapley, bits", dict(zip(VOTER_COLUMNS, means.values, strict=True)), VOTERS_SHAPLEY)
    cells += row("everyone, entropy, nats", entropies, VOTERS_ENTROPY_NATS)
    kinds = dict.fromkeys(kind for kind, _ in VOTER_GROUPS)
    groups = {name: found.by(name, [32, 48, 64] if name == "age" else "as it is") for name in kinds}
    for (kind, group), published in VOTER_GROUPS.items():
        cells += row(f"{kind} {group}", groups[kind].of(group), published)
    changes = found.compare(coarsen={"zip": ("county", None), "age": (5, 10, 25, None)})
    for (name, step), published in VOTER_CHANGES.items():
        cells += row(f"{name}: {step}", changes.of(f"{name}: {step}"), published)
    patterns = {
        "zip, age, party, race, gender identify in this order": _order(means.values) == _order(VOTERS_SHAPLEY),
        "the smaller a party, gender or race, the more it identifies": all(
            _falls_with_size(groups[name], name) for name in ("party", "gender", "race")
        ),
        "race identifies the less the older": bool((np.diff(groups["age"].values[:, 1]) < 0).all()),
        "coarsening lowers an attribute to nothing and moves the others by 0.15 bits at most": _only_itself(changes),
    }
    finding = (
        "the population is simulated from the published shares, so patterns are compared and not numbers: "
        f"{answered(patterns)}. The published entropies are in nats: in bits they exceed the Shapley values, where the "
        "paper says the reverse"
    )
    return Redone(cells, finding, all(patterns.values()))


def _order(values: object) -> list[int]:
    return [int(j) for j in np.argsort(-np.asarray(values), kind="stable")]


def _falls_with_size(table: da.AttributeTable, name: str) -> bool:
    """Whether larger groups have smaller values of the attribute itself; sizes within 1% of each other are the same."""
    people, own = table.beside["people"], table.values[:, VOTER_COLUMNS.index(name)]
    larger = people[:, None] > 1.01 * people[None, :]
    return bool((own[:, None] < own[None, :])[larger].all())


def _only_itself(changes: da.AttributeTable) -> bool:
    whole = changes.of("as it is")
    for name, steps in (("zip", ("county", "one bucket")), ("age", ("5", "10", "25", "one bucket"))):
        own = [whole[name], *(changes.of(f"{name}: {step}")[name] for step in steps)]
        last = changes.of(f"{name}: {steps[-1]}")
        moved = max(abs(last[other] - whole[other]) for other in VOTER_COLUMNS if other != name)
        if sorted(own, reverse=True) != own or own[-1] != 0 or moved > 0.15:
            return False
    return True
