"""Simulated people whose truth is known: a voter registry and a census.

No simulated record describes a real person.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay.data.table import Column, Table

# Table 5 of the uniqueness-Shapley paper, last column: share of each group among 7.5 million voters of North
# Carolina, in percent. Race sums to 96 there; the rest is "Other".
PARTY = {"Democratic": 36.0, "Libertarian": 1.0, "None": 33.0, "Republican": 30.0}
GENDER = {"Female": 49.0, "Male": 42.0, "No Answer": 8.0}
RACE = {"Asian": 1.0, "Black": 21.0, "Native American": 1.0, "No Answer": 10.0, "Other": 4.0, "White": 63.0}
# Table 4: entropies of zip code and age, in natural units. (All entropies of that table are: the party shares above
# have entropy 1.14 nats, 1.65 bits. The Shapley values beside them are in bits.)
ZIP_ENTROPY_NATS, AGE_ENTROPY_NATS = 6.08, 4.24
N_ZIPS, N_COUNTIES = 850, 100


def voters(n: int = 253_563, seed: int = 0) -> Table:
    """A simulated voter registry: zip code, race, party, gender and age, with the county carried along.

    Marginal shares follow Tables 4 and 5 of Seiler, Mase & Owen (uniqueness Shapley): the share of each party,
    gender and race, a quarter of the voters in each of the age bands 18–31, 32–47, 48–63 and 64 or more, and the
    entropy of the zip code (6.08 nats). Party depends on race and age, race on age, and an unanswered gender goes
    with an unanswered race, as Table 5 suggests; the zip code is independent of the rest but for race.

    Parameters
    ----------
    n, seed
        Number of records, and seed of the draws.

    References
    ----------
    Seiler, Mase & Owen, What makes you unique?

    Examples
    --------
    >>> table = voters(1000, seed=1)
    >>> table.features
    ('zip', 'race', 'party', 'gender', 'age')
    """
    n = _checks.integer("n", n, at_least=1)
    rng = np.random.default_rng(_checks.integer("seed", seed, at_least=0))
    band = _draw(rng, n, [25, 25, 25, 25])
    age = _age_within(rng, band)

    race_names = list(RACE)
    # The older the voter, the likelier "White" and the less likely an unanswered or minority race (Table 5).
    tilt = {"White": (0.82, 0.96, 1.07, 1.15), "No Answer": (1.7, 1.2, 0.7, 0.4), "Asian": (1.3, 1.3, 0.9, 0.5)}
    tilted = np.array([tilt.get(name, (1.15, 1.05, 1.0, 0.8)) for name in race_names]).T
    race_by_band = _fit(tilted, rows=[25.0] * 4, columns=list(RACE.values()))
    race = _draw_given(rng, band, race_by_band)

    lean = {"Black": (5.0, 0.5, 0.9, 0.1), "White": (0.7, 1.0, 0.9, 1.6), "Native American": (1.6, 0.5, 0.8, 0.8)}
    young = ((0.9, 1.8, 1.5, 0.7), (0.95, 1.4, 1.2, 0.9), (1.0, 0.7, 0.85, 1.15), (1.15, 0.3, 0.6, 1.2))
    group = band * len(race_names) + race
    leaning = np.array([lean.get(name, (0.9, 1.2, 1.6, 0.6)) for name in race_names])
    start = (leaning * np.array(young)[:, None]).reshape(-1, len(PARTY))
    party = _draw_given(rng, group, _fit(start, rows=race_by_band.ravel(), columns=list(PARTY.values())))

    gender_start = np.array([[1.0, 0.9, 12.0 if name == "No Answer" else 0.7] for name in race_names])
    gender = _draw_given(rng, race, _fit(gender_start, rows=list(RACE.values()), columns=list(GENDER.values())))

    # Zip codes of very unequal size; every race but White is over-represented in a part of them.
    sizes = _zip_sizes()
    skew = np.exp(0.5 * np.cos(np.arange(N_ZIPS) * 2.399963 + np.arange(len(race_names))[:, None] * 1.7))
    skew[race_names.index("White")] = 1.0
    zip_by_race = _fit(skew * sizes, rows=list(RACE.values()), columns=100 * sizes)
    zip_code = _draw_given(rng, race, zip_by_race)
    county_of = (np.arange(N_ZIPS) * N_COUNTIES) // N_ZIPS
    county_names = np.array([f"county {c:02d}" for c in range(N_COUNTIES)])
    zip_names = np.array([f"27{c:03d}" for c in range(N_ZIPS)])
    return Table(
        {
            "zip": Column("categorical", zip_code, zip_names),
            "race": Column("categorical", race, np.array(race_names)),
            "party": Column("categorical", party, np.array(list(PARTY))),
            "gender": Column("categorical", gender, np.array(list(GENDER))),
            "age": Column("numeric", age),
            "county": Column("categorical", county_of.astype(np.int32)[zip_code], county_names),
        },
        np.arange(n),
        carried=("county",),
        name="voters",
    )


def _zip_sizes() -> NDArray[np.float64]:
    """Log-normal zip code sizes whose entropy is that of Table 4."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    level = ndtri((np.arange(N_ZIPS) + 0.5) / N_ZIPS)

    def sizes(spread: float) -> NDArray[np.float64]:
        weights = np.exp(spread * level)
        return np.asarray(weights / weights.sum())

    def excess(spread: float) -> float:
        p = sizes(spread)
        return float(-(p * np.log(p)).sum() - ZIP_ENTROPY_NATS)

    # Neighbouring codes must not have neighbouring sizes: counties would then be all large or all small.
    shuffled = np.argsort((np.arange(N_ZIPS) * 0.6180339887) % 1.0)
    return sizes(float(brentq(excess, 0.1, 5.0)))[shuffled]


def _fit(start: NDArray[np.float64], rows: ArrayLike, columns: ArrayLike) -> NDArray[np.float64]:
    """Iterative proportional fitting: the table nearest to ``start`` with these row and column sums."""
    table = start / start.sum()
    row_sums, column_sums = rows / np.sum(rows), columns / np.sum(columns)
    for _ in range(200):
        table *= (row_sums / table.sum(axis=1))[:, None]
        table *= column_sums / table.sum(axis=0)
    return np.asarray(table)


_RESOLUTION = 2**16


def _thresholds(weights: Sequence[float] | NDArray[np.float64]) -> NDArray[np.int32]:
    """A look-up table from 16 random bits to a category: shares are met to within 1 in 65,536."""
    ends = np.round(np.cumsum(weights) / np.sum(weights) * _RESOLUTION).astype(int)
    return np.searchsorted(ends, np.arange(_RESOLUTION), side="right").astype(np.int32)


def _draw(rng: np.random.Generator, n: int, weights: Sequence[float]) -> NDArray[np.int32]:
    return _draw_given(rng, np.zeros(n, np.int32), np.array([weights]))


def _draw_given(rng: np.random.Generator, group: NDArray[np.int32], weights: NDArray[np.float64]) -> NDArray[np.int32]:
    """Draw from row ``group`` of ``weights`` for every record."""
    look_up = np.concatenate([_thresholds(row) for row in weights])
    bits = rng.integers(0, _RESOLUTION, len(group), dtype=np.uint16)
    return np.asarray(look_up[group.astype(np.int32) * np.int32(_RESOLUTION) + bits])


def _age_within(rng: np.random.Generator, band: NDArray[np.int32]) -> NDArray[np.int16]:
    """Ages within the bands; beyond 64 numbers fall off, so steeply that age has the entropy of Table 4."""
    from scipy.optimize import brentq

    ages = np.arange(18, 101)
    edges = [(18, 32), (32, 48), (48, 64), (64, 101)]

    def shares(half_life: float) -> NDArray[np.float64]:
        weights = np.array([np.where((ages >= low) & (ages < high), 1.0, 0.0) for low, high in edges])
        weights[-1] *= 0.5 ** ((ages - 64) / half_life)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def excess(half_life: float) -> float:
        p = shares(half_life).mean(axis=0)
        return float(-(p[p > 0] * np.log(p[p > 0])).sum() - AGE_ENTROPY_NATS)

    return ages.astype(np.int16)[_draw_given(rng, band, shares(float(brentq(excess, 2.0, 100.0))))]


OCCUPATIONS = ("care", "crafts", "clerk", "management", "sales", "service", "technical", "transport")
RARE_OCCUPATIONS = ("astronaut", "bishop", "lighthouse keeper", "ballerina", "judge")


def census(n: int = 3000, seed: int = 0) -> Table:
    """Simulated people with an income label that depends on them, and planted faults whose truth is known.

    Features: age, education (years), hours a week, capital (thousands), sex, marital status, occupation, region.
    The label ``income`` is ``high`` or ``low``. Carried along, and never used as features, is the truth:

    - ``label_error``: the label was flipped (6% of the records);
    - ``duplicate_of``: the id of the record this one copies, label included, or −1 (2%);
    - ``rare``: a person with an unusual occupation or age (1%).

    Parameters
    ----------
    n, seed
        Number of records, at least 20, and seed of the draws.

    Examples
    --------
    >>> table = census(500, seed=3)
    >>> table.label, sorted(table.carried)
    ('income', ['duplicate_of', 'label_error', 'rare'])
    """
    n = _checks.integer("n", n, at_least=20)
    rng = np.random.default_rng(_checks.integer("seed", seed, at_least=0))
    age = np.clip(rng.gamma(7.0, 6.2, n), 17, 89).round()
    education = np.clip(rng.normal(12.5, 2.6, n), 4, 20).round()
    sex = _draw(rng, n, [50, 50])
    married = rng.random(n) < 1 / (1 + np.exp(-(age - 30) / 6))
    marital = np.where(married, np.where((age > 55) & (rng.random(n) < 0.3), 3, np.where(rng.random(n) < 0.2, 0, 1)), 2)
    # Management and technical jobs come with schooling; the others do not mind it.
    attraction = np.ones((n, len(OCCUPATIONS)))
    attraction[:, 3] = np.exp(0.55 * (education - 13))
    attraction[:, 6] = 0.8 * attraction[:, 3]
    ends = np.cumsum(attraction, axis=1)
    occupation = (rng.random((n, 1)) * ends[:, -1:] > ends).sum(axis=1).astype(np.int32)
    region = _draw(rng, n, [30, 25, 20, 15, 10])
    hours = np.clip(rng.normal(40 + 4 * (occupation == 3), 8, n), 5, 80).round()
    capital = np.where(rng.random(n) < 0.12, rng.lognormal(1.5, 0.8, n), 0.0).round(1)
    rare = np.zeros(n, bool)
    rare[rng.choice(n, max(1, n // 100), replace=False)] = True
    odd = np.flatnonzero(rare)
    by_age = odd[rng.random(len(odd)) < 0.5]
    by_job = np.setdiff1d(odd, by_age)
    age[by_age] = rng.integers(96, 109, len(by_age))
    hours[by_age] = rng.integers(60, 90, len(by_age))
    occupation[by_job] = len(OCCUPATIONS) + rng.integers(0, len(RARE_OCCUPATIONS), len(by_job))
    capital[by_job] = rng.uniform(60, 120, len(by_job)).round(1)

    score = (
        0.9 * (education - 12.5) / 2.6
        + 0.8 * np.minimum(age - 40, 15) / 15
        + 0.6 * (hours - 40) / 8
        + 1.1 * (marital == 1)
        + 1.4 * ((occupation == 3) | (occupation == 6))
        + 0.25 * np.minimum(capital, 12)
        - 0.1 * sex
        + 0.4 * rng.logistic(0, 0.35, n)
    )
    high = score > np.quantile(score, 0.65)
    label_error = np.zeros(n, bool)
    label_error[rng.choice(n, max(1, round(0.06 * n)), replace=False)] = True
    income = np.where(high ^ label_error, 0, 1)

    duplicate_of = np.full(n, -1)
    plain = np.flatnonzero(~rare & ~label_error)
    chosen = rng.permutation(plain)[: 2 * max(1, n // 50)]
    copies, originals = np.sort(chosen[::2]), chosen[1::2][np.argsort(chosen[::2])]
    duplicate_of[copies] = originals
    numeric = {"age": age, "education": education, "hours": hours, "capital": capital}
    coded: Mapping[str, tuple[NDArray[np.generic], Sequence[str]]] = {
        "sex": (sex, ("female", "male")),
        "marital": (marital, ("divorced", "married", "single", "widowed")),
        "occupation": (occupation, (*OCCUPATIONS, *RARE_OCCUPATIONS)),
        "region": (region, ("north", "south", "east", "west", "islands")),
        "income": (income, ("high", "low")),
    }
    columns: dict[str, Column] = {}
    for name, numbers in numeric.items():
        numbers[copies] = numbers[originals]
        columns[name] = Column("numeric", numbers)
    for name, (codes, names) in coded.items():
        codes[copies] = codes[originals]
        columns[name] = Column("categorical", codes.astype(np.int32), np.array(names))
    columns["label_error"] = Column("categorical", label_error.astype(np.int32), np.array(["False", "True"]))
    columns["duplicate_of"] = Column("numeric", duplicate_of)
    columns["rare"] = Column("categorical", rare.astype(np.int32), np.array(["False", "True"]))
    return Table(columns, np.arange(n), "income", ("label_error", "duplicate_of", "rare"), "census")


def truth(table: Table, name: str) -> NDArray[np.bool_]:
    """A true/false column as Booleans, such as ``label_error`` or ``rare`` of :func:`census`.

    >>> int(truth(census(500, seed=3), "label_error").sum())
    30
    """
    values = [str(value).casefold() for value in table[name].tolist()]
    yes, no = {"true", "t", "yes", "y", "1", "1.0"}, {"false", "f", "no", "n", "0", "0.0"}
    for row, value in enumerate(values):
        if value not in yes | no:
            raise InputError(f"column {name!r} of {table.name} is not true or false at row {row}: {value!r}")
    return np.array([value in yes for value in values])
