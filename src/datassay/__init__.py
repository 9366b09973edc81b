"""datassay: what every record and attribute of a data set is worth, leaks and reveals, and what to release.

Start with ``da.knn_shapley``; ``da.read_table`` reads your file. Everything listed here is loaded on first use, so
that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from datassay._errors import InputError, MissingDependencyError, UnavailableError, UsageError
from datassay._version import __version__

if TYPE_CHECKING:
    from datassay import oracle as oracle
    from datassay import release as release
    from datassay.attacks import (
        Attack,
        Exposure,
        Onion,
        membership_attack,
        onion,
        value_and_exposure,
        value_score_attack,
    )
    from datassay.data import (
        Column,
        DatasetInfo,
        Encoder,
        Records,
        Table,
        census,
        fit_encoder,
        list_datasets,
        load_dataset,
        open_records,
        read_distinct,
        read_table,
        voters,
    )
    from datassay.evaluate import (
        Curve,
        Detection,
        Suspects,
        addition_curve,
        corrupt_features,
        corrupt_labels,
        detect_errors,
        likely_errors,
        removal_curve,
    )
    from datassay.identity import (
        AttributeMeans,
        AttributeSets,
        AttributeTable,
        CoarseningPlan,
        Groups,
        QueryScores,
        Risk,
        RiskShapley,
        Uniqueness,
        group_sizes,
        measured_bins,
        reidentification_risk,
        reidentification_shapley,
        score_queries,
        suggest_coarsening,
        uniqueness_shapley,
    )
    from datassay.market import (
        Disclosure,
        Equilibrium,
        Leakage,
        Prices,
        PriceSearch,
        Purchase,
        disclosure_game,
        disclosure_leakage,
        price,
        search_equilibrium,
        search_prices,
    )
    from datassay.neighbors import NeighbourGraph, Neighbours, nearest_neighbours
    from datassay.privacy import (
        Audit,
        BudgetExceededError,
        Guarantee,
        LayeredPlan,
        Ledger,
        LowUtilityWarning,
        NoisyCounts,
        PrivateValues,
        audit,
        plan_private_layered,
        private_knn_shapley,
        private_layered_shapley,
        private_tknn_shapley,
    )
    from datassay.release import Comparison, Release, compare_releases
    from datassay.report import Report
    from datassay.report import report as report
    from datassay.results import Values, load_result
    from datassay.value import (
        Design,
        Estimate,
        LayeredValues,
        StableLogisticRegression,
        Tuning,
        balance_weights,
        beta_shapley,
        data_banzhaf,
        data_oob,
        data_shapley,
        knn_banzhaf,
        knn_loo,
        knn_shapley,
        layered_design,
        layered_shapley,
        leave_one_out,
        load_design,
        self_shapley,
        self_waka,
        tknn_shapley,
        tune_k,
        tune_tau,
        waka,
        waka_influence,
    )

# Which room each public name lives in.
_ROOMS = {
    "attacks": "Attack Exposure Onion membership_attack onion value_and_exposure value_score_attack",
    "data": (
        "Column DatasetInfo Encoder Records Table census fit_encoder list_datasets load_dataset open_records "
        "read_distinct read_table voters"
    ),
    "evaluate": (
        "Curve Detection Suspects addition_curve corrupt_features corrupt_labels detect_errors likely_errors "
        "removal_curve"
    ),
    "identity": (
        "AttributeMeans AttributeSets AttributeTable CoarseningPlan Groups QueryScores Risk RiskShapley Uniqueness "
        "group_sizes measured_bins reidentification_risk reidentification_shapley score_queries suggest_coarsening "
        "uniqueness_shapley"
    ),
    "market": (
        "Disclosure Equilibrium Leakage PriceSearch Prices Purchase disclosure_game disclosure_leakage price "
        "search_equilibrium search_prices"
    ),
    "neighbors": "NeighbourGraph Neighbours nearest_neighbours",
    "privacy": (
        "Audit BudgetExceededError Guarantee LayeredPlan Ledger LowUtilityWarning NoisyCounts PrivateValues audit "
        "plan_private_layered private_knn_shapley private_layered_shapley private_tknn_shapley"
    ),
    "release": "Comparison Release compare_releases",
    "report": "Report",
    "results": "Values load_result",
    "value": (
        "Design Estimate LayeredValues StableLogisticRegression Tuning balance_weights beta_shapley data_banzhaf "
        "data_oob data_shapley knn_banzhaf knn_loo knn_shapley layered_design layered_shapley leave_one_out "
        "load_design self_shapley self_waka tknn_shapley tune_k tune_tau waka waka_influence"
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = [
    "Attack",
    "AttributeMeans",
    "AttributeSets",
    "AttributeTable",
    "Audit",
    "BudgetExceededError",
    "CoarseningPlan",
    "Column",
    "Comparison",
    "Curve",
    "DatasetInfo",
    "Design",
    "Detection",
    "Disclosure",
    "Encoder",
    "Equilibrium",
    "Estimate",
    "Exposure",
    "Groups",
    "Guarantee",
    "InputError",
    "LayeredPlan",
    "LayeredValues",
    "Leakage",
    "Ledger",
    "LowUtilityWarning",
    "MissingDependencyError",
    "NeighbourGraph",
    "Neighbours",
    "NoisyCounts",
    "Onion",
    "PriceSearch",
    "Prices",
    "PrivateValues",
    "Purchase",
    "QueryScores",
    "Records",
    "Release",
    "Report",
    "Risk",
    "RiskShapley",
    "StableLogisticRegression",
    "Suspects",
    "Table",
    "Tuning",
    "UnavailableError",
    "Uniqueness",
    "UsageError",
    "Values",
    "__version__",
    "addition_curve",
    "audit",
    "balance_weights",
    "beta_shapley",
    "census",
    "compare_releases",
    "corrupt_features",
    "corrupt_labels",
    "data_banzhaf",
    "data_oob",
    "data_shapley",
    "detect_errors",
    "disclosure_game",
    "disclosure_leakage",
    "fit_encoder",
    "group_sizes",
    "knn_banzhaf",
    "knn_loo",
    "knn_shapley",
    "layered_design",
    "layered_shapley",
    "leave_one_out",
    "likely_errors",
    "list_datasets",
    "load_dataset",
    "load_design",
    "load_result",
    "measured_bins",
    "membership_attack",
    "nearest_neighbours",
    "onion",
    "open_records",
    "oracle",
    "plan_private_layered",
    "price",
    "private_knn_shapley",
    "private_layered_shapley",
    "private_tknn_shapley",
    "read_distinct",
    "read_table",
    "reidentification_risk",
    "reidentification_shapley",
    "release",
    "removal_curve",
    "report",
    "score_queries",
    "search_equilibrium",
    "search_prices",
    "self_shapley",
    "self_waka",
    "suggest_coarsening",
    "tknn_shapley",
    "tune_k",
    "tune_tau",
    "uniqueness_shapley",
    "value_and_exposure",
    "value_score_attack",
    "voters",
    "waka",
    "waka_influence",
]


def __getattr__(name: str) -> object:
    if name in ("oracle", "release", "report"):  # rooms; the report can be called
        return import_module(f"datassay.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'datassay' has no attribute {name!r}")
    return getattr(import_module(f"datassay.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
