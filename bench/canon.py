"""Runs in pycanon's environment: the k of a release, and k, l and t of another, as pycanon counts them."""

import json
import sys

import pandas as pd
from pycanon import anonymity

plain, diverse, sensitive = sys.argv[1:]
first, second = pd.read_csv(plain), pd.read_csv(diverse)
same = [name for name in second.columns if name != sensitive]
print(
    json.dumps(
        {
            "k": int(anonymity.k_anonymity(first, list(first.columns))),
            "k_diverse": int(anonymity.k_anonymity(second, same)),
            "l": int(anonymity.l_diversity(second, same, [sensitive])),
            "t": float(anonymity.t_closeness(second, same, [sensitive])),
        }
    )
)
