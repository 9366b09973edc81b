"""Privacy: what may be told: mechanisms, accounting and the ledger."""

from datassay.privacy.accounting import Cost, calibrate, total_delta, total_epsilon
from datassay.privacy.guarantee import Guarantee
from datassay.privacy.ledger import BudgetExceededError, Ledger, Release
from datassay.privacy.mechanisms import add_noise
from datassay.privacy.releases import NoisyCounts, PrivateValues, private_tknn_shapley

__all__ = [
    "BudgetExceededError",
    "Cost",
    "Guarantee",
    "Ledger",
    "NoisyCounts",
    "PrivateValues",
    "Release",
    "add_noise",
    "calibrate",
    "private_tknn_shapley",
    "total_delta",
    "total_epsilon",
]
