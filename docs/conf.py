"""How the documentation is built: ``make docs``. It needs no network, and neither do its pages."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from generate import generate  # noqa: E402
from sphinx.ext.napoleon import Config, NumpyDocstring  # noqa: E402

from datassay import __version__  # noqa: E402
from datassay.report import METHODS  # noqa: E402

project = "datassay"
author = "The datassay developers"
copyright = "The datassay developers, Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 3

html_theme = "furo"
html_title = "datassay"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["datassay.css"]
highlight_language = "text"
html_theme_options = {"navigation_with_keys": True}

# Parameters are described in the docstrings; types of signatures are long unions that say less.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# One line for "X, y", as it is written; attributes are told once, in the class's own text.
NUMPYDOC = Config(
    napoleon_use_param=False,
    napoleon_use_rtype=False,
    napoleon_attr_annotations=False,
    napoleon_custom_sections=[("Attributes", "params_style")],
)
CITATION = re.compile(r"\bMathematics §\d+(, §\d+)*|\b[Ee]rratum \d+")


def citation(found):
    """Links to the sections, or the erratum, that a docstring cites."""
    if found[0][0] in "Ee":
        return f":ref:`{found[0]} <erratum-{found[0][8:]}>`"
    return re.sub(r"(Mathematics |)§(\d+)", r":ref:`\1§\2 <math-\2>`", found[0])


def prepare_docstring(app, what, name, thing, options, lines):
    """From a docstring in numpy's style to reStructuredText.

    «Mathematics §3, §5» and «erratum 2» become links. A paragraph after the last parameter is set off by two blank
    lines, by which napoleon knows that it is none. Properties stay properties: in them napoleon would take what stands
    before a colon to be a type.
    """
    ready: list[str] = []
    in_fields = False
    for i, line in enumerate(lines):
        after = lines[i + 1] if i + 1 < len(lines) else ""
        if after.startswith("---"):
            in_fields = line in ("Parameters", "Attributes")
        elif in_fields and line and not line[0].isspace() and not lines[i - 1] and not after.startswith("    "):
            ready.append("")
            in_fields = False
        ready.append(CITATION.sub(citation, line))
    kind = "object" if what in ("property", "attribute") else what
    lines[:] = NumpyDocstring(ready, NUMPYDOC, app, kind, name, thing, options).lines()


def prepare_page(app, name, source):
    """What a forge does not need: a method's functions linked to their reference, tables of contents, labels."""
    text = source[0]
    if name == "mathematics":
        text = re.sub(r"^(## §(\d+) )", r"(math-\2)=\n\1", text, flags=re.M)
    elif name == "errata":
        text = re.sub(r"^(### Erratum (\d+):)", r"(erratum-\2)=\n\1", text, flags=re.M)
    elif name == "methods/index":
        text += "\n".join(["", "```{toctree}", ":hidden:", "", *METHODS, "```"])
    elif name.startswith("methods/"):
        functions = METHODS[name.removeprefix("methods/")].functions
        text += "\n## Functions\n\n" + ", ".join(f"{{py:obj}}`~datassay.{function}`" for function in functions) + "\n"
        formula = re.search(r"```text\n(.*?)\n```", text, re.S)
        spaced = formula[1].replace("\n", "\n\n")  # long ones are wrapped
        text = text.replace(formula[0], "```{code-block} text\n:class: formula\n\n" + spaced + "\n```")
    source[0] = text


def setup(app):
    """Make the pages that come from the package, before Sphinx looks for them."""
    generate(HERE)
    app.connect("source-read", prepare_page)
    app.connect("autodoc-process-docstring", prepare_docstring)
