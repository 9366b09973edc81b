"""Value: what a record is worth.

Beside the values themselves, what other rooms build on: the game behind them, and the numbers they share.
"""

from datassay.value.game import Game, Weights, balance_weights, make_game
from datassay.value.knn import (
    UTILITIES,
    chance_of_fewer,
    harmonic,
    knn_banzhaf,
    knn_loo,
    knn_shapley,
    self_shapley,
    shapley_total,
)
from datassay.value.tknn import tknn_shapley
from datassay.value.tuning import Tuning, tune_k, tune_tau
from datassay.value.wasserstein import rank_chances, self_waka, waka, waka_influence

__all__ = [
    "UTILITIES",
    "Game",
    "Tuning",
    "Weights",
    "balance_weights",
    "chance_of_fewer",
    "harmonic",
    "knn_banzhaf",
    "knn_loo",
    "knn_shapley",
    "make_game",
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
