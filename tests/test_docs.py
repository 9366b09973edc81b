"""What is written runs: every Python block and command of the documentation, every link, every method's text."""

import dataclasses
import importlib.util
import inspect
import re
import shlex
import tomllib
import unicodedata
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import datassay as da
from datassay.cli import app
from datassay.data import simulate
from datassay.report.methods import METHODS, Method
from datassay.report.methods import PAGES as PAGES_OF_METHODS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MADE = ("_build", "api")  # folders that make docs fills
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in MADE)
PAGES.append(ROOT / "README.md")


def name_of(page):
    return str(page.relative_to(ROOT))


# ---------------------------------------------------------------------------------------------------- blocks that run


@dataclass
class Block:
    """A fenced block, the comment that stands before it, and where it begins."""

    language: str
    text: str
    remark: str
    line: int


def blocks_of(text):
    """All fenced blocks of a page. A comment «<!-- parsed only: why -->» right before one is its remark."""
    lines = text.split("\n")
    found, i = [], 0
    while i < len(lines):
        opening = re.match(r"^(`{3,})(.*)$", lines[i])
        if not opening:
            i += 1
            continue
        end = next(j for j in range(i + 1, len(lines)) if lines[j].startswith(opening[1]))
        remark = re.match(r"<!-- (.*) -->$", lines[i - 1]) if i else None
        found.append(Block(opening[2].strip(), "\n".join(lines[i + 1 : end]), remark[1] if remark else "", i + 1))
        i = end + 1
    return found


def commands_in(block):
    """The datassay commands of a shell block, as lists of arguments."""
    for line in block.text.replace("\\\n", " ").split("\n"):
        if re.match(r"(\$ )?datassay [a-z]", line):
            yield shlex.split(line.removeprefix("$ "), comments=True)[1:]


def is_shell(block):
    return block.language in ("", "sh", "console")


GROUP = typer.main.get_command(app)


def parse(arguments):
    """Parse a command as typer does, down to its last option, without running it."""
    command = GROUP
    while hasattr(command, "commands"):
        name, *arguments = arguments
        command = command.commands[name]
    command.make_context(name, list(arguments))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the pages speak of, made from simulated people."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(simulate.census, "__defaults__", (900, 0))  # what a page says runs on fewer people as well
    frame = da.census(700, seed=1).to_frame("pandas").drop(columns=["id", "label_error", "duplicate_of", "rare"])
    frame = frame.rename(columns={"occupation": "job"})[["age", "hours", "sex", "job", "region", "income"]]
    rng = np.random.default_rng(0)
    frame["zip"] = rng.choice([27601, 27602, 27513, 28202], len(frame))
    frame["county"] = np.where(frame["zip"] > 28000, "Mecklenburg", "Wake")
    frame["race"] = rng.choice(["a", "b", "c"], len(frame), p=[0.7, 0.2, 0.1])
    frame["owner"] = rng.choice(["north", "south", "west"], len(frame))
    people = frame.drop(columns="owner").iloc[:400]
    person = [f"p{i:03d}" for i in range(400)]
    people.assign(person=person).to_csv("people.csv", index=False)
    people.assign(person=person).to_csv("original.csv", index=False)
    people.assign(person=person).iloc[40:].to_csv("released.csv", index=False)
    frame.drop(columns="owner").iloc[400:].to_csv("public.csv", index=False)
    frame.drop(columns="owner").iloc[400:550].to_csv("ours.csv", index=False)
    frame.drop(columns="owner").iloc[550:].to_csv("test.csv", index=False)
    frame.rename(columns={"income": "churn"}).iloc[:300].to_csv("sales.csv", index=False)
    labelled = frame.rename(columns={"income": "y"})
    labelled.iloc[:200].to_csv("train.csv", index=False)
    labelled.iloc[200:300].to_csv("val.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_says_runs(page, folder):
    """From top to bottom, in one folder and one namespace, as a reader would."""
    import matplotlib.pyplot as plt

    names: dict[str, object] = {}
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    if any(block.language == "python" and "device=" in block.text for block in blocks):
        pytest.importorskip("torch")
    for block in blocks:
        where = f"{page}:{block.line}"
        if block.language == "python":
            code = compile("\n" * block.line + block.text, str(page), "exec")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", da.LowUtilityWarning)  # it is what the page is about
                exec(code, names)
            plt.close("all")
        elif is_shell(block):
            for arguments in commands_in(block):
                parse(arguments)
                if not block.remark.startswith("parsed only:"):
                    result = CliRunner().invoke(app, arguments)
                    assert result.exit_code == 0, (
                        f"{where}: {shlex.join(arguments)}\n{result.output}\n{result.exception}"
                    )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_that_does_not_run_says_why(page):
    for block in blocks_of(page.read_text(encoding="utf-8")):
        where = f"{page}:{block.line}"
        assert block.language in ("", "sh", "python", "py", "text", "json", "yaml", "{toctree}"), where
        if block.language == "py":  # Python that is only shown
            assert re.match(r"not run: \w+", block.remark), where
        if block.remark.startswith(("parsed only", "not run")):
            assert re.match(r"(parsed only|not run): \w+", block.remark), where


# -------------------------------------------------------------------------------------------------- links that resolve


def slug(heading):
    """The anchor of a heading, as GitHub and MyST make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    plain = unicodedata.normalize("NFKC", plain).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def prose(text):
    """A page without its code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^(`{3,}).*?^\1`*$", "", text, flags=re.M | re.S))


def anchors_of(page):
    text = re.sub(r"^(`{3,}).*?^\1`*$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {slug(heading) for heading in re.findall(r"^#{1,6} +(.+?) *$", text, flags=re.M)}


def generator():
    """The module that makes pages of the reference."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=name_of)
def test_every_internal_link_and_anchor_is_there_before_anything_is_built(page):
    for address in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", address):
            continue
        path, _, anchor = address.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page}: {address}"
        assert not target.is_relative_to(DOCS) or target.relative_to(DOCS).parts[0] not in MADE, f"{page}: {address}"
        if anchor:
            assert anchor in anchors_of(target), f"{page}: {address}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_page_is_in_the_contents(page):
    if page.parent == ROOT or page.name == "index.md":
        return
    if page.parent == DOCS / "methods":
        assert page.stem in METHODS
        return
    contents = (DOCS / "index.md").read_text(encoding="utf-8")
    entry = str(page.relative_to(DOCS).with_suffix(""))
    assert re.search(rf"^{entry}$|<{entry}>$", contents, flags=re.M), entry


def test_the_checker_of_built_pages_finds_what_is_wrong(tmp_path):
    spec = importlib.util.spec_from_file_location("check", DOCS / "check.py")
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    (tmp_path / "style.css").write_text("body { background: url(https://example.org/a.png) }")
    (tmp_path / "good.html").write_text('<p id="here"><a href="https://example.org">out</a><a href="#here">in</a>')
    (tmp_path / "bad.html").write_text(
        '<a href="gone.html">x</a><a href="good.html#nowhere">x</a><script src="//example.org/x.js"></script>'
        '<link rel="stylesheet" href="https://example.org/x.css"><img src="lost.png">'
        "<style>@import 'https://example.org/y.css';</style>"
    )
    found = list(check.problems(tmp_path))
    assert len(found) == 7, found
    assert not any(line.startswith("good.html") for line in found)


# ------------------------------------------------------------------------------------------------- methods and errata


def public(name):
    thing = da
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_method_is_told_in_full(method):
    for field in dataclasses.fields(Method):
        assert getattr(method, field.name), field.name
    assert METHODS[method.key] is method
    assert method.question.endswith("?")
    assert len(set(method.functions)) == len(method.functions)
    for name in method.functions:
        assert callable(public(name)), name


def test_every_public_function_belongs_to_a_method():
    rooms = ("value", "privacy", "attacks", "identity", "release", "market", "evaluate")
    covered = {name for method in METHODS.values() for name in method.functions}
    for name in da.__all__:
        thing = getattr(da, name)
        if inspect.isfunction(thing) and thing.__module__.split(".")[1] in rooms:
            assert name in covered, name
    assert {f"release.{name}" for name in ("keep", "remove", "mondrian", "synthesize", "fidelity")} <= covered


def test_every_method_answers_one_of_the_four_questions_and_can_be_chosen():
    index = (PAGES_OF_METHODS / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(.*)\]\((.*)\.md\) \| (.*) \|$", index, flags=re.M)
    assert rows == [(method.title, key, method.question) for key, method in METHODS.items()]
    assert index.count("\n## ") == 4
    chooser = (DOCS / "choose.md").read_text(encoding="utf-8")
    for key in METHODS:
        assert f"(methods/{key}.md)" in chooser, key


def test_pages_of_methods_are_read_as_plain_text():
    for method in METHODS.values():
        for field in dataclasses.fields(method):
            if field.name not in ("formula", "functions"):
                assert not re.search(r"[`\n]|\]\(|<!--|\*\*", getattr(method, field.name)), (method.key, field.name)
    assert "use private-tknn-shapley." in METHODS["knn-shapley"].not_for
    with pytest.raises(KeyError):
        METHODS["index"]


def test_a_wheel_brings_the_pages_where_the_report_looks_for_them():
    from datassay.report import methods

    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["force-include"] == {"docs/methods": "datassay/report/method_pages"}
    assert Path(methods.__file__).parent.name == "report"
    assert methods._SHIPPED.name == "method_pages"


def test_every_public_name_is_in_the_reference():
    generate = generator()
    named = {name for room in generate.ROOMS for name in generate.names_of(room)}
    for name in da.__all__:
        if name not in ("__version__", "oracle", "release", "report"):
            assert f"datassay.{name}" in named, name
    for name in named:
        assert generate.lookup(name).__doc__, name


def test_every_test_that_the_errata_name_is_there():
    named = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", (DOCS / "errata.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    for file, path in named:
        text = (ROOT / file).read_text(encoding="utf-8")
        for part in path.split("::"):
            assert re.search(rf"^ *(def|class) {part}\b", text, flags=re.M), f"{file}::{path}"


def test_every_section_of_the_mathematics_that_is_cited_is_there():
    sections = re.findall(r"^## §(\d+) ", (DOCS / "mathematics.md").read_text(encoding="utf-8"), flags=re.M)
    assert sections == [str(n) for n in range(len(sections))]
    cited = set()
    for file in [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\bMathematics *\n *§", text), f"{file}: a citation is cut by the end of a line"
        assert "SPEC" + " §" not in text, f"{file}: cites what does not ship"
        for found in re.findall(r"\bMathematics §\d+(?:, §\d+)*", text):
            assert set(re.findall(r"\d+", found)) <= set(sections), f"{file}: {found}"
            cited |= set(re.findall(r"\d+", found))
    assert cited == set(sections)


def test_numbers_of_the_errata_are_those_that_the_code_cites():
    text = (DOCS / "errata.md").read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r"^### Erratum (\d+):", text, flags=re.M)]
    assert numbers == list(range(1, len(numbers) + 1))
    for file in [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for number in re.findall(r"[Ee]rratum (\d+)", file.read_text(encoding="utf-8")):
            assert int(number) in numbers, file
