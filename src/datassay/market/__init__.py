"""Market: how to trade. Pricing under full disclosure, and the game of partial disclosure."""

from datassay.market.disclosure import MOST_QUERIES, Disclosure, disclosure_game
from datassay.market.equilibrium import Equilibrium, search_equilibrium
from datassay.market.leakage import Leakage, disclosure_leakage
from datassay.market.moving import MovingNeighbours, knn_utility
from datassay.market.owner import DataOwner
from datassay.market.pricing import Prices, PriceSearch, Purchase, gini, price, search_prices
from datassay.market.strategies import STRATEGY_OPTIONS, ConsumerView, Move

__all__ = [
    "MOST_QUERIES",
    "STRATEGY_OPTIONS",
    "ConsumerView",
    "DataOwner",
    "Disclosure",
    "Equilibrium",
    "Leakage",
    "Move",
    "MovingNeighbours",
    "PriceSearch",
    "Prices",
    "Purchase",
    "disclosure_game",
    "disclosure_leakage",
    "gini",
    "knn_utility",
    "price",
    "search_equilibrium",
    "search_prices",
]
