"""Privacy: what may be told: mechanisms, accounting and the ledger."""

from datassay.privacy import sampling
from datassay.privacy.accounting import Cost, calibrate, check_delta, check_epsilon, total_delta, total_epsilon
from datassay.privacy.auditing import Audit, audit
from datassay.privacy.guarantee import Guarantee
from datassay.privacy.layered_release import (
    LayeredPlan,
    LowUtilityWarning,
    plan_private_layered,
    private_layered_shapley,
)
from datassay.privacy.ledger import BudgetExceededError, Disclosed, Ledger, Release
from datassay.privacy.mechanisms import add_noise
from datassay.privacy.records import NoisyRecords, rehearsal_noise
from datassay.privacy.releases import (
    PrivateValues,
    check_apart,
    check_ledger,
    fingerprint,
    private_knn_shapley,
    private_tknn_shapley,
)
from datassay.privacy.statistics import NoisyCounts, worths

__all__ = [
    "Audit",
    "BudgetExceededError",
    "Cost",
    "Disclosed",
    "Guarantee",
    "LayeredPlan",
    "Ledger",
    "LowUtilityWarning",
    "NoisyCounts",
    "NoisyRecords",
    "PrivateValues",
    "Release",
    "add_noise",
    "audit",
    "calibrate",
    "check_delta",
    "check_epsilon",
    "check_ledger",
    "check_apart",
    "fingerprint",
    "plan_private_layered",
    "private_knn_shapley",
    "private_layered_shapley",
    "private_tknn_shapley",
    "rehearsal_noise",
    "sampling",
    "total_delta",
    "total_epsilon",
    "worths",
]
