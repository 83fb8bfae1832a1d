"""Functions that add a hook and then run the model on an argument: each call adds one more hook."""

from __future__ import annotations

from memlint.sdk import Loop
from memlint.sdk.project import Analyser, Summary, each_call, repeated
from memlint.sdk.syntax import calls, dotted, ir, mentions, walk_statements
from memlint.sdk.values import HookCall, LoopState

from .hook_runs import names_it, root_of

#: names of arguments that contain all data and are passed once
_WHOLE = ("loader", "dataset", "batches")
#: methods that run no forward
_PLAIN = frozenset({"eval", "train", "to", "cuda", "cpu", "zero_grad", "requires_grad_", "load_state_dict", "apply"})


def added_for_each_input(analyser: Analyser, summary: Summary, call: HookCall) -> Loop | None:
    """The loop of calls to a function that, after adding the hook, runs the module (or one that contains it) on one of
    its own parameters. None if it does not, or if all known calls run once."""
    function = summary.function
    if function.node is None or function.name.startswith("__"):
        return None
    owners = _owners(summary, call)
    given = {
        param.name for param in function.params[function.takes_self :] if not any(word in param.name for word in _WHOLE)
    }
    if not owners or not any(
        other.at > call.expr.at and _runs_on(other, owners, given) for other in calls(function.body)
    ):
        return None
    known = analyser.facts.calls_of(function)
    if known and not any(record.loops for _, record in known) and repeated(analyser, function) is None:
        return None
    return each_call(function)


def _owners(summary: Summary, call: HookCall) -> set[str]:
    """The names through which the module is reached: parameters, and ``self.model`` of ``self.model.layer4``."""
    function = summary.function
    root = root_of(summary, call.owner)
    if root is None:
        return set()
    own = function.own_name
    if root == own:
        shown = dotted(call.owner).split(".")
        return {".".join(shown[:2])} if len(shown) > 1 else set()
    names = {root}
    for _ in range(3):
        for statement in walk_statements(function.body, into_definitions=False):
            if isinstance(statement, ir.Assign) and any(
                names_it(target, name) for target in statement.targets for name in names
            ):
                source = root_of(summary, statement.value)
                names |= {source} if source is not None else set()
    return names & {param.name for param in function.params} - {own}


def _runs_on(call: ir.Call, owners: set[str], given: set[str]) -> bool:
    """Whether a call runs a module of ``owners`` on a parameter that is none of them."""
    func = dotted(call.func)
    if not any(func == owner or func.startswith(f"{owner}.") for owner in owners) or func.endswith("hook"):
        return False
    if func.rsplit(".", 1)[-1] in _PLAIN:
        return False
    return any(_variable(arg) in given - owners for arg in call.args)


def _variable(expr: ir.Expr) -> str:
    """The root variable of an argument: ``x`` of ``x.to(device)[None]``."""
    while not isinstance(expr, ir.Name):
        if isinstance(expr, ir.Call):
            expr = expr.func
        elif isinstance(expr, ir.Attr | ir.Subscript):
            expr = expr.value
        else:
            return ""
    return expr.id


def runs_on_inputs(held: LoopState, expr: ir.Call, name: str) -> bool:
    """Whether a loop calls the named object on what each iteration binds, while a call in it, which leads to the hook,
    is given nothing that the loop runs over: an explainer that is created for each picture, not for each layer."""
    if (
        not held.counts
        or held.over_objects
        or any(mentions(arg, target) for arg in expr.passed for target in held.targets)
    ):
        return False
    if any(isinstance(one, ir.Jump) and one.kind == "break" for one in walk_statements(held.body, False)):
        return False
    inputs = held.bound - held.counters - {name}
    return any(
        dotted(call.func).split(".")[0] == name and any(_variable(arg) in inputs for arg in call.args)
        for call in calls(held.body)
    )
