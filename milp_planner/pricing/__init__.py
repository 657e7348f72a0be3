"""Which ways of placing a table are legal, and what each of them needs and costs."""

from milp_planner.pricing.options import PHASES, Options
from milp_planner.pricing.price import price

__all__ = ["PHASES", "Options", "price"]
