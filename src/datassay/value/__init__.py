"""Value: what a record is worth.

Beside the values themselves, what other rooms build on: the game behind them, and the numbers they share.
"""

from typing import TYPE_CHECKING

from datassay.value.coalitions import CLIPPED, Estimator, OnFailure, Scoring, is_stable, model_name
from datassay.value.estimate import Estimate
from datassay.value.game import Game, Weights, balance_weights, make_game
from datassay.value.knn import (
    chance_of_fewer,
    harmonic,
    knn_banzhaf,
    knn_loo,
    knn_shapley,
    self_shapley,
    shapley_total,
)
from datassay.value.layered import Design, LayeredValues, assumed_c, layered_design, layered_shapley, load_design
from datassay.value.semivalues import (
    beta_shapley,
    data_banzhaf,
    data_oob,
    data_shapley,
    leave_one_out,
)
from datassay.value.tknn import tknn_shapley
from datassay.value.tuning import Tuning, tune_k, tune_tau
from datassay.value.wasserstein import rank_chances, self_waka, waka, waka_influence

if TYPE_CHECKING:
    from datassay.value.stable import StableLogisticRegression

__all__ = [
    "CLIPPED",
    "Design",
    "Estimate",
    "Estimator",
    "Game",
    "LayeredValues",
    "OnFailure",
    "Scoring",
    "StableLogisticRegression",
    "Tuning",
    "Weights",
    "assumed_c",
    "balance_weights",
    "beta_shapley",
    "chance_of_fewer",
    "data_banzhaf",
    "data_oob",
    "data_shapley",
    "harmonic",
    "is_stable",
    "knn_banzhaf",
    "knn_loo",
    "knn_shapley",
    "layered_design",
    "layered_shapley",
    "leave_one_out",
    "load_design",
    "make_game",
    "model_name",
    "rank_chances",
    "self_shapley",
    "self_waka",
    "shapley_total",
    "tknn_shapley",
    "tune_k",
    "tune_tau",
    "waka",
    "waka_influence",
]


def __getattr__(name: str) -> object:
    if name == "StableLogisticRegression":  # a scikit-learn class: not before it is asked for, as the import is slow
        from datassay.value.stable import StableLogisticRegression

        return StableLogisticRegression
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
