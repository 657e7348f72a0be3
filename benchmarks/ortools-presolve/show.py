"""CP-SAT's answer to each model: with presolve, with #5293's advice, and without presolve."""

import sys

from ortools.sat.python import cp_model

for file in sys.argv[1:]:
    for wish in ("", "presolve_inclusion_work_limit:0", "cp_model_presolve:false"):
        model, solver = cp_model.CpModel(), cp_model.CpSolver()
        model.proto.parse_text_format(open(file).read())  # noqa: SIM115
        solver.parameters.parse_text_format(wish + " num_workers:1")
        print(file, wish or "default", solver.status_name(solver.solve(model)), end=" ")
        print(solver.response_proto.inner_objective_lower_bound)
