"""Attacks: what leaks anyway; membership games and what values give away."""

from datassay.attacks.result import Attack
from datassay.attacks.values import value_score_attack

__all__ = ["Attack", "value_score_attack"]
