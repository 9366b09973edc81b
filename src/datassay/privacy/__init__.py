"""Privacy: what may be told: mechanisms, accounting and the ledger."""

from datassay.privacy.accounting import Cost, calibrate, total_delta, total_epsilon
from datassay.privacy.auditing import Audit, audit
from datassay.privacy.guarantee import Guarantee
from datassay.privacy.ledger import BudgetExceededError, Ledger, Release
from datassay.privacy.mechanisms import add_noise
from datassay.privacy.releases import PrivateValues, private_knn_shapley, private_tknn_shapley
from datassay.privacy.statistics import NoisyCounts

__all__ = [
    "Audit",
    "BudgetExceededError",
    "Cost",
    "Guarantee",
    "Ledger",
    "NoisyCounts",
    "PrivateValues",
    "Release",
    "add_noise",
    "audit",
    "calibrate",
    "private_knn_shapley",
    "private_tknn_shapley",
    "total_delta",
    "total_epsilon",
]
