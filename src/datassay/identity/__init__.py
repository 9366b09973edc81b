"""Identity: who can be found in a table, and which attributes give them away."""

from datassay.identity.coarsening import CoarseningPlan, measured_bins, suggest_coarsening
from datassay.identity.counting import Crowd
from datassay.identity.engine import MOST_EXACT, exact_seconds, order_seconds
from datassay.identity.queries import QueryScores, score_queries
from datassay.identity.result import AttributeMeans, AttributeSets, AttributeTable, Groups, Uniqueness
from datassay.identity.risk import Scenarios, reidentification_risk, reidentification_shapley
from datassay.identity.risk_result import Risk, RiskShapley
from datassay.identity.uniqueness import count_crowds, group_sizes, mean_bits, uniqueness_shapley

__all__ = [
    "MOST_EXACT",
    "AttributeMeans",
    "AttributeSets",
    "AttributeTable",
    "CoarseningPlan",
    "Crowd",
    "Groups",
    "QueryScores",
    "Risk",
    "RiskShapley",
    "Scenarios",
    "Uniqueness",
    "count_crowds",
    "exact_seconds",
    "group_sizes",
    "mean_bits",
    "measured_bins",
    "order_seconds",
    "reidentification_risk",
    "reidentification_shapley",
    "score_queries",
    "suggest_coarsening",
    "uniqueness_shapley",
]
