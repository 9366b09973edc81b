"""Private values: what privacy costs in time, on top of the same values without it."""

import time

import datassay as da
from bench_values import gaussian
from common import Report


def alternate(calls: dict[str, object], repeats: int) -> dict[str, float]:
    """Best time of each call, taken in turns, so that a busy moment of the machine does not fall on one of them."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def run(report: Report) -> None:
    """Time and print."""
    data = gaussian(1_000_000, 1_000, 10)
    promise = {"epsilon": 1.0, "delta": 1e-7}
    seconds = alternate(
        {
            "open": lambda: da.tknn_shapley(*data),
            "private": lambda: da.private_tknn_shapley(*data, **promise),
            "sampled": lambda: da.private_tknn_shapley(*data, **promise, sampling=0.01),
        },
        repeats=4,
    )
    report("open_seconds", "tknn_shapley, 1,000,000 × 1,000 × 10, float64", seconds["open"], "s")
    report(
        "private_ratio",
        "  private_tknn_shapley: time / open values'",
        seconds["private"] / seconds["open"],
        "×",
        1.3,
        False,
    )
    report("sampled_ratio", "  the same, sampling 1%", seconds["sampled"] / seconds["open"], "×", 1.3, False)
