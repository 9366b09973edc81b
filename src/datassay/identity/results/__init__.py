"""What is known of who can be found: results of this room, one module for each kind of question."""

from datassay.identity.results.asking import KEY, UniquenessQueries, alike, check_key
from datassay.identity.results.attributes import AttributeMeans, AttributeSets, AttributeTable
from datassay.identity.results.groups import Groups
from datassay.identity.results.risk import Risk, RiskShapley
from datassay.identity.results.uniqueness import Uniqueness

__all__ = [
    "KEY",
    "AttributeMeans",
    "AttributeSets",
    "AttributeTable",
    "Groups",
    "Risk",
    "RiskShapley",
    "Uniqueness",
    "UniquenessQueries",
    "alike",
    "check_key",
]
