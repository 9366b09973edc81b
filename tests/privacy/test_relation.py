"""``relation`` was called ``neighbours``: calls, files and ledgers of that time go on working."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import datassay as da
from datassay.privacy import Cost, Guarantee, Ledger, calibrate

X, Y = np.arange(24.0).reshape(12, 2) % 7, ["a", "b"] * 6
X_VAL, Y_VAL = [[0.5, 1.0], [3.0, 2.0], [6.5, 5.5]], ["a", "b", "a"]
PUBLIC = dict(X_val=X_VAL, y_val=Y_VAL, delta=1e-2, n_jobs=1)


def threshold_values(**options):
    return da.private_tknn_shapley(X, Y, tau=2.0, metric="euclidean", **PUBLIC, **options)


def ranked_values(**options):
    return da.private_knn_shapley(X, Y, k=2, **PUBLIC, **options)


def layered_values(**options):
    options = {name: value for name, value in options.items() if name == "ledger"}
    model = da.StableLogisticRegression(kappa=2.0)
    return da.private_layered_shapley(model, X, Y, alpha=2.0, predict=False, **PUBLIC, **options)


@pytest.mark.parametrize("made", [threshold_values, ranked_values])
def test_values_take_the_earlier_name(made):
    assert made(neighbours="replace").guarantee == made(relation="replace").guarantee
    assert made(neighbours="replace").guarantee.neighbours == "replace"
    assert made(neighbours="replace").facts()["neighbours"] == "replace"
    with pytest.raises(da.InputError, match="neighbours is the earlier name of relation"):
        made(neighbours="replace", relation="replace")


def test_accounting_and_audits_take_the_earlier_name():
    cost = calibrate("gaussian", 1.0, 1e-5, sampling=0.1, neighbours="replace")
    assert cost == calibrate("gaussian", 1.0, 1e-5, sampling=0.1, relation="replace")
    assert cost.neighbours == cost.relation == "replace"
    assert Cost("gaussian", 1.0, neighbours="replace") == Cost("gaussian", 1.0, relation="replace")
    audit = da.audit("laplace", delta=1e-5, neighbours="replace", trials=200)
    assert audit.relation == audit.neighbours == "replace"


def test_what_was_written_under_the_earlier_name_is_read(tmp_path):
    values = threshold_values(relation="replace")
    text = values.save(tmp_path / "new.json").read_text()
    assert '"relation": "replace"' in text
    (tmp_path / "old.json").write_text(text.replace('"relation"', '"neighbours"'))
    old = da.load_result(tmp_path / "old.json")
    assert (old.guarantee, old.costs) == (values.guarantee, values.costs)
    promise = values.guarantee.to_dict()
    assert (
        Guarantee(**{"neighbours" if name == "relation" else name: promise[name] for name in promise})
        == values.guarantee
    )
    audit = da.audit("laplace", delta=1e-5, trials=200)
    text = audit.save(tmp_path / "audit.json").read_text().replace('"relation"', '"neighbours"')
    (tmp_path / "audit.json").write_text(text)
    assert da.load_result(tmp_path / "audit.json") == audit


def test_a_ledger_takes_the_earlier_name(tmp_path):
    ledger = Ledger(tmp_path / "one", epsilon=1.0, delta=1e-5, neighbours="replace")
    assert ledger.neighbours == ledger.relation == Ledger(tmp_path / "one", relation="replace").relation
    assert Ledger.planned(tmp_path / "two", 1.0, 1e-5, neighbours="replace").relation == "replace"


# The digests under which 0.1.0 wrote these questions down.
@pytest.mark.parametrize(
    ("made", "options", "request_of_0_1_0"),
    [
        (threshold_values, {}, "9d11f5b5b3b042595501408b6f4edc694db8ee32d51774160b0fb469b20da8e7"),
        (
            threshold_values,
            {"relation": "replace", "sampling": 0.5},
            "349d8d3bfc46ecc1ed3eb48be8331572aa798cc8434e8b945607531ebb632f39",
        ),
        (ranked_values, {}, "0d844e5d771376882c33217e34a8ce70f800ff1e9b20ae8f40ebb6e7964d20f0"),
        (
            layered_values,
            {"relation": "replace"},
            "caaf8156c2728a86a325721608950d86811964db7fe4110a290953db8dd7a287",
        ),
    ],
)
def test_an_earlier_ledger_serves_its_releases_again(made, options, request_of_0_1_0, tmp_path):
    ledger = Ledger(tmp_path / "ledger", epsilon=50.0, delta=1e-3, relation=options.get("relation"))
    values = made(ledger=ledger, **options)
    (line,) = ledger.releases()
    assert line.request == request_of_0_1_0
    with closing(sqlite3.connect(ledger.path)) as connection:
        (costs,) = connection.execute("SELECT costs FROM releases").fetchone()
    assert "neighbours" in json.loads(costs)[0]  # which earlier versions read
    assert (made(ledger=Ledger(ledger.path), **options).values == values.values).all()
