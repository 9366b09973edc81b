"""Attacks: what leaks anyway; membership games and what values give away."""

from datassay.attacks.membership import View, membership_attack
from datassay.attacks.result import Attack
from datassay.attacks.values import value_score_attack

__all__ = ["Attack", "View", "membership_attack", "value_score_attack"]
