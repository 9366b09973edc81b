"""Evaluate: how good a value is, and whether the published numbers come out."""

from datassay.evaluate import identity_reproductions as identity_reproductions  # registers its tables
from datassay.evaluate import market_reproductions as market_reproductions
from datassay.evaluate import model_reproductions as model_reproductions
from datassay.evaluate import release_reproductions as release_reproductions  # and these theirs
from datassay.evaluate.curves import Curve, addition_curve, removal_curve
from datassay.evaluate.detection import Detection, corrupt_features, corrupt_labels, detect_errors
from datassay.evaluate.mislabelled import Suspects, likely_errors
from datassay.evaluate.reproductions import Reproduction, list_reproductions, reproduce

__all__ = [
    "Curve",
    "Detection",
    "Reproduction",
    "Suspects",
    "addition_curve",
    "corrupt_features",
    "corrupt_labels",
    "detect_errors",
    "likely_errors",
    "list_reproductions",
    "removal_curve",
    "reproduce",
]
