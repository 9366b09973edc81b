"""The report as a result: sections, the joined numbers of every record, and the page they make."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datassay._errors import UsageError
from datassay._version import __version__
from datassay.report.content import Facts, Section, plain
from datassay.report.page import render
from datassay.results import Columns, Parameter, Result, as_facts, check_output, columns_writer, write_together

PAGES = (".html", ".htm")


def check_page(path: str | os.PathLike[str]) -> None:
    """Say at once, before any work, that a page and its JSON could not be written to ``path``."""
    target = Path(path)
    if target.suffix.lower() not in PAGES:
        raise UsageError(f"cannot write a page to {str(path)!r}: the name must end in .html")
    beside = target.with_suffix(".json")
    check_output(beside)
    if beside.is_file():
        with beside.open(encoding="utf-8", errors="replace") as text:
            if not text.read(40).startswith('{"datassay": {"kind": "report"'):
                other = f"choose another name than {str(path)!r}"
                raise UsageError(f"{str(beside)!r} would be overwritten, and is no report: {other}")
    if target.is_dir():
        raise UsageError(f"{str(target)!r} is a folder; name a file to write")


@dataclass(frozen=True, eq=False)
class Report(Result):
    """What a data set is worth, leaks and reveals, and what to do about it.

    Attributes
    ----------
    name
        Of the data set.
    sections
        The answers, in the order of the page; one that needs something missing says what (``left_out``).
    records
        What was found out about every record, by name: its value, exposure, the bits that identify it, … All of one
        length, in the order of the data. Numbers of records that were not looked at are NaN.
    parameters, notes, seed, version
        How the report was made, and what was done to the data on the way.
    """

    name: str
    sections: tuple[Section, ...]
    records: Mapping[str, NDArray[np.generic]]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seed: int = 0
    version: str = __version__

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        made = ", ".join(section.key for section in self.sections if not section.left_out)
        return f"Report({self.name!r}: {len(self):,} records; {made})"

    @property
    def ids(self) -> NDArray[np.generic]:
        """The id of every record."""
        return self.records["id"]

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of every record; NaN where there is none."""
        return self.records.get("value", np.full(len(self.ids), np.nan)).astype(np.float64)

    def section(self, key: str) -> Section:
        """The section of that name: worth, leaks, found, release, told or trade."""
        for one in self.sections:
            if one.key == key:
                return one
        raise UsageError(f"there is no section {key!r}; there are {', '.join(one.key for one in self.sections)}")

    def facts(self) -> Facts:
        """The numbers of all sections by name: ``share_unique``, ``share_negative``, ``auc``, ``mean_risk``, …

        Also ``records`` and ``sections_left_out``.
        """
        left_out = sum(bool(section.left_out) for section in self.sections)
        found = {name: fact for section in self.sections for name, fact in section.facts.items()}
        return as_facts({"records": len(self), "sections_left_out": left_out, **found})

    def summary(self) -> str:
        """What was found and what to do, a line each."""
        answers = [one.left_out or f"{plain(one.finding)} {plain(one.advice)}".rstrip() for one in self.sections]
        return self._in_words([f"{one.title} {answer}" for one, answer in zip(self.sections, answers, strict=True)])

    def html(self) -> str:
        """The page, complete in itself: no script, nothing to fetch."""
        return render(self.name, self.sections, self.parameters, self.notes, self.version)

    def _columns(self) -> Columns:
        return dict(self.records)

    def _header(self) -> dict[str, object]:
        found = super()._header() | {"facts": self.facts()}
        del found["records"]
        return found

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        return super()._fields({**header, "records": columns}, columns)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to .html with everything it holds as .json beside it; or .json, .parquet or .csv alone.

        Parquet and JSON can be read again by :func:`datassay.load_result`; CSV holds the records. Files appear whole or
        not at all.
        """
        target = Path(path)
        if target.suffix.lower() not in (*PAGES, ".json", ".parquet", ".csv"):
            raise UsageError(f"cannot write {str(path)!r}: the name must end in .html, .json, .parquet or .csv")
        if target.suffix.lower() not in PAGES:
            return super().save(target)
        page, beside = self.html(), columns_writer(".json", self._header(), self._columns())
        writers = {target: lambda file: file.write_text(page, encoding="utf-8"), target.with_suffix(".json"): beside}
        return write_together(writers)[0]
