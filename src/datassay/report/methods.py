"""What each method is, in words: the pages of docs/methods, which are also the notes of the report.

A method answers one question. Its page says how, by which formula, what is guaranteed, what it costs, when not to use
it, and where it comes from. The pages are plain Markdown, read where they lie in a clone; a wheel brings a copy.
"""

import re
from dataclasses import dataclass
from pathlib import Path

_SHIPPED = Path(__file__).with_name("method_pages")
PAGES = _SHIPPED if _SHIPPED.is_dir() else Path(__file__).parents[3] / "docs" / "methods"

# What a page looks like, from top to bottom; what follows the first paragraph of the reference is for readers alone.
_PAGE = re.compile(
    r"---\nfunctions: (?P<functions>[^\n]+)\n---\n\n# (?P<title>[^\n]+)\n\n\*\*(?P<question>[^\n]+)\*\*\n\n"
    r"(?P<idea>.+)\n\n```text\n(?P<formula>.+)\n```\n\n## What is guaranteed\n\n(?P<guarantee>.+)\n\n"
    r"## What it costs\n\n(?P<cost>.+)\n\n## When not to use it\n\n(?P<not_for>.+)\n\n"
    r"## Reference\n\n(?P<reference>.+?)\n(?:\n.*)?",
    re.DOTALL,
)
# Comments, links and code: what stands in them is kept of the last two.
_MARKUP = re.compile(r"<!--.*?-->|\[([^\]]*)\]\([^)]*\)|`([^`]*)`", re.DOTALL)


@dataclass(frozen=True)
class Method:
    """One method in words.

    Attributes
    ----------
    key, title
        Its name in lower case with hyphens, and its name for people.
    question, idea
        The question it answers, in one sentence, and how, in a few.
    formula
        What is computed, in Unicode, one formula to a line.
    guarantee
        What is promised: exact or within what; or ε, δ, the neighbouring relation and the audience.
    cost
        How it grows, and what was measured.
    not_for
        When to use something else, and what.
    reference
        Where it comes from.
    functions
        Public names, as in ``datassay.NAME``.
    """

    key: str
    title: str
    question: str
    idea: str
    formula: str
    guarantee: str
    cost: str
    not_for: str
    reference: str
    functions: tuple[str, ...]


def _plain(text: str) -> str:
    """Markdown as plain text on one line."""
    return " ".join(_MARKUP.sub(lambda found: found[1] or found[2] or "", text).split())


def _read(key: str) -> Method:
    """The method of a page, which must look as all of them do."""
    found = _PAGE.fullmatch((PAGES / f"{key}.md").read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{key}.md does not have the parts of a method's page in their order")
    parts = found.groupdict()
    formula, functions = parts.pop("formula"), tuple(parts.pop("functions").split(", "))
    return Method(key=key, formula=formula, functions=functions, **{part: _plain(text) for part, text in parts.items()})


_INDEX = (PAGES / "index.md").read_text(encoding="utf-8")
METHODS = {key: _read(key) for key in re.findall(r"^\| \[.*\]\((.*)\.md\)", _INDEX, re.MULTILINE)}
"""All methods by key, in the order of the index: by worth, leaks, people found, releases and trade."""
