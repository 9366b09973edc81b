"""Evaluate: how good a value is: curves, the detection of errors, labels that are likely wrong."""

from datassay.evaluate.curves import Curve, addition_curve, removal_curve
from datassay.evaluate.detection import Detection, corrupt_features, corrupt_labels, detect_errors
from datassay.evaluate.mislabelled import Suspects, likely_errors

__all__ = [
    "Curve",
    "Detection",
    "Suspects",
    "addition_curve",
    "corrupt_features",
    "corrupt_labels",
    "detect_errors",
    "likely_errors",
    "removal_curve",
]
