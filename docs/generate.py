"""Pages that are made from the package: one for each room, from its docstrings."""

import re
from pathlib import Path

import datassay as da
from datassay.results import Framed

# Public names of a room that are not at the top of the package.
BESIDE = {
    "attacks": "View",
    "identity": "UniquenessQueries",
    "market": "ConsumerView DataOwner Move MovingNeighbours gini",
    "privacy": "Cost NoisyRecords add_noise calibrate total_delta total_epsilon",
    "reproduce": "Reproduction list_reproductions reproduce",
    "release": "Synthesizer Utility fidelity keep make_release mondrian predictive_utility remove synthesize",
}

ROOMS = {
    "data": "Data in",
    "results": "Results",
    "neighbors": "Neighbours",
    "value": "Value",
    "privacy": "Privacy",
    "attacks": "Attacks",
    "identity": "Identity",
    "release": "Release",
    "market": "Market",
    "evaluate": "Evaluation",
    "report": "Report",
    "reproduce": "Reproduction",
    "oracle": "The oracle",
    "errors": "Errors",
}

REPORT = "Section Paragraph Figure Grid Card Number methods.Method"

ORACLE = (
    "shapley banzhaf leave_one_out waka target_waka loss_change interaction fraction_utility soft_utility "
    "threshold_utility matching_utility cheapest_cover bandit gini"
)


def in_room(thing: object, home: str) -> bool:
    """Whether a public thing was made in the room, or in one of its modules."""
    return f"{getattr(thing, '__module__', '')}.".startswith(f"{home}.")


def names_of(room: str) -> list[str]:
    """Full names of what a room has for the public, functions first."""
    if room == "oracle":
        return [f"datassay.oracle.{name}" for name in ORACLE.split()]
    if room == "report":
        return ["datassay.report.report", "datassay.Report", *(f"datassay.report.{name}" for name in REPORT.split())]
    home = f"datassay.{'_errors' if room == 'errors' else room}"
    names = [f"datassay.{name}" for name in da.__all__ if in_room(getattr(da, name), home)]
    names.sort(key=lambda name: (name.split(".")[-1][0].isupper(), name))
    return names + [f"datassay.{room}.{name}" for name in BESIDE.get(room, "").split()]


def lookup(name: str) -> object:
    """What a full name stands for."""
    thing: object = da
    for part in name.split(".")[1:]:
        if not hasattr(thing, part):
            __import__(f"{thing.__name__}.{part}")  # type: ignore[attr-defined]
        thing = getattr(thing, part)
    return thing


def api_page(room: str) -> str:
    """The reference of one room, in reStructuredText."""
    title = ROOMS[room]
    parts = [f"{title}\n{'=' * len(title)}"]
    if room in ("release", "oracle"):  # modules that are public names themselves
        parts.append(f".. py:module:: datassay.{room}")
    for name in names_of(room):
        thing = lookup(name)
        if isinstance(thing, type):
            inherited = [each for each in dir(thing) if re.fullmatch(r"set_\w+_request", each)]  # scikit-learn's own
            options = ["   :members:", *([f"   :exclude-members: {', '.join(inherited)}"] if inherited else [])]
            if issubclass(thing, Framed):  # what all results can do is said of each
                options.append("   :inherited-members:")
            parts.append("\n".join([f".. autoclass:: {name}", *options]))
        else:
            parts.append(f".. autofunction:: {name}")
    return "\n\n".join(parts) + "\n"


def api_index() -> str:
    """The rooms, in the order data walks through them."""
    parts = [
        "Reference\n=========",
        "Every public name, from its docstring, by the room it lives in. All names at the top of the package are "
        "loaded on first use: ``import datassay as da``.",
        "\n   ".join([".. toctree::", ":maxdepth: 2", "", *ROOMS]),
    ]
    return "\n\n".join(parts) + "\n"


def write(file: Path, text: str) -> None:
    """Write a page if it has changed, so that the next build has less to do."""
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def generate(folder: Path) -> None:
    """Write all pages below the folder of the sources."""
    write(folder / "api" / "index.rst", api_index())
    for room in ROOMS:
        write(folder / "api" / f"{room}.rst", api_page(room))
