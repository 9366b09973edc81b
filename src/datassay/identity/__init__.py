"""Identity: who can be found in a table, and which attributes give them away."""

from datassay.identity.result import AttributeMeans, AttributeSets, AttributeTable, Groups, Uniqueness
from datassay.identity.uniqueness import group_sizes, uniqueness_shapley

__all__ = [
    "AttributeMeans",
    "AttributeSets",
    "AttributeTable",
    "Groups",
    "Uniqueness",
    "group_sizes",
    "uniqueness_shapley",
]
