"""Reproduce: the papers' tables and figures, redone and judged."""

# Each of these registers its own.
from datassay.reproduce import identity as identity
from datassay.reproduce import market as market
from datassay.reproduce import models as models
from datassay.reproduce import release as release
from datassay.reproduce import tknn as tknn
from datassay.reproduce import waka as waka
from datassay.reproduce.engine import Reproduction as Reproduction
from datassay.reproduce.engine import list_reproductions as list_reproductions
from datassay.reproduce.engine import reproduce as reproduce
