"""Privacy: what may be told: mechanisms, accounting and the ledger."""

from datassay.privacy.accounting import Cost, calibrate, total_delta, total_epsilon
from datassay.privacy.guarantee import Guarantee
from datassay.privacy.ledger import BudgetExceededError, Ledger, Release
from datassay.privacy.mechanisms import add_noise

__all__ = [
    "BudgetExceededError",
    "Cost",
    "Guarantee",
    "Ledger",
    "Release",
    "add_noise",
    "calibrate",
    "total_delta",
    "total_epsilon",
]
