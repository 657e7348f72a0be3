"""Which ways of placing a table are legal, and what each of them needs and costs."""

from milp_planner.options.options import PHASES, Options
from milp_planner.options.price import price

__all__ = ["PHASES", "Options", "price"]
