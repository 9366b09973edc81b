"""Identity: who can be found in a table, and which attributes give them away."""

from datassay.identity.coarsening import CoarseningPlan, measured_bins, suggest_coarsening
from datassay.identity.queries import QueryScores, score_queries
from datassay.identity.results import (
    AttributeMeans,
    AttributeSets,
    AttributeTable,
    Groups,
    Risk,
    RiskShapley,
    Uniqueness,
    UniquenessQueries,
)
from datassay.identity.risk import Scenarios, reidentification_risk, reidentification_shapley
from datassay.identity.uniqueness import group_sizes, uniqueness_shapley

__all__ = [
    "AttributeMeans",
    "AttributeSets",
    "AttributeTable",
    "CoarseningPlan",
    "Groups",
    "QueryScores",
    "Risk",
    "RiskShapley",
    "Scenarios",
    "Uniqueness",
    "UniquenessQueries",
    "group_sizes",
    "measured_bins",
    "reidentification_risk",
    "reidentification_shapley",
    "score_queries",
    "suggest_coarsening",
    "uniqueness_shapley",
]
