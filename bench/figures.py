"""Measured figures: kept in bench/results by ``make bench``, and put into the pages that cite them.

A page cites a figure by a comment right after the number, «163 times<!-- values.pydvl_ratio --> faster»: the number is
the figure, rounded to as many decimals as it has on the page. «More than», «less than» and «about» before a number are
claims, which must hold. A whole suite stands in the block after «<!-- figures: values -->», and what
follows from the suite of sizing in tables of their own.
``python bench/figures.py`` puts all figures into the pages; a test checks that nothing would change.
"""

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"


@dataclass(frozen=True)
class Figure:
    """One measurement; ``target`` is what it must reach (None: reported only)."""

    name: str
    what: str
    value: float
    unit: str = ""
    target: float | None = None
    at_least: bool = True

    @property
    def holds(self) -> bool:
        if self.target is None:
            return True
        return self.value >= self.target if self.at_least else self.value <= self.target

    def __str__(self) -> str:
        goal = ""
        if self.target is not None:
            sign = "≥" if self.at_least else "≤"
            goal = f"   (wanted {sign} {self.target:g}: {'yes' if self.holds else 'NO'})"
        return f"{self.what:<78} {self.value:>12.4g} {self.unit}{goal}".rstrip()


@dataclass
class Suite:
    """The figures of one suite, and where they come from."""

    command: str
    machine: str
    date: str
    commit: str
    load: float | None  # how many processes wanted to run, in the minute before
    versions: dict[str, str] = field(default_factory=dict)
    note: str = ""
    figures: list[Figure] = field(default_factory=list)

    def save(self, name: str) -> None:
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"
        (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")

    def __str__(self) -> str:
        load = "" if self.load is None else f", load {self.load:.1f} when it began"
        return "\n".join([f"{self.machine}; {self.date}, {self.commit}{load}", *map(str, self.figures)])


def load(name: str) -> Suite | None:
    """The results of a suite, by its short name, if it was ever run."""
    file = RESULTS / f"{name}.json"
    if not file.exists():
        return None
    header = json.loads(file.read_text(encoding="utf-8"))
    return Suite(**{**header, "figures": [Figure(**figure) for figure in header["figures"]]})


def known() -> dict[str, Figure]:
    """All figures as pages name them, «suite.figure»."""
    suites = {file.stem: load(file.stem) for file in sorted(RESULTS.glob("*.json"))}
    return {f"{name}.{figure.name}": figure for name, suite in suites.items() if suite for figure in suite.figures}


# ------------------------------------------------------------------------------------------------------- in pages

# What a unit is one of, and how many.
UNITS = {
    "": ("", 1), "times": ("", 1), "×": ("", 1), "%": ("", 0.01), "σ": ("", 1),
    "s": ("s", 1), "ms": ("s", 1e-3), "ns": ("s", 1e-9), "min": ("s", 60),
    "MiB": ("MiB", 1), "GiB": ("MiB", 1024), "/s": ("/s", 1), "GB/s": ("B/s", 1), "TFLOP/s": ("FLOP/s", 1),
}  # fmt: skip
EXPONENTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
CITED = re.compile(
    r"(?P<word>\b(?:more than|less than|about)\s+)?(?P<number>\d[\d,]*(?:\.\d+)?)(?: × 10(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+))?"
    r"(?P<unit>\s?(?:times|×|%|s|ms|min|MiB|GiB|GB/s|TFLOP/s)|)<!-- (?P<name>\w+\.\w+) -->",
    re.IGNORECASE,
)
SHOWN = re.compile(r"<!-- figures: (\w+) -->\n```text\n.*?\n```", re.DOTALL)
TABLE = re.compile(r"<!-- sizing: (\w+) -->\n\n(?:\|.*\n)+")


def put_in(found: re.Match[str], figures: dict[str, Figure]) -> str:
    """What a citation should read; an error if it claims what is not so."""
    figure = figures.get(found["name"])
    if figure is None:
        raise ValueError(f"there is no figure {found['name']}")
    kind, size = UNITS[figure.unit]
    wanted, own = UNITS[found["unit"].strip()] if found["power"] is None else (kind, 1)
    if kind != wanted:
        raise ValueError(f"{found['name']} is in {figure.unit or 'no unit'}, not in {found['unit'].strip() or 'none'}")
    scale = own * 10.0 ** int((found["power"] or "0").translate(EXPONENTS)) / size
    number, value = float(found["number"].replace(",", "")), figure.value / scale
    word = (found["word"] or "").strip().lower()
    holds = {
        "": True,
        "more than": number <= value <= 2 * number,
        "less than": number / 2 <= value <= number,
        "about": abs(value / number - 1) <= 0.2,
    }[word]
    if not holds:
        raise ValueError(f"«{found[0]}»: it is {value:.4g}")
    if word:
        return found[0]
    decimals = len(found["number"].partition(".")[2])
    at, end = found.start("number") - found.start(), found.end("number") - found.start()
    return found[0][:at] + f"{value:,.{decimals}f}" + found[0][end:]


def updated(text: str, figures: dict[str, Figure]) -> str:
    """A page with the figures as they were measured."""

    def block(found: re.Match[str]) -> str:
        suite = load(found[1])
        if suite is None:
            raise ValueError(f"there are no figures of {found[1]}")
        return f"<!-- figures: {found[1]} -->\n```text\n{suite}\n```"

    def table(found: re.Match[str]) -> str:
        import sizing

        return f"<!-- sizing: {found[1]} -->\n\n{getattr(sizing, found[1])()}\n"

    return CITED.sub(lambda found: put_in(found, figures), TABLE.sub(table, SHOWN.sub(block, text)))


def pages() -> list[Path]:
    """All pages that may cite figures."""
    made = (ROOT / "docs" / "_build", ROOT / "docs" / "api")
    found = [file for file in (ROOT / "docs").rglob("*.md") if not any(file.is_relative_to(folder) for folder in made)]
    return [ROOT / "README.md", *sorted(found)]


def update_pages() -> list[str]:
    """Put all figures into all pages; the claims that do not hold, and what else is wrong."""
    figures, wrong = known(), []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        try:
            new = updated(text, figures)
        except ValueError as error:
            wrong.append(f"{page.relative_to(ROOT)}: {error}")
            continue
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(f"{page.relative_to(ROOT)} has new figures")
    return wrong


if __name__ == "__main__":
    raise SystemExit("\n".join(update_pages()) or None)
