"""Attacks: what leaks anyway; membership games and what values give away."""

from datassay.attacks.exposure import QUADRANTS, Exposure, value_and_exposure
from datassay.attacks.membership import View, membership_attack
from datassay.attacks.peeling import Onion, onion
from datassay.attacks.result import Attack
from datassay.attacks.values import value_score_attack

__all__ = [
    "QUADRANTS",
    "Attack",
    "Exposure",
    "Onion",
    "View",
    "membership_attack",
    "onion",
    "value_and_exposure",
    "value_score_attack",
]
