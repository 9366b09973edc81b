"""Columns of an Arrow table as typed columns: numbers, dates, categories, or text.

Numbers stay numbers, and dates become days since 1970-01-01 (noted). Strings and Booleans are categories, unless a
string column has more than 20 distinct values and more than one for every ten rows: that is text, refused unless the
caller says what to do with it. Strings that are nearly all numbers or dates are a column with a fault in it.
"""

import re
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay.data.table import Column

if TYPE_CHECKING:
    import pyarrow as pa

TEXT: Final = ("string", "large_string", "string_view")  # the types of Arrow
ISO_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def typed_column(
    column: "pa.ChunkedArray",
    where: str,
    categorical: bool,
    aside: bool,
    text: str,
    notes: list[str],
    expected: Column | None,
) -> tuple[Column, bool]:
    """The typed column, and whether it must be set aside; ``where`` is what messages call it."""
    dated = f"{where} holds dates, taken as days since 1970-01-01"
    kind = column.type
    if expected is not None and not aside and column.null_count == len(column):  # nothing here, but training has it
        if expected.kind == "numeric":
            return Column("numeric", np.full(len(column), np.nan)), False
        return Column("categorical", np.full(len(column), -1, np.int32), expected.categories), False
    if is_one_of(kind, "null") or column.null_count == len(column):
        notes.append(f"{where} has no values and is set aside")
        return Column("numeric", np.full(len(column), np.nan)), True
    if is_one_of(kind, "dictionary"):
        column = column.cast(kind.value_type)
        kind = column.type
        categorical = categorical or not aside  # the frame itself says so
    if categorical and not (is_one_of(kind, "boolean") or is_text(kind)):
        column = _as_text(column)
        kind = column.type
    if is_one_of(kind, "boolean"):
        codes = column.cast("int8").fill_null(-1).to_numpy().astype(np.int32)
        return Column("categorical", codes, np.array(["False", "True"])), False
    if is_one_of(kind, "date", "timestamp"):
        notes.append(dated)
        micros = column.cast("timestamp[us]", safe=False).cast("int64").cast("float64", safe=False)
        return Column("numeric", micros.to_numpy() / 86_400e6, is_date=True), False
    if is_one_of(kind, "integer"):
        if column.null_count:  # numbers with gaps are floats
            what = f"{where} (some of it missing; read it as a category instead)"
            _checks.exact_as_float(what, column.drop_null().to_numpy())
        return Column("numeric", column.to_numpy()), False
    if is_one_of(kind, "floating", "decimal"):
        return Column("numeric", column.cast("float64").to_numpy()), False
    if is_text(kind):
        found = _encode_strings(column)
        assert found.categories is not None
        # True and false have one spelling, so that the same column read from another format is the same column. If
        # there is a table to go by, it alone decides, for every cell by itself.
        spelled = (found if expected is None else expected).categories
        if spelled is not None and {one.casefold() for one in spelled.tolist()} <= {"true", "false"}:
            found = _spell_truth(found)
            if found.categories is not None and len(found.categories) == 2:
                return found, False
        assert found.categories is not None
        if categorical or aside:
            return found, False
        days = _dates(found, where)
        if days is not None:
            notes.append(dated)
            return Column("numeric", days, is_date=True), False
        _refuse_spoilt_numbers(found, where)
        if len(found.categories) <= max(20, len(column) // 10) or text == "categorical":
            return found, False
        if text == "ignore":
            notes.append(f"{where} holds text and is set aside")
            return found, True
        raise InputError(
            f"{where} is text ({len(found.categories):,} distinct values in {len(column):,} rows, such as "
            f"{_checks.listed(found.categories[:3])}); put it among the columns to ignore or the categorical ones, or "
            "set text to 'ignore' or 'categorical' for all text columns"
        )
    raise InputError(f"{where} has the type {kind}, which datassay cannot use; ignore or drop it")


def _as_text(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Values as text. A float that is whole has no decimals, whatever the others have, unless it is too large."""
    import pyarrow.compute as pc

    if not is_one_of(column.type, "floating"):
        return column.cast("string")
    whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), 2.0**53))
    return pc.if_else(
        whole, pc.if_else(whole, column, 0.0).cast("int64", safe=False).cast("string"), column.cast("string")
    )


def _spell_truth(found: Column) -> Column:
    """Categories with true and false (in any case) spelled True and False, and the others as they are."""
    assert found.categories is not None
    spelled = [c.capitalize() if c.casefold() in ("true", "false") else c for c in found.categories.tolist()]
    names, at = np.unique([*spelled, "False", "True"], return_inverse=True)
    codes = np.append(at[: len(spelled)], -1)[found.data.astype(np.intp)]
    return Column("categorical", codes.astype(np.int32), names)


def is_one_of(kind: "pa.DataType", *names: str) -> bool:
    """Whether a type of Arrow is one of these: "integer", "floating", "string", …"""
    import pyarrow as pa

    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def is_text(kind: "pa.DataType") -> bool:
    """Whether a type of Arrow is one of those of text."""
    return is_one_of(kind, *TEXT)


def _dates(found: Column, where: str) -> NDArray[np.float64] | None:
    """Days since 1970 if the strings are ISO dates; other ways to write a date are ambiguous and stay text."""
    assert found.categories is not None
    texts = found.categories.tolist()
    odd = [text for text in texts if not ISO_DATE.fullmatch(text)]
    if 4 * len(odd) >= len(texts):
        return None
    if odd:
        raise _spoilt(found, odd, "dates", where)
    try:
        moments = np.array([text.replace(" ", "T") for text in texts], dtype="datetime64[us]")
    except ValueError as error:
        raise InputError(f"{where} holds a date that does not exist: {error}") from None
    return np.append(moments.astype(np.int64) / 86_400e6, np.nan)[found.data.astype(np.intp)]


def _spoilt(found: Column, odd: list[str], what: str, where: str) -> InputError:
    """The error for a column of numbers or dates with other things (``odd``, as categories) among them."""
    assert found.categories is not None
    row = int((found.data == np.searchsorted(found.categories, odd[0])).argmax())
    return InputError(
        f"{where} holds {what} but for {_checks.listed(odd)} (first at row {row}, counting from 0); mend those cells "
        "or leave them empty, or put the column among the categorical ones"
    )


def is_usable(kind: "pa.DataType") -> bool:
    """Whether a column of this type can be kept."""
    return is_text(kind) or is_one_of(
        kind, "null", "dictionary", "boolean", "date", "timestamp", "integer", "floating", "decimal"
    )


def _encode_strings(column: "pa.ChunkedArray") -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column.cast("large_string"))
    trimmed = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    encoded = trimmed.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    names = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    order = np.argsort(names)
    rank = np.empty(len(names) + 1, np.int32)
    rank[order] = np.arange(len(names))
    rank[-1] = -1
    return Column("categorical", rank[codes], names[order])


def _refuse_spoilt_numbers(found: Column, where: str) -> None:
    """Strings that are nearly all numbers are a number column with a fault in it, and not categories."""
    assert found.categories is not None
    texts = found.categories.tolist()
    odd = [text for text in texts if not NUMBER.fullmatch(text)]
    if odd and len(texts) >= 5 * len(odd):  # at least four numbers to each thing that is none
        raise _spoilt(found, odd, "numbers", where)
    commas = [text for text in odd if re.fullmatch(r"[-+]?[\d.\s]*,\d+", text)]
    if len(commas) >= 3 and len(commas) == len(odd):
        raise InputError(
            f"{where} holds numbers with commas, such as {_checks.listed(commas[:2])}; write them with a decimal point "
            "and without separators of thousands, or put the column among the categorical ones"
        )


def rough_kind(kind: "pa.DataType") -> str:
    """The kind of values of a type in a word; nothing if it has no values at all."""
    kind = value_type(kind)
    if is_one_of(kind, "null"):
        return ""
    if is_text(kind):
        return "text"
    if is_one_of(kind, "integer", "floating", "decimal"):
        return "numbers"
    return "dates" if is_one_of(kind, "date", "timestamp") else str(kind)


def value_type(kind: "pa.DataType") -> "pa.DataType":
    """The type of the values; of categories, that of their names."""
    return kind.value_type if is_one_of(kind, "dictionary") else kind
