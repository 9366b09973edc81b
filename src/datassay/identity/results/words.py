"""Numbers of people and bits, in words."""

from collections.abc import Sequence


def one_in(bits: float) -> str:
    """Bits as odds, in words: 3 bits are «1 in 8»."""
    odds = 2.0**bits
    return f"1 in {odds:,.0f}" if odds >= 99.5 else f"1 in {odds:.3g}"


def head_count(number: float) -> str:
    """A number of people: whole, unless weights make it a fraction."""
    return f"{number:,.0f}" if float(number).is_integer() or number >= 1000 else f"{number:,.4g}"


def counted(number: float) -> int | float:
    """A number of people as a fact: whole, unless weights make it a fraction."""
    return int(number) if float(number).is_integer() else float(number)


def named(columns: Sequence[str]) -> str:
    """Names in a row; one with a comma in it is quoted."""
    return ", ".join(f"'{name}'" if "," in name else name for name in columns)
