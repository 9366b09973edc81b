"""Privacy: what may be told: mechanisms and accounting."""

from datassay.privacy.accounting import Cost, calibrate, total_delta, total_epsilon
from datassay.privacy.guarantee import Guarantee
from datassay.privacy.mechanisms import add_noise

__all__ = ["Cost", "Guarantee", "add_noise", "calibrate", "total_delta", "total_epsilon"]
