"""Release: what to publish; strategies that keep the format, and what each costs and saves."""

from datassay.release.comparison import Comparison, compare_releases, make_release, pareto_front
from datassay.release.strategies import Release, Synthesizer, keep, mondrian, remove, synthesize
from datassay.release.utility import Utility, fidelity, predictive_utility

__all__ = [
    "Comparison",
    "Release",
    "Synthesizer",
    "Utility",
    "compare_releases",
    "fidelity",
    "keep",
    "make_release",
    "mondrian",
    "pareto_front",
    "predictive_utility",
    "remove",
    "synthesize",
]
