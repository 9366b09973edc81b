"""A table comes in: types, ids, missing values, encoding, splits, named data sets."""

import gzip
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datassay as da

FRAME = pd.DataFrame(
    {
        "person": ["p1", "p2", "p3", "p4"],
        "age (years)": [34, 51, 28, 40],
        "job; or 'none'": ["nurse", "cook", "nurse", "cook"],
        "member": [True, False, True, True],
        "y": ["hi", "lo", "hi", "lo"],
    }
)


def sources(folder):
    FRAME.to_csv(folder / "a.csv", index=False)
    FRAME.to_csv(folder / "a.tsv", index=False, sep="\t")
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    FRAME.to_parquet(folder / "a.parquet")
    return {
        "csv": folder / "a.csv",
        "tsv": folder / "a.tsv",
        "gz": str(folder / "a.csv.gz"),
        "parquet": folder / "a.parquet",
        "pandas": FRAME,
        "polars": pl.from_pandas(FRAME),
        "arrow": pa.Table.from_pandas(FRAME, preserve_index=False),
        "pandas categories": FRAME.astype({"job; or 'none'": "category", "y": "category"}),
    }


@pytest.mark.parametrize("kind", ["csv", "tsv", "gz", "parquet", "pandas", "polars", "arrow", "pandas categories"])
def test_every_source_gives_the_same_table(tmp_path, kind):
    table = da.read_table(sources(tmp_path)[kind], label="y", id="person")
    assert table.ids.tolist() == ["p1", "p2", "p3", "p4"]
    assert table.features == ("age (years)", "job; or 'none'", "member")
    assert table["age (years)"].tolist() == [34, 51, 28, 40]
    assert table["job; or 'none'"].tolist() == ["nurse", "cook", "nurse", "cook"]
    assert table["member"].astype(str).tolist() == ["True", "False", "True", "True"]
    assert table.labels.tolist() == ["hi", "lo", "hi", "lo"]
    assert [table.columns[c].kind for c in table.features] == ["numeric", "categorical", "categorical"]
    assert da.knn_shapley(table, k=1).ids.tolist() == ["p1", "p2", "p3", "p4"]


def csv(folder, text, name="t.csv"):
    file = folder / name
    file.write_text(text)
    return file


def test_whole_number_ids_become_numbers_and_leading_zeros_stay(tmp_path):
    assert da.read_table(csv(tmp_path, "id,x\n3,1\n1,2\n"), id="id").ids.tolist() == [3, 1]
    assert da.read_table(csv(tmp_path, "id,x\n003,1\n001,2\n"), id="id").ids.tolist() == ["003", "001"]


def test_zip_codes_asked_for_as_categories_keep_their_zeros(tmp_path):
    table = da.read_table(csv(tmp_path, "zip,x\n02139,1\n10001,2\n"), categorical=["zip"])
    assert table["zip"].tolist() == ["02139", "10001"]


def test_missing_cells_are_missing(tmp_path):
    table = da.read_table(csv(tmp_path, "a,b,y\n1,u,0\n,NA,1\n?,v,0\n4,,1\n"), label="y")
    assert table.columns["a"].missing.tolist() == [False, True, True, False]
    assert table["b"].tolist() == ["u", None, "v", None]


def test_an_empty_column_is_set_aside_and_noted(tmp_path):
    table = da.read_table(csv(tmp_path, "a,b,y\n1,,0\n2,,1\n"), label="y")
    assert table.features == ("a",)
    assert table.notes == ("column 'b' of t.csv has no values and is set aside",)


def test_dates_become_days_and_are_noted(tmp_path):
    table = da.read_table(csv(tmp_path, "d,y\n1970-01-02,0\n1970-01-11,1\n"), label="y")
    assert table["d"].tolist() == [1.0, 10.0]
    assert "days since 1970" in table.notes[0]


def names(n):
    return "name,x,y\n" + "".join(f"person {i},{i},{i % 2}\n" for i in range(n))


def test_text_is_refused_unless_asked_for(tmp_path):
    file = csv(tmp_path, names(40))
    with pytest.raises(da.InputError, match=r"column 'name' of t.csv is text \(40 distinct values in 40 rows"):
        da.read_table(file, label="y")
    assert da.read_table(file, label="y", text="ignore").features == ("x",)
    assert da.read_table(file, label="y", ignore=["name"]).features == ("x",)
    assert da.read_table(file, label="y", id="name").ids[0] == "person 0"
    for asked in ({"text": "categorical"}, {"categorical": ["name"]}):
        assert da.read_table(file, label="y", **asked).columns["name"].kind == "categorical"


def test_a_stray_word_among_numbers_is_named_with_its_row(tmp_path):
    rows = "".join(f"{i},{i % 2}\n" for i in range(100)) + "unknown,1\n"
    with pytest.raises(da.InputError, match=r"'x' of t.csv holds numbers but for 'unknown' \(first at row 100"):
        da.read_table(csv(tmp_path, "x,y\n" + rows), label="y")


def test_a_stray_word_is_no_category_even_where_few_values_occur(tmp_path):
    rows = "".join(f"{18 + i % 60},{i % 2}\n" for i in range(2000)) + "unknown,1\n"
    with pytest.raises(da.InputError, match=r"'age' of t.csv holds numbers but for 'unknown' \(first at row 2000"):
        da.read_table(csv(tmp_path, "age,y\n" + rows), label="y")
    kept = da.read_table(csv(tmp_path, "age,y\n" + rows), label="y", categorical=["age"])
    assert kept.columns["age"].kind == "categorical"


def test_decimal_commas_are_named(tmp_path):
    rows = "".join(f"{i},{i % 7}5;{i % 2}\n" for i in range(30))
    with pytest.raises(da.InputError, match="holds numbers with commas, such as '0,05'"):
        da.read_table(csv(tmp_path, "x;y\n" + rows), label="y")


def test_codes_with_leading_zeros_are_text_or_categories_as_asked(tmp_path):
    file = csv(tmp_path, "code,y\n" + "".join(f"{i:05d},{i % 2}\n" for i in range(100)))
    with pytest.raises(da.InputError, match="column 'code' of t.csv is text"):
        da.read_table(file, label="y")
    assert da.read_table(file, label="y", text="categorical")["code"][7] == "00007"


@pytest.mark.parametrize("words", [("yes", "no"), ("t", "f"), ("Y", "N"), ("on", "off")])
def test_words_for_true_and_false_stay_the_words_of_the_file(tmp_path, words):
    text = "own,x,y\n" + "".join(f"{words[i % 2]},{i},{words[i // 2 % 2]}\n" for i in range(40))
    train = da.read_table(csv(tmp_path, text, "train.csv"), label="y")
    validation = da.read_table(csv(tmp_path, text, "val.csv"), like=train)
    assert sorted(set(train.labels)) == sorted(set(validation.labels)) == sorted(words)
    values = da.knn_shapley(train, X_val=validation)
    assert values.parameters["n_classes"] == 2
    assert values.notes == ("column 'x' of train.csv holds a different whole number in every row and is used as a feature; "
                            "if it identifies rows, name it as id",
                            "column 'x' of val.csv holds a different whole number in every row and is used as a feature; "
                            "if it identifies rows, name it as id")  # fmt: skip


@pytest.mark.parametrize("words", [("true", "false"), ("TRUE", "FALSE"), ("True", "False")])
def test_true_and_false_are_the_same_in_every_format(tmp_path, words):
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5, 4.5], "y": [True, False, True, False]})
    frame.to_parquet(tmp_path / "train.parquet")
    train = da.read_table(tmp_path / "train.parquet", label="y")
    text = "x,y\n" + "".join(f"{i}.5,{words[i % 2]}\n" for i in range(4))
    validation = da.read_table(csv(tmp_path, text), like=train)
    assert validation.labels.tolist() == ["True", "False", "True", "False"]


def test_blanks_around_cells_do_not_count(tmp_path):
    table = da.read_table(csv(tmp_path, "age, job , y\n40, ?, >50K\n ?, cook, <=50K\n31, cook , >50K\n"), label="y")
    assert table.features == ("age", "job")
    assert table["job"].tolist() == [None, "cook", "cook"]
    assert table.labels.tolist() == [">50K", "<=50K", ">50K"]
    assert table.columns["age"].missing.tolist() == [False, True, False]
    assert table.columns["age"].kind == "numeric"


def test_dates_are_iso_and_nothing_is_guessed(tmp_path):
    iso = da.read_table(csv(tmp_path, "d,y\n2020-02-03,0\n,1\n2020-02-04T12:00,0\n"), label="y")
    np.testing.assert_allclose(iso["d"], [18295, np.nan, 18296.5])
    other = da.read_table(csv(tmp_path, "d,y\n01/02/2020,0\n02/03/2020,1\n"), label="y")
    assert other.columns["d"].kind == "categorical"
    with pytest.raises(da.InputError, match=r"'d' of t.csv holds dates but for 'soon' \(first at row 5"):
        da.read_table(
            csv(tmp_path, "d,y\n" + "".join(f"2020-01-0{i},0\n" for i in range(1, 6)) + "soon,1\n"), label="y"
        )
    with pytest.raises(da.InputError, match="a date that does not exist"):
        da.read_table(csv(tmp_path, "d,y\n2020-13-01,0\n"), label="y")
    kept = da.read_table(csv(tmp_path, "d,y\n2020-02-03,0\n2020-02-04,1\n"), label="y", categorical=["d"])
    assert kept["d"].tolist() == ["2020-02-03", "2020-02-04"]


def test_a_stray_word_with_blanks_around_it_is_found_too(tmp_path):
    with pytest.raises(da.InputError, match=r"'x' of t.csv holds numbers but for 'unknown' \(first at row 5"):
        da.read_table(csv(tmp_path, "x,y\n1,a\n2,b\n3,a\n4,b\n5,a\n unknown ,b\n"), label="y")


def test_several_stray_words_are_still_no_categories(tmp_path):
    rows = "".join(f"{18 + i % 30},{i % 2}\n" for i in range(1000)) + "n.a.,1\nunknown,0\n"
    with pytest.raises(da.InputError, match="'age' of t.csv holds numbers but for 'n.a.', 'unknown'"):
        da.read_table(csv(tmp_path, "age,y\n" + rows), label="y")
    with pytest.raises(da.InputError, match="but for '1_000'"):
        da.read_table(csv(tmp_path, "a\n" + "\n".join(map(str, range(14))) + "\n1_000\n"))


def test_headers_may_be_as_odd_as_csv_allows(tmp_path):
    assert da.read_table(csv(tmp_path, '"a;b;c;\nb",y\n1,2\n3,4\n')).features == ("a;b;c;\nb", "y")
    with pytest.raises(da.InputError, match="'A' and 'a' of t.csv differ only in case"):
        da.read_table(csv(tmp_path, "A,a,y\n1,2,3\n"))


def test_labels_written_differently_in_the_two_files_are_refused(tmp_path):
    train = da.read_table(csv(tmp_path, "x,y\n1.5,a\n2.5,b\n", "train.csv"), label="y")
    validation = da.read_table(csv(tmp_path, "x,y\n1.5,A\n2.5,B\n", "val.csv"), like=train)
    with pytest.raises(da.InputError, match=r"no label of val.csv \('A', 'B'\) occurs in train.csv \('a', 'b'\)"):
        da.knn_shapley(train, X_val=validation)


def test_one_column_is_a_table(tmp_path):
    for name in ("t.csv", "t.tsv", "t.txt"):
        assert da.read_table(csv(tmp_path, "only\n3\n5\n", name))["only"].tolist() == [3, 5]
    with pytest.raises(da.InputError, match="its first line is empty, and must name the columns"):
        da.read_table(csv(tmp_path, "\na,b\n1,2\n"))


def test_text_files_may_be_compressed(tmp_path):
    (tmp_path / "t.txt.gz").write_bytes(gzip.compress(b"a|b\n1|2\n"))
    assert da.read_table(tmp_path / "t.txt.gz").features == ("a", "b")


def test_utf_16_is_named(tmp_path):
    (tmp_path / "u.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(da.InputError, match="cannot read u.csv: it is UTF-16; save it as UTF-8"):
        da.read_table(tmp_path / "u.csv")


def test_no_line_is_taken_for_a_comment_or_a_title(tmp_path):
    table = da.read_table(csv(tmp_path, "a,y\n1,u\n#2,v\n3,u\n"), label="y", categorical=["a"])
    assert table["a"].tolist() == ["1", "#2", "3"]
    with pytest.raises(da.InputError, match="line 2 has 2 cells where the header has 1"):
        da.read_table(csv(tmp_path, "a title\na,y\n1,0\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,y\n1,2,0\n2,1\n3,4,1\n", "cannot read t.csv: line 3 has 2 cells where the header has 3"),
        ("a,b,y\n1,2,0\n2\n3,4,1\n", "cannot read t.csv: line 3 has 1 cell where the header has 3"),
        ("a,b,y\n1,2,0,9\n2,3,1,9\n", "cannot read t.csv: line 2 has 4 cells where the header has 3"),
        ("x,y,y\n1,2,3\n", "t.csv has more than one column named 'y'"),
    ],
)
def test_a_misshapen_file_names_the_line_or_the_column(tmp_path, text, message):
    with pytest.raises(da.InputError, match=message):
        da.read_table(csv(tmp_path, text), label="y")


def test_another_encoding_names_the_line(tmp_path):
    (tmp_path / "l.csv").write_bytes("a,y\n1,u\n2,é\n".encode("latin-1"))
    with pytest.raises(da.InputError, match="cannot read l.csv: line 3 is not UTF-8; save the file as UTF-8"):
        da.read_table(tmp_path / "l.csv")


def test_marks_and_line_ends_of_other_systems_are_understood(tmp_path):
    (tmp_path / "w.csv").write_bytes("\ufeffa;b c\r\n1;u\r\n2;v\r\n".encode())
    table = da.read_table(tmp_path / "w.csv")
    assert table.features == ("a", "b c")
    assert table["a"].tolist() == [1, 2]


@pytest.mark.parametrize("name", ["x[1].csv", "q*.csv", "w?.csv"])
def test_a_file_with_a_wildcard_in_its_name_is_that_file(tmp_path, name):
    for other in ("x1.csv", "qq.csv", "ww.csv"):
        csv(tmp_path, "a\n9\n8\n", other)
    assert da.read_table(csv(tmp_path, "a\n1\n2\n", name))["a"].tolist() == [1, 2]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_named_like_a_partition_adds_no_column(tmp_path, ending):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    frame = pd.DataFrame({"a": [1, 2]})
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    assert da.read_table(folder / f"t.{ending}").features == ("a",)


class TestPandasIndex:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})

    def test_the_index_is_the_id_and_no_feature(self):
        for part, ids in (
            (self.frame[self.frame.a > 2], [2, 3]),
            (self.frame[1:], [1, 2, 3]),
            (self.frame, [0, 1, 2, 3]),
        ):
            table = da.read_table(part, label="y")
            assert table.features == ("a",)
            assert table.ids.tolist() == ids

    def test_the_index_in_a_parquet_file_is_the_id(self, tmp_path):
        named = self.frame.set_index(pd.Index(["p", "q", "r", "s"], name="person"))
        for part, ids in (
            (self.frame.iloc[[3, 0, 2]], [3, 0, 2]),
            (self.frame, [0, 1, 2, 3]),
            (named, ["p", "q", "r", "s"]),
        ):
            part.to_parquet(tmp_path / "t.parquet")
            for source in (tmp_path / "t.parquet", pa.Table.from_pandas(part)):
                table = da.read_table(source, label="y")
                assert table.features == ("a",)
                assert table.ids.tolist() == ids

    def test_a_range_kept_as_metadata_is_not_believed_after_a_sort(self):
        turned = pa.Table.from_pandas(self.frame.iloc[2:]).sort_by([("a", "descending")])
        assert da.read_table(turned, label="y").ids.tolist() == [0, 1]

    def test_an_index_of_several_levels_is_set_aside_with_a_note(self, tmp_path):
        self.frame.set_index([["p", "p", "q", "q"], [1, 2, 1, 2]]).to_parquet(tmp_path / "t.parquet")
        table = da.read_table(tmp_path / "t.parquet", label="y")
        assert table.features == ("a",)
        assert "is set aside" in table.notes[0]

    def test_the_index_in_a_csv_file_is_the_id(self, tmp_path):
        self.frame.iloc[[3, 0]].to_csv(tmp_path / "t.csv")
        table = da.read_table(tmp_path / "t.csv", label="y")
        assert table.features == ("a",)
        assert table.ids.tolist() == [3, 0]


@pytest.mark.parametrize("ending", ["csv", "parquet", "pandas"])
def test_numbers_asked_for_as_categories_are_categories(tmp_path, ending):
    frame = pd.DataFrame({"zip": [27601, 27602, 27601], "y": [0, 1, 0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    source = frame if ending == "pandas" else tmp_path / f"t.{ending}"
    table = da.read_table(source, label="y", categorical=["zip"])
    assert table["zip"].tolist() == ["27601", "27602", "27601"]
    assert da.read_table(frame.astype({"zip": "category"}), label="y").columns["zip"].kind == "categorical"


def test_columns_of_unusable_types_can_be_ignored():
    table = da.read_table(pa.table({"a": [1, 2], "l": [[1], [2]]}), ignore=["l"])
    assert table.features == ("a",)
    assert "column 'l' of table is left out" in table.notes[0]


def test_bad_frames_are_named():
    with pytest.raises(da.InputError, match="cannot read the table"):
        da.read_table(pd.DataFrame({"a": [1, "x", b"y"]}))
    with pytest.raises(da.InputError, match="cannot read the table|more than one column"):
        da.read_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_a_column_that_validation_leaves_empty_is_missing_and_not_lacking(tmp_path):
    train = da.read_table(csv(tmp_path, "a,c,y\n1,u,0\n2,v,1\n", "train.csv"), label="y")
    validation = da.read_table(csv(tmp_path, "a,c,y\n,,0\n,,1\n", "val.csv"), like=train)
    notes = da.knn_shapley(train, X_val=validation).notes
    assert any("2 missing values of 'a'" in note for note in notes)
    assert any("2 missing values of 'c'" in note for note in notes)


def test_a_column_that_differs_in_every_row_is_noted(tmp_path):
    text = "id,x,y\n" + "".join(f"{100 + i},{i % 3},{i % 2}\n" for i in range(30))
    assert (
        "column 'id' of t.csv holds a different whole number" in da.read_table(csv(tmp_path, text), label="y").notes[0]
    )
    assert da.read_table(csv(tmp_path, text), label="y", id="id").notes == ()


BAD_FILES = {
    "nothing.csv": ("", "is empty"),
    "header.csv": ("a,b\n", "has no rows"),
    "t.xlsx": ("x", "cannot tell how to read 't.xlsx'"),
    "t.parquet": ("not parquet", "cannot read t.parquet"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_named(tmp_path, name):
    text, message = BAD_FILES[name]
    with pytest.raises(da.InputError, match=message):
        da.read_table(csv(tmp_path, text, name))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(label="Y"), "there is no column 'Y'; did you mean 'y'?|there is no column 'Y'"),
        (dict(label="income"), r"a\.csv: there is no column 'income'; there are 'person', 'age \(years\)'"),
        (dict(id="persn"), "did you mean 'person'"),
        (dict(label="y", id="y"), "label and id are both 'y'"),
        (dict(id="y"), r"the id 'y' of a.csv has duplicates: 'hi', 'lo'"),
        (dict(ignore="person"), "ignore must be a list of column names"),
        (dict(text="maybe"), "text must be one of"),
        (dict(scale="log"), "scale must be one of"),
        (dict(missing="drop"), "missing must be one of"),
    ],
)
def test_a_bad_argument_is_named(tmp_path, given, message):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(da.InputError, match=message):
        da.read_table(tmp_path / "a.csv", **given)


def test_missing_files_and_foreign_objects_are_refused(tmp_path):
    with pytest.raises(da.InputError, match="there is no file"):
        da.read_table(tmp_path / "nowhere.csv")
    with pytest.raises(da.InputError, match="takes a path or a pandas, polars or Arrow table, got int"):
        da.read_table(3)
    with pytest.raises(da.InputError, match="column names must be strings"):
        da.read_table(pd.DataFrame({1: [2]}))
    with pytest.raises(da.InputError, match="has the type list"):
        da.read_table(pa.table({"a": [[1], [2]]}))


def test_a_missing_id_or_label_names_its_row(tmp_path):
    with pytest.raises(da.InputError, match="the id 'id' of t.csv is missing at row 1"):
        da.read_table(csv(tmp_path, "id,x\n1,1\n,2\n"), id="id")
    table = da.read_table(csv(tmp_path, "x,y\n1,a\n2,\n"), label="y")
    with pytest.raises(da.InputError, match="the label 'y' of t.csv is missing in 1 row, first at row 1"):
        da.knn_shapley(table)


class TestEncoding:
    train = da.read_table(
        pd.DataFrame({"a": [0.0, 10.0, None, 20.0], "c": ["u", "v", None, "u"], "same": [5, 5, 5, 5]}), name="train"
    )

    def test_standard_scaling_is_fitted_on_training_data(self):
        encoder = da.fit_encoder(self.train)
        points, notes = encoder.transform(self.train)
        filled = np.array([0.0, 10.0, 10.0, 20.0])
        np.testing.assert_allclose(points[:, 0], (filled - filled.mean()) / filled.std())
        assert encoder.feature_names == ("a", "c=u", "c=v", "c missing", "same")
        np.testing.assert_array_equal(points[:, 1:4], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
        np.testing.assert_array_equal(points[:, 4], 0)
        assert notes == (
            "train: 1 missing values of 'a' taken as the training median 10",
            "train: 1 missing values of 'c' taken as a category of their own",
        )

    def test_minmax_and_no_scaling(self):
        points = da.fit_encoder(self.train, scale="minmax").transform(self.train)[0]
        np.testing.assert_allclose(points[:, 0], [0, 0.5, 0.5, 1])
        points = da.fit_encoder(self.train, scale="none", dtype="float32").transform(self.train)[0]
        np.testing.assert_array_equal(points[:, 0], [0, 10, 10, 20])
        assert points.dtype == np.float32

    def test_a_table_read_with_a_rule_is_encoded_by_it(self):
        frame = pd.DataFrame({"a": [0.0, 10.0], "y": [0, 1]})
        assert da.fit_encoder(da.read_table(frame, scale="minmax")).scale == "minmax"
        refusing = da.read_table(pd.DataFrame({"a": [0.0, None], "y": [0, 1]}), label="y", missing="error")
        with pytest.raises(da.InputError, match="column 'a' of table is missing at row 1"):
            da.knn_shapley(refusing)

    def test_unseen_categories_match_none_and_are_noted(self):
        encoder = da.fit_encoder(self.train)
        other = da.read_table(pd.DataFrame({"a": [1.0], "c": ["w"], "same": [5]}), name="validation")
        points, notes = encoder.transform(other)
        np.testing.assert_array_equal(points[0, 1:4], 0)
        assert "1 values of 'c' never occur in training ('w')" in notes[0]

    def test_only_a_constant_is_a_constant(self):
        table = da.read_table(pd.DataFrame({"a": 1e16 + np.arange(0, 20, 2), "same": 0.1 + np.zeros(10)}))
        points = da.fit_encoder(table).transform(table)[0]
        assert points[:, 0].std() == pytest.approx(1, abs=0.05)  # the mean itself is rounded to a multiple of 2
        assert (points[:, 1] == 0).all()

    def test_numbers_too_large_to_scale_are_refused(self):
        with (
            np.errstate(over="ignore", invalid="ignore"),
            pytest.raises(da.InputError, match="'a' of table holds numbers too large"),
        ):
            da.fit_encoder(da.read_table(pd.DataFrame({"a": [1e308, -1e308, 0.0]})))

    def test_numbers_too_small_to_scale_and_inexact_ones_are_refused(self):
        with pytest.raises(da.InputError, match="'a' of table holds numbers too small to scale"):
            da.fit_encoder(da.read_table(pd.DataFrame({"a": [0.0, 1e-200, 2e-200]})))
        with pytest.raises(da.InputError, match="'a' of table has whole numbers beyond 2"):
            da.fit_encoder(da.read_table(pd.DataFrame({"a": [2**60, 2**60 + 1]})))

    def test_a_tiny_scale_is_not_mistaken_for_a_constant(self):
        table = da.read_table(pd.DataFrame({"a": [1e-20, 2e-20, 3e-20]}))
        np.testing.assert_allclose(da.fit_encoder(table).transform(table)[0].std(), 1)

    @pytest.mark.parametrize(
        ("frame", "message"),
        [
            ({"a": [1.0], "c": ["u"]}, "other lacks the column 'same' that the training data has"),
            ({"a": [1.0], "c": ["u"], "same": [5], "more": [1]}, "other has the column 'more'"),
            ({"a": ["x"], "c": ["u"], "same": [5]}, "'a' is numeric in the training data and categorical in other"),
            ({"a": [np.inf], "c": ["u"], "same": [5]}, "column 'a' of other is infinite at row 0"),
        ],
    )
    def test_different_columns_are_named(self, frame, message):
        other = da.read_table(pd.DataFrame(frame), name="other")
        with pytest.raises(da.InputError, match=message):
            da.fit_encoder(self.train).transform(other)

    def test_an_infinite_training_value_is_named(self):
        with pytest.raises(da.InputError, match="column 'a' of table is infinite at row 1"):
            da.fit_encoder(da.read_table(pd.DataFrame({"a": [0.0, np.inf]})))


def test_validation_data_is_read_like_its_training_data(tmp_path):
    train = da.read_table(
        csv(tmp_path, "id,zip,flag,x,y\na,02139,1,5,u\nb,02138,0,6,v\n", "train.csv"),
        label="y", id="id", categorical=["zip"], ignore=["flag"],
    )  # fmt: skip
    text = "id,zip,x,y\n" + "".join(f"v{i},0{2100 + i},{i},u\n" for i in range(50))
    validation = da.read_table(csv(tmp_path, text, "val.csv"), like=train)
    assert validation.label == "y"
    assert validation.ids[0] == "v0"
    assert validation["zip"][0] == "02100"
    assert len(da.knn_shapley(train, X_val=validation)) == 2


class TestSplit:
    table = da.census(1000, seed=5)

    def test_parts_are_disjoint_cover_everything_and_keep_ids(self):
        parts = self.table.split(0.6, 0.2, 0.2, seed=1)
        assert [len(part) for part in parts] == [600, 200, 200]
        ids = np.concatenate([part.ids for part in parts])
        assert sorted(ids) == list(range(1000))
        for part in parts:
            assert (np.diff(part.ids) > 0).all()
            np.testing.assert_array_equal(part["age"], self.table["age"][part.ids])

    def test_the_rest_becomes_one_more_part(self):
        assert [len(part) for part in self.table.split(0.7, 0.1)] == [700, 100, 200]

    def test_every_part_has_the_classes_of_the_whole(self):
        share = (self.table.labels == "high").mean()
        for part in self.table.split(0.5, 0.3, 0.2):
            assert abs((part.labels == "high").mean() - share) <= 2 / len(part)

    def test_small_classes_are_split_at_random_too(self):
        singles = da.read_table(pd.DataFrame({"x": range(100), "y": [f"c{i}" for i in range(100)]}), label="y")
        held_out = [set(singles.split(0.8, seed=s)[1].ids.tolist()) for s in range(20)]
        assert len(set().union(*held_out)) > 90

    def test_bad_rows_are_refused(self):
        with pytest.raises(da.InputError, match="the mask has shape"):
            self.table.select(np.array([True]))
        with pytest.raises(da.InputError, match="positions or a Boolean mask"):
            self.table.select([0.7])

    def test_the_seed_decides(self):
        a, b, c = (self.table.split(0.5, seed=s)[0].ids for s in (1, 1, 2))
        assert a.tolist() == b.tolist() != c.tolist()

    @pytest.mark.parametrize(
        ("shares", "message"),
        [((), "at least one share"), ((0.7, 0.7), "add up to more than 1"), ((0,), "above 0"), ((1e-9,), "no rows")],
    )
    def test_bad_shares_are_refused(self, shares, message):
        with pytest.raises(da.InputError, match=message):
            self.table.split(*shares)


@cache
def voters():
    return da.voters(400_000, seed=2)


class TestVoters:
    @property
    def table(self):
        return voters()

    @pytest.mark.parametrize(
        ("column", "shares"),
        [
            ("party", {"Democratic": 36, "Libertarian": 1, "Republican": 30, "None": 33}),
            ("gender", {"Female": 49, "Male": 42, "No Answer": 8}),
            ("race", {"White": 63, "Black": 21, "Asian": 1, "Native American": 1, "No Answer": 10}),
        ],
    )
    def test_shares_follow_table_5(self, column, shares):
        values = self.table[column]
        for name, percent in shares.items():
            assert 100 * (values == name).mean() == pytest.approx(percent, abs=0.6)

    def test_age_bands_are_quarters(self):
        age = self.table["age"]
        for low, high in ((18, 32), (32, 48), (48, 64), (64, 130)):
            assert ((age >= low) & (age < high)).mean() == pytest.approx(0.25, abs=0.01)

    @pytest.mark.parametrize(
        ("column", "nats"), [("zip", 6.08), ("race", 1.08), ("party", 1.14), ("gender", 0.92), ("age", 4.24)]
    )
    def test_entropies_follow_table_4_which_is_in_nats(self, column, nats):
        counts = np.unique(self.table[column], return_counts=True)[1]
        p = counts / counts.sum()
        assert -(p * np.log(p)).sum() == pytest.approx(nats, abs=0.02)

    def test_groups_differ_as_in_table_5(self):
        race, party, age, gender = (self.table[c] for c in ("race", "party", "age", "gender"))
        assert (party[race == "Black"] == "Democratic").mean() > 0.6
        assert (race[age < 32] == "White").mean() < (race[age > 63] == "White").mean()
        assert (gender[race == "No Answer"] == "No Answer").mean() > 0.3

    def test_every_zip_code_lies_in_one_county(self):
        pairs = set(zip(self.table["zip"].tolist(), self.table["county"].tolist(), strict=True))
        assert len(pairs) == len({zip_code for zip_code, _ in pairs})
        assert "county" not in self.table.features

    def test_the_seed_decides(self):
        assert da.voters(50, seed=1)["zip"].tolist() == da.voters(50, seed=1)["zip"].tolist()
        assert da.voters(50, seed=1)["zip"].tolist() != da.voters(50, seed=2)["zip"].tolist()


class TestCensus:
    table = da.census(2000, seed=4)

    def test_planted_duplicates_are_copies(self):
        copies = np.flatnonzero(self.table["duplicate_of"] >= 0)
        originals = self.table["duplicate_of"][copies]
        assert len(copies) == 40
        for column in (*self.table.features, "income"):
            assert (self.table[column][copies] == self.table[column][originals]).all()

    def test_rare_people_are_rare(self):
        rare = self.table["rare"] == "True"
        assert rare.sum() == 20
        odd_job = np.isin(self.table["occupation"], ["astronaut", "bishop", "lighthouse keeper", "ballerina", "judge"])
        np.testing.assert_array_equal(rare, odd_job | (self.table["age"] > 90))

    def test_income_depends_on_the_attributes(self):
        train, validation = self.table.split(0.7)
        assert da.tune_k(train, X_val=validation).scores.max() > 0.8

    def test_low_values_find_the_planted_label_errors(self):
        train, validation = self.table.split(0.8)
        wrong = train["label_error"] == "True"
        for values in (da.knn_shapley(train, X_val=validation), da.tknn_shapley(train, X_val=validation)):
            assert da.detect_errors(values, wrong).auroc > 0.9


class TestDatasets:
    def test_every_listed_data_set_loads(self):
        for info in da.list_datasets():
            if info.source != "DATASSAY_DATA":
                assert len(da.load_dataset(info.name)) > 100

    def test_sklearn_labels_are_names(self):
        assert sorted(set(da.load_dataset("iris").labels)) == ["setosa", "versicolor", "virginica"]
        assert da.load_dataset("diabetes").label is None

    def test_a_folder_of_parquet_files_is_listed_and_loaded(self, tmp_path, monkeypatch):
        pq.write_table(pa.table({"x": [1, 2], "y": ["a", "b"]}), tmp_path / "mine.parquet")
        monkeypatch.setenv("DATASSAY_DATA", str(tmp_path))
        assert [info.name for info in da.list_datasets() if info.source == "DATASSAY_DATA"] == ["mine"]
        table = da.load_dataset("mine")
        assert table.label == "y"
        assert "taken as the label" in table.notes[0]
        assert da.load_dataset("mine", label="x").label == "x"

    def test_a_folder_that_is_none_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("DATASSAY_DATA", str(tmp_path / "gone"))
        with pytest.raises(da.InputError, match="DATASSAY_DATA names"):
            da.load_dataset("mine")

    def test_openml_without_a_network_says_so(self, monkeypatch):
        from urllib.error import URLError

        import sklearn.datasets

        def unreachable(**_):
            raise URLError("no network")

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)
        with pytest.raises(da.InputError, match="OpenML cannot be reached for 'adult'"):
            da.load_dataset("openml:adult")

    def test_openml_frames_are_read(self, monkeypatch):
        import sklearn.datasets
        from sklearn.utils import Bunch

        asked = []

        def fetch(**given):
            asked.append(given)
            return Bunch(frame=FRAME, target_names=["y"])

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
        table = da.load_dataset("openml:42", id="person")
        assert table.label == "y"
        assert asked[0]["data_id"] == 42

    def test_real_files_load(self, shared_data):
        adult = da.load_dataset("adult", label="income", ignore=["split"])
        assert len(adult) == 48842
        assert adult.columns["workclass"].missing.sum() == 2799  # the published count of '?' in this column


def test_a_table_is_written_and_read_again(tmp_path):
    table = da.census(50, seed=0)
    for name in ("t.csv", "t.parquet"):
        again = da.read_table(table.save(tmp_path / name), label="income", id="id", ignore=list(table.carried))
        assert again.features == table.features
        assert again["occupation"].tolist() == table["occupation"].tolist()
        assert again["capital"].tolist() == table["capital"].tolist()
    assert "id" in table.to_frame("polars").columns
    crowded = da.read_table(pd.DataFrame({"id": [5, 6], "row_id": [7, 8]}, index=["p", "q"]))
    assert crowded.to_frame("pandas").iloc[:, 0].tolist() == ["p", "q"]
    assert crowded.to_frame("pandas")["row_id"].tolist() == [7, 8]


def test_a_column_ignored_elsewhere_can_be_the_id_here(tmp_path):
    (tmp_path / "ours.csv").write_text("who,x,y\n1,0.5,a\n2,0.7,b\n")
    ours = da.read_table(tmp_path / "ours.csv", label="y", ignore=["who"])
    people = da.read_table(tmp_path / "ours.csv", id="who", like=ours)
    assert people.ids.tolist() == [1, 2]
    assert people.features == ours.features == ("x",)
