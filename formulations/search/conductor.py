"""One search: a primal side that improves plans, and a dual side that also raises the bound.

What each side asks, in which order, stands in two lists (:mod:`formulations.search.lists`), whose
parts take turns (:mod:`formulations.search.turns`). With several workers the sides run at the same
time, with one worker turn by turn. Each worker after the second makes plans too, from its own seed,
up to the number of cores. What is known stands in one :class:`formulations.search.state.State`: the
best plan (a target, a hint, a limit), the best bound (where targets start) and the options left.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from formulations.baselines.greedy import starting_plan
from formulations.clock import Clock
from formulations.cpsat import POLL, solver
from formulations.evidence.certify import CERTIFICATE, kept_to_prove, with_certificate
from formulations.instance import Instance, IntArray
from formulations.instance.facts import own_cost
from formulations.presolve import presolve
from formulations.proof.prove import SymmetricLP, prove_infeasible, symmetric_lp
from formulations.reduce import NEVER, bounds_at
from formulations.result.outcome import BoundSource, Outcome, StoppedBy, found, infeasible, nothing
from formulations.result.placement import current_plan
from formulations.search.anneal import Choice
from formulations.search.bounds import Bounds
from formulations.search.context import Context
from formulations.search.lists import LARGE, MAKERS, SMALL, Shared, parts
from formulations.search.numbers import CLOSING, GRACE
from formulations.search.plans import Plans
from formulations.search.prover import Prover
from formulations.search.turns import Part, step, take_turns
from formulations.search.whole import Whole
from formulations.settings import Settings


def conduct(instance: Instance, settings: Settings, clock: Clock, name: str) -> Outcome:
    """Search until plan and bound meet, or the time is over.

    Parameters
    ----------
    instance : Instance
    settings : Settings
    clock : Clock
    name : str
        The formulation that the outcome names.
    """
    presolved = presolve(instance)
    stuck = presolved.empty_table(instance)
    if stuck is not None:
        note = f"no option of table {instance.table_names[stuck]!r} is allowed and fits"
        return infeasible(name, BoundSource("presolve", exact=True), note)
    context = Context(instance, settings, clock, presolved.kept)
    _given(context)
    _priced(context)
    start = _rounded(context, None) if context.best is None else context.best.options
    workers = max(2, context.workers if context.beside else 2)
    sides = [Plans(context, start, number) for number in range(workers)]
    # repairing yesterday's plan may have taken all the time; its multipliers are a certificate
    known = context.known
    done = context.over() and known.best is not None and known.certificate is not None
    try:
        stopped = _stopped(context) if done else _search(context, sides)
    finally:
        context.state.close()
        context.loops.close()
    return _outcome(context, name, stopped)


def _given(context: Context) -> None:
    """Offer the caller's hint, the plan in production and, where it is quick, a greedy plan."""
    instance = context.instance
    if context.settings.hint is not None:
        context.offer(context.settings.hint, "hint")
    current = current_plan(instance)
    if current is not None:
        context.offer(current, "current")
    if instance.num_options <= context.parameters.greedy_up_to:
        greedy = starting_plan(instance, context.settings, context.clock)
        if greedy is not None:
            context.offer(greedy, "greedy")


def _priced(context: Context) -> None:
    """Take a first bound from the caller's multipliers."""
    prices, instance = context.settings.prices, context.instance
    if prices is not None and instance.num_tables:
        found = bounds_at(instance, context.keep, prices)
        if found is None or found.bound == NEVER:
            return  # it prices nothing, or a table has no option left: so the linear program says
        context.state.price(replace(prices, target=found.bound))
        context.lift(found.bound, CERTIFICATE)
        context.drop()


def _relax(context: Context, choose: Callable[[Choice], None]) -> bool:
    """Solve the linear program: it gives a bound with a certificate, prices and a choice of
    options. Returns whether a solution was found in time."""
    clock, instance, stop = context.clock, context.instance, context.settings.stop
    seconds = None if clock.counts else clock.share(0.15)
    lp = symmetric_lp(instance, context.objective, time_limit=seconds, stop=stop)
    if lp is None:
        return False
    context.state.price(lp.certificate)
    choose(Choice(_rounded(context, lp)))
    if instance.num_tables:
        context.lift(lp.bound, CERTIFICATE)
    return True


def _refute(context: Context) -> None:
    """Try to prove that there is no plan, after the linear program found no solution."""
    clock, stop = context.clock, context.settings.stop
    if context.best is None and not clock.over():
        seconds = None if clock.counts else clock.share(0.3)
        proof = prove_infeasible(context.instance, seconds, stop)
        if proof is not None:
            context.state.refute(CERTIFICATE, proof)


def _rounded(context: Context, lp: SymmetricLP | None) -> IntArray:
    """Every table's option with the largest share in the linear program, else the cheapest."""
    instance = context.instance
    share = np.zeros(instance.num_options)
    if lp is not None:
        share[list(lp.shares)] = list(lp.shares.values())
    worth = np.where(
        context.keep, share - 1e-9 * np.argsort(np.argsort(own_cost(instance))), -np.inf
    )
    return np.asarray(
        [t.start + int(worth[t.start : t.stop].argmax())
         for t in map(instance.options_of, range(instance.num_tables))],
        dtype=np.int64,
    )  # fmt: skip


def _search(context: Context, plans: list[Plans]) -> StoppedBy:
    """Run both sides, at the same time or turn by turn; returns why they ended."""

    def choose(choice: Choice) -> None:
        for each in plans:
            each.choose(choice)

    def tell(choice: Choice) -> None:
        """A choice with machines is for all workers. One over pooled places is for every other
        worker: the rest keep the linear program's choice, since either may lead further."""
        for each in plans if choice.machines is not None else plans[::2]:
            each.choose(choice, news=True)

    whole, settings = Whole(context), context.settings
    prover = Prover(context, whole)
    shared = Shared(context, Bounds(context, whole, tell, plans[1].choose), whole, prover)
    lists = SMALL if whole.small else LARGE
    makers = parts(lists.primal, shared, plans[0])
    sides = parts(lists.alone, shared, plans[1]), parts(lists.dual, shared, plans[1])

    # on small instances the prover takes turns, so that no time need be reserved for it
    kept = 0.0 if whole.small else kept_to_prove(context.instance, settings)
    relax = partial(_relax, context, choose)
    seek = partial(_seek, context, whole, makers)
    prove = partial(_prove, shared, sides, kept)

    closing = [partial(_close, context, prover)] if settings.gap_asked else []

    def after_lp(solve: Callable[[], bool], side: Callable[[], None]) -> None:
        if not solve():
            _refute(context)
        side()

    _compile(context, whole)
    if not context.beside:
        context.loops.prepare()
        with context.clock.holding_back(kept):
            _pack_early(context, makers[0])
            after_lp(relax, partial(_in_turn, shared, makers, sides))
            return _stopped(context)  # while time is still held back, which ends the search
    others = [partial(_improve, shared, each) for each in plans[2:]]
    if whole.small:  # the linear program takes a moment and leaves fewer options to the model
        solved = relax()
        _beside(context, partial(after_lp, lambda: solved, seek), prove, *others, *closing)
    else:
        _beside(context, seek, partial(after_lp, relax, prove), *others, *closing)
    return _stopped(context)


def _compile(context: Context, whole: Whole) -> None:
    """Compile the loops where that was never done, since it takes three times as long beside the
    search; a small instance may be solved before."""
    if not context.loops.missing:
        return
    if whole.small:
        whole.run(context.parameters.first_turn)
    if not context.over():
        context.loops.compiled(context.over)


def _improve(shared: Shared, plans: Plans) -> None:
    """Make plans, as every worker after the second does."""
    context = shared.context
    context.loops.prepare()
    take_turns(context, parts(MAKERS, shared, plans), context.over)


def _in_turn(shared: Shared, makers: list[Part], sides: tuple[list[Part], list[Part]]) -> None:
    """One worker: the sides take turns; between them the caller's gap is certified if it is met."""
    context, (alone, dual) = shared.context, sides
    for turn in itertools.count(0 if shared.whole.first else 1):
        both = [dual if shared.whole.give_up() else alone, makers]
        if context.settings.gap_asked and shared.prover.may_end():
            shared.prover.close(context.clock.share(context.parameters.longest_turn))
        if context.over() or not any(p.alive for p in itertools.chain(*both)):
            return
        step(context, both[turn % 2])


def _prove(shared: Shared, sides: tuple[list[Part], list[Part]], kept: float) -> None:
    """The dual side: the exact model alone while it may have the side, then everything else."""
    context, (alone, dual) = shared.context, sides
    take_turns(context, alone, lambda: context.over() or shared.whole.give_up())
    take_turns(context, dual, lambda: context.over() or context.clock.remaining() <= kept)
    if kept:
        shared.prover.last_word()


def _close(context: Context, prover: Prover) -> None:
    """Certify the bound as soon as it is close enough to the plan to stop; in its own thread,
    because other parts' turns are long."""
    while not context.over():
        if prover.may_end():
            prover.close(context.clock.share(CLOSING))
        else:
            context.settings.stop.wait(POLL)


def _pack_early(context: Context, packing: Part) -> None:
    """Make a first plan before a long linear program, where greedy made none."""
    if context.best is None and context.instance.num_options > context.parameters.greedy_up_to:
        step(context, [packing])


def _beside(context: Context, *sides: Callable[[], object]) -> None:
    """One thread per side. At the end, a thread that still compiles its loops is abandoned."""
    errors: list[BaseException] = []

    def run(side: Callable[[], object]) -> None:
        try:
            side()
        except BaseException as error:  # raised in the caller's thread below
            errors.append(error)
            context.failed = True

    threads = [threading.Thread(target=run, args=(side,), daemon=True) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not context.over():
            thread.join(POLL)
        thread.join(GRACE)
    if errors:
        raise errors[0]


def _seek(context: Context, whole: Whole, makers: list[Part]) -> None:
    """The primal side. On small instances it also raises the bound; there the exact model has the
    cores to itself at first."""
    if whole.first:
        chosen, clock = context.parameters, context.clock
        end = clock.now() + min(chosen.first_turn, clock.share(chosen.longest_turn))
        while clock.now() < end and not context.over():
            context.settings.stop.wait(POLL)
    context.loops.prepare()
    take_turns(context, makers, context.over)


def _outcome(context: Context, name: str, stopped: StoppedBy) -> Outcome:
    known = context.known
    if known.refuted is not None:
        return infeasible(
            name, known.refuted, placement=known.best, certificate=known.proof, **solver()
        )
    if known.best is None:
        note = "no plan was found; this does not prove that none exists"
        outcome = nothing(name, stopped, note)
        outcome = outcome.with_(bound=known.bound, bound_source=known.source)
    else:
        outcome = found(context.instance, name, known.best, stopped, known.bound, known.source)
    for certificate in (known.proven, known.certificate):
        if certificate is not None and context.settings.certificate:
            outcome = with_certificate(context.instance, outcome, certificate, context.accepts)
    return outcome.with_(detail={"work": round(context.clock.work, 3)}, **solver())


def _stopped(context: Context) -> StoppedBy:
    clock = context.clock
    if clock.interrupted():
        return StoppedBy.INTERRUPTED
    if context.enough:
        return StoppedBy.GAP
    if clock.counts and clock.remaining() <= 0:
        return StoppedBy.WORK_LIMIT
    return StoppedBy.TIME_LIMIT if clock.over() else StoppedBy.EXHAUSTED
