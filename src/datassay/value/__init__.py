"""Value: what a record is worth."""

from datassay.value.game import balance_weights
from datassay.value.knn import knn_banzhaf, knn_loo, knn_shapley, self_shapley
from datassay.value.tknn import tknn_shapley
from datassay.value.tuning import Tuning, tune_k, tune_tau

__all__ = [
    "Tuning",
    "balance_weights",
    "knn_banzhaf",
    "knn_loo",
    "knn_shapley",
    "self_shapley",
    "tknn_shapley",
    "tune_k",
    "tune_tau",
]
