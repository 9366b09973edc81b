"""Figures of who can be found: bars of bits, maps of pairs, and how people are spread."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from datassay.results import BLUE, GREY, ORANGE, PALETTE, SILVER, Axes, Floats


def _stacks(values: Floats, names: Sequence[str], means: Floats) -> Iterator[tuple[str, str, Floats]]:
    """The parts of a stacked bar: name, colour and bits of the most telling attributes, then all others."""
    order = np.argsort(-means, kind="stable")
    shown = order if len(order) <= len(PALETTE) else order[: len(PALETTE) - 1]
    for place, j in enumerate(shown):
        yield names[j], PALETTE[place], values[:, j]
    if len(shown) < len(order):
        rest = order[len(shown) :]
        yield f"{len(rest)} others", SILVER, values[:, rest].sum(axis=1)


def draw_means(
    ax: Axes,
    names: NDArray[np.str_],
    values: Floats,
    limits: tuple[Floats, Floats] | None,
    entropies: Floats,
    label: str | None,
) -> None:
    """A bar for each attribute's mean, the largest on top, beside one for its entropy."""
    order = np.argsort(values, kind="stable")
    at = np.arange(len(order))
    error = None if limits is None else np.vstack([values - limits[0], limits[1] - values])[:, order]
    colour = BLUE if label is None else None
    ax.barh(at + 0.2, values[order], 0.38, color=colour, xerr=error, label=label or "uniqueness Shapley")
    if label is None:
        ax.barh(at - 0.2, entropies[order], 0.38, color=SILVER, label="entropy, alone")
    ax.set_yticks(at, [str(names[j]) for j in order])
    ax.set_xlabel("bits")
    ax.legend(frameon=False)


def draw_stacked_bars(
    ax: Axes,
    rows: Sequence[str],
    names: Sequence[str],
    values: Floats,
    means: Floats,
    key: Floats | None,
    label: str | None,
) -> None:
    """A bar for each row, the first on top, attribute on attribute; with a label, one series of whole bars."""
    values, at = values[::-1], np.arange(len(rows))
    parts = [*_stacks(values, names, means), *([] if key is None else [("the key", "black", key[::-1])])]
    if label is not None:
        ax.barh(at, np.sum([bits for _, _, bits in parts], axis=0), 0.75, alpha=0.6, label=label)
    left = np.zeros(len(rows))
    for name, colour, bits in parts if label is None else ():
        ax.barh(at, bits, 0.75, left, color=colour, label=name)
        left += bits
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_yticks(at, rows[::-1])
    ax.set_xlabel("bits that identify a person, on average")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def draw_pairs(ax: Axes, rows: Sequence[str], names: Sequence[str], values: Floats) -> None:
    """A map of what two attributes tell together beyond apart, with numbers where there is room for them."""
    shown = values.copy()
    np.fill_diagonal(shown, np.nan)
    most = float(np.nanmax(np.abs(shown))) if len(shown) > 1 else 0.0
    image = ax.imshow(shown, cmap="RdBu_r", vmin=-(most or 1.0), vmax=most or 1.0)
    for (i, j), number in np.ndenumerate(shown):
        if i != j and len(rows) <= 12:
            colour = "white" if abs(number) > 0.6 * most > 0 else "black"
            ax.text(j, i, f"{number:.2f}", ha="center", va="center", fontsize=8, color=colour)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    ax.set_yticks(range(len(rows)), rows)
    ax.spines[["top", "right"]].set_visible(True)
    ax.figure.colorbar(image, ax=ax, label="bits together beyond apart", shrink=0.8)


def draw_group_sizes(ax: Axes, sizes: Floats, label: str | None) -> None:
    """The share of people in groups up to each size; ``sizes`` increase."""
    ax.step(sizes, np.cumsum(sizes) / sizes.sum(), where="post", color=BLUE if label is None else None, label=label)
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("size of the group")
    ax.set_ylabel("share of people in groups up to this size")
    if label is not None:
        ax.legend(frameon=False)


def draw_people(ax: Axes, values: Floats, names: Sequence[str], means: Floats, step: int, label: str | None) -> None:
    """A stacked bar for each person, in the order given; with a label, the line of their totals."""
    edges, below = np.arange(len(values) + 1), np.zeros(len(values))
    if label is not None:
        ax.stairs(values.sum(axis=1), edges, label=label)
    for name, colour, bits in _stacks(values, names, means) if label is None else ():
        above = below + bits
        ax.stairs(above, edges, baseline=below, fill=True, color=colour, label=name)
        below = above
    ax.set_xlim(0, len(values))
    ax.set_xlabel("people, by total" if step == 1 else f"one in {step:,} people, by total", labelpad=4)
    ax.set_ylabel("bits")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def draw_risks(ax: Axes, risks: Floats, guess: float, control: float | None, label: str | None) -> None:
    """The distribution of risk, with its mean, what guessing scores, and people who are not in the release."""
    edges = np.linspace(0, 1, 41).tolist()
    if label is None:
        ax.hist(risks, edges, color=BLUE)
        ax.axvline(float(risks.mean()), color="black", label=f"mean {risks.mean():.3f}")
        ax.axvline(guess, color=GREY, linestyle="--", label=f"picking at random {guess:.3f}")
        if control is not None:
            ax.axvline(control, color=ORANGE, linestyle=":", label=f"people not in the release {control:.3f}")
    else:
        ax.hist(risks, edges, alpha=0.6, label=label)
    ax.set_xlim(0, 1)
    ax.set_xlabel("re-identification risk")
    ax.set_ylabel("people")
    ax.legend(frameon=False)


def draw_shares(ax: Axes, means: Mapping[str, float], halves: Mapping[str, float], label: str | None) -> None:
    """A bar for each attribute, the first on top, with its interval."""
    names = list(means)[::-1]
    lengths, errors = [means[name] for name in names], [halves[name] for name in names]
    colour, alpha = (BLUE, 1.0) if label is None else (None, 0.6)
    ax.barh(names, lengths, xerr=errors, color=colour, alpha=alpha, label=label)
    ax.set_xlabel("re-identification Shapley value")
    if label is not None:
        ax.legend(frameon=False)
