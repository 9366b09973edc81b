"""What can be chosen by name, and what is taken where nothing is said: written once for functions, commands and help.

It imports nothing of ours, so that help and completion need not load what computes.
"""

from typing import Final, Literal

Distance = Literal["euclidean", "cosine", "manhattan"]
Metric = Literal[Distance, "precomputed"]

# How a table is read.
TextColumns = Literal["refuse", "categorical", "ignore"]
Missing = Literal["impute", "error"]
Scaling = Literal["standard", "minmax", "none"]
RecordScaling = Literal["none", "standard"]  # of records that are read in blocks

# How records are valued.
KnnUtility = Literal["soft", "fraction"]
Variant = Literal["signed", "removal", "addition"]
Sampling = Literal["auto", "plain", "antithetic", "stratified", "exact"]
Bound = Literal["hoeffding", "bernstein"]

# How records are made faulty, to see whether they are found.
NoiseScale = Literal["norm", "mean-abs"]

# Models that the command line knows by name.
Model = Literal[
    "logistic-regression",
    "stable-logistic-regression",
    "decision-tree",
    "random-forest",
    "gradient-boosting",
    "naive-bayes",
    "nearest-neighbours",
    "support-vectors",
    "ridge-regression",
    "forest-regression",
]

# What a private release promises, and how.
Relation = Literal["add-remove", "replace"]
AnyRelation = Literal[Relation, "replace-features"]
ReleaseKind = Literal["histogram", "paper"]
NoiseKind = Literal["certified", "paper"]
Constants = Literal["sharp", "textbook"]

# Who attacks whom, and what they know.
AttackName = Literal["lira", "lira-offline", "t-waka", "confidence", "calibrated-confidence"]
Attacker = Literal["outsider", "insider"]
Calculation = Literal["exact", "sampled"]
Weighing = Literal["uniform", "binomial"]
MissingValues = Literal["value", "exclude"]

# The disclosure game.
StrategyName = Literal["random", "shapley", "shapley-commit", "ucb"]
Utility = Literal["votes", "accuracy"]
Unseen = Literal["origin", "absent"]
Trajectory = Literal["utility", "gini", "spearman", "error", "spending"]
Measure = Literal["reached", "queries", "budget", "utility", "gini", "inclusiveness", "spearman"]

# Defaults of parameters that are None if left out, as they depend on others.
DEFAULT_COALITIONS: Final = 10_000
DEFAULT_MARKUPS: Final = (0.0, 0.5, 1.0, 2.0)
DEFAULT_SHARE: Final = 0.6
DEFAULT_BOOTSTRAP: Final = 10
DEFAULT_EXPLORATION: Final = 0.1
DEFAULT_LEARNING_RATE: Final = 0.1
MOST_PAIRED: Final = 60_000  # records of a report of whom all pairs are looked at
MOST_PAIRED_QUICKLY: Final = 5_000
