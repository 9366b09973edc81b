"""``datassay release``: which version of a table may leave, and what does it cost?"""

from pathlib import Path
from typing import Annotated, Any

import typer

from datassay._choices import Weighing
from datassay._errors import UsageError
from datassay.cli.options import (
    CategoricalOption,
    DataArgument,
    FailIfOption,
    IgnoreOption,
    JobsOption,
    JsonOption,
    LabelOption,
    QuietOption,
    TextOption,
    check_conditions,
    check_jobs,
    check_written,
    column_list,
    conclude,
    draw,
    load_table,
    shows_progress,
)


def release(
    data: DataArgument,
    label: LabelOption = None,
    strategies: Annotated[
        str,
        typer.Option(
            help="Separated by commas: keep; k=8 (k-anonymous); remove=0.25 (at random), shapley=0.25, waka=0.25 "
            "(least valuable first); copula, ctgan, tvae (synthetic)."
        ),
    ] = "keep,k=2,k=8,k=32,remove=0.25,copula",
    alike: Annotated[
        str,
        typer.Option(help="For k=…: columns to make alike (quasi-identifiers), separated by commas; all if left out."),
    ] = "",
    sensitive: Annotated[str | None, typer.Option(help="For k=…: a column left as it is, for --l and --t.")] = None,
    l: Annotated[int | None, typer.Option("--l", help="Different sensitive values in each group, at least.")] = None,  # noqa: E741
    t: Annotated[
        float | None, typer.Option("--t", help="Distance of sensitive values from all people's, at most.")
    ] = None,
    relaxed: Annotated[
        bool, typer.Option("--relaxed", help="For k=…: people with the same value may be in different groups.")
    ] = False,
    id: Annotated[str | None, typer.Option("--id", help="Column that identifies a row.")] = None,
    ignore: IgnoreOption = "",
    categorical: CategoricalOption = "",
    text: TextOption = "categorical",
    k: Annotated[int, typer.Option("--k", "-k", help="Neighbours of the classifier that measures utility.", min=1)] = 5,
    people: Annotated[int, typer.Option(help="Attack this many people, drawn at random.", min=1)] = 1000,
    permutations: Annotated[int, typer.Option(help="Random orders of the attributes for each person.")] = 50,
    scenarios: Annotated[
        Weighing, typer.Option(help="What attackers know: each number of attributes, or each set, as likely.")
    ] = "uniform",
    individuals: Annotated[
        bool, typer.Option("--individuals", help="Also tell what each strategy does to people by their value.")
    ] = False,
    write: Annotated[str | None, typer.Option(help="Apply this one strategy to the whole table, and write it.")] = None,
    to: Annotated[
        Path | None, typer.Option(help="Where to write it: .parquet, .csv, .json; sorted, without ids.")
    ] = None,
    with_ids: Annotated[
        bool, typer.Option("--with-ids", help="Write ids and ignored columns, too: to keep, not to hand out.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of splits, draws and orders.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the comparison: .parquet, .csv, .json.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw utility against safety: .svg, .png, .pdf.")] = None,
    plot_risks: Annotated[Path | None, typer.Option(help="Draw the risk of people as boxes: .svg, .png, .pdf.")] = None,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """Strategies side by side: the risk that each leaves, how like the original it is, what can be learned from it.

    The table is split 70 : 15 : 15; strategies are applied to the 70, value-guided ones look at the first 15, and
    utility is measured on the last. The strategy you then choose is applied to the whole table with --write and --to.

    Examples:
      datassay release people.csv --label income --strategies k=2,k=8,k=32,remove=0.25,copula -o comparison.csv

      datassay release people.csv --label income --id person --strategies keep,k=8 --write k=8 --to released.csv

      datassay release people.csv --label income --alike age,zip,sex --sensitive illness --l 2 --strategies k=5,k=20
    """
    import datassay as da

    conditions = check_conditions(fail_if)
    check_written([output, to], [plot, plot_risks], [], [data])
    check_jobs(jobs)
    if (write is None) != (to is None):
        raise UsageError("--write names the strategy and --to the file: give both")
    reading = {"ignore": column_list(ignore), "categorical": column_list(categorical), "text": text}
    table = load_table(data, label, id, reading)
    options: dict[str, Any] = {
        "columns": column_list(alike) or None, "sensitive": sensitive, "l": l, "t": t, "strict": not relaxed,
    }  # fmt: skip

    def strategy(name: str) -> Any:
        """k=8 with what the options say of it; every other strategy by its name."""
        word, equals, number = name.partition("=")
        if word.strip() != "k" or not equals or not number.strip().isdigit():
            return name
        return lambda table: da.release.mondrian(table, int(number), **options)

    found = da.compare_releases(
        table,
        strategies={name: strategy(name) for name in column_list(strategies)},
        k=k,
        people=people,
        individuals=individuals,
        seed=seed,
        scenarios=scenarios,
        permutations=permutations,
        n_jobs=jobs,
        progress=shows_progress(quiet),
    )
    made = None if write is None else da.release.make_release(strategy(write), table, k=k, seed=seed)
    if output is not None:
        found.save(output)
    draw(found.plot, plot, 7, 5)
    draw(found.plot_risks, plot_risks, 7, 0.4 * len(found) + 1.2)
    if made is not None and to is not None:
        made.save(to, ids=with_ids)
    said = [found.summary()]
    if individuals:
        said.append("\nWhat each strategy does to people, by their value:")
        for name, numbers in found.individuals().items():
            said.append(f"  {name}: " + ", ".join(f"{what} {number:.3g}" for what, number in numbers.items()))
    conclude(
        "release",
        found.facts(),
        said,
        [*found.notes, *(() if made is None else made.notes)],
        [output, to, plot, plot_risks],
        quiet=quiet,
        as_json=as_json,
        conditions=conditions,
    )
