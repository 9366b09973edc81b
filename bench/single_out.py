"""Runs in anonymeter's environment: the singling-out risk of a release, over what the attack finds in a control."""

import json
import sys

import pandas as pd
from anonymeter.evaluators import SinglingOutEvaluator

original, released, control = (pd.read_csv(path) for path in sys.argv[1:])
evaluator = SinglingOutEvaluator(ori=original, syn=released, control=control, n_attacks=500, n_cols=4)
evaluator.evaluate(mode="multivariate")
print(json.dumps({"risk": float(evaluator.risk(confidence_level=0.95).value)}))
