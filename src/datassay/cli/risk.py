"""``datassay risk``: who can be found in what was released, and what gives them away."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from datassay._choices import Weighing
from datassay._errors import UsageError
from datassay.cli.command import Options, Outcome, check_files, command, given, option, save
from datassay.cli.inputs import Categorical, Cluster, column_list, complete_file


class Search(Options):
    """Who is searched for, and how."""

    people: int | None = option("Attack this many people, drawn at random.", min=1)
    permutations: int | None = option("Orders of attributes for each person ({reidentification_risk.permutations}).")
    seed: int = option("Seed of the orders and of the people drawn.", default=0)
    neighbours: int | None = option("Neighbours that say what is near (2%).")


@command("risk")
def risk(
    original: Annotated[str, Argument(help="The original table: a CSV or Parquet file.", autocompletion=complete_file)],
    released: Annotated[
        str, Argument(help="What is released of it: a CSV or Parquet file.", autocompletion=complete_file)
    ],
    columns: str = option("Attributes, separated by commas; all if left out.", "--columns", "-c", default=""),
    id: str | None = option("Column that identifies a person in both files (datassay release --with-ids)."),
    synthetic: bool = option("No released record is anybody's own: everyone is at risk."),
    control: str | None = option("File of people who are in neither: what chance scores."),
    scenarios: Weighing | None = option(
        "What attackers know: each number of attributes, or each set, as likely ({reidentification_risk.scenarios})."
    ),
    known: list[str] | None = option("What a named attacker knows instead: neighbour=age,sex. May be repeated."),
    query: list[str] | None = option('Score a recorded filter as an attack: "age = 34". May be repeated.'),
    *,
    search: Search,
    shapley: bool = option("Also tell which attributes give people away."),
    categorical: Categorical = "",
    output: Path | None = option("Write each person's risk: .parquet, .csv, .json.", "--output", "-o"),
    shapley_output: Path | None = option("Write each person's values by attribute: .parquet, .csv, .json."),
    plot: Path | None = option("Draw the distribution of risk: .svg, .png, .pdf."),
    plot_shapley: Path | None = option("Draw which attributes give people away."),
    top: int = option("How many people to list.", default=5, min=0),
    run: Cluster,
) -> Outcome:
    """How likely it is that people are found in a release: linkability, information gain, risk; beside guessing.

    An attacker who knows some attributes of a person singles out the nearest released records; the risk says how
    linkable these are to the person and how much they tell of the rest, on average over what attackers may know.

    Examples:
      datassay risk original.csv released.csv --id person -o risk.parquet --plot risk.svg

      datassay risk original.csv synthetic.csv --synthetic --known neighbour=age,sex --known marketer=zip,income

      datassay risk original.csv released.csv --query "age = 34 AND zip = '27601'"
    """
    import datassay as da

    check_files([original, released, control], [output, shapley_output], [plot, plot_shapley])
    if known and scenarios not in (None, "uniform"):
        raise UsageError("--known names the scenarios: leave out --scenarios")
    here = da.read_table(original, id=id, categorical=column_list(categorical), text="categorical")
    there = da.read_table(released, id=None if synthetic else id, like=here, text="categorical")
    outside = None if control is None else da.read_table(control, like=here, text="categorical")
    common: dict[str, Any] = {"columns": column_list(columns) or None, "synthetic": synthetic}
    how = common | search.given() | run.arguments()
    attackers = given(scenarios=_named(known) if known else scenarios)
    values = None
    with run.at_work():
        kept = run.folder("risk")
        found = da.reidentification_risk(here, there, control=outside, checkpoint=kept, **attackers, **how)
        if shapley or shapley_output is not None or plot_shapley is not None:
            values = da.reidentification_shapley(here, there, checkpoint=run.folder("shapley"), **how)
    asked = da.score_queries(here, there, query, **common, **search.given("neighbours")) if query else None
    save(found, output, plot)
    if values is not None:
        save(values, shapley_output, plot_shapley, 7, 0.35 * len(values.columns) + 1.2)
    facts, said, notes = found.facts(), [found.summary(top)], list(found.notes)
    for told in (values, asked):
        if told is not None:
            facts, said, notes = told.facts() | facts, [*said, f"\n{told.summary()}"], [*notes, *told.notes]
    return Outcome(facts, said, notes, [output, shapley_output, plot, plot_shapley])


def _named(given: list[str]) -> dict[str, list[str]]:
    """neighbour=age,sex as the library takes it."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, attributes = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--known takes NAME=ATTRIBUTES, such as neighbour=age,sex; got {text!r}")
        found[name.strip()] = column_list(attributes)
    return found
