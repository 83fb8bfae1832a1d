"""Why a line is no candidate of the kinds that rules report."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.domain.events import CandidateKind
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import DATA, NONE, TENSORS, UNKNOWN, V
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import last_name, parts_of, walk_expression
from memlint.explain.watch import Recording
from memlint.explanation import StatementFacts
from memlint.ir import nodes as ir

#: methods by which containers grow
_STORES = frozenset({"append", "extend", "add", "insert", "appendleft", "put", "update"})
#: calls that join tensors
_CATS = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack"})
#: calls that cut a graph
_CUTS = frozenset({"item", "detach", "tolist", "numpy", "cpu", "float"})


def absent(
    summary: Summary, recording: Recording, statement: ir.Stmt, facts: StatementFacts
) -> dict[CandidateKind, str]:
    """By kind of candidate, what the line lacks for one, as a clause."""
    if not facts.reached:
        return {}
    found: dict[CandidateKind, str] = {}
    added = _added(statement)
    stored = _stored(statement)
    repeats = _unrepeated(summary, recording, statement, facts)
    if added is None:
        found["add"] = "this line adds nothing to a running sum (`total += …`, `total = total + …`)"
        found["carry"] = "no variable is computed from its own previous value here"
    else:
        found["add"] = _graphless(recording, added, f"`{facts.source.strip()}` adds", facts) or repeats
        found["carry"] = found["add"]
    if stored is None:
        found["retain"] = "this line stores nothing in a container or attribute"
        found["tensor"] = found["retain"]
    else:
        found["retain"] = _graphless(recording, stored, f"`{facts.source.strip()}` stores", facts) or repeats
        found["tensor"] = _hostly(recording, stored) or repeats
    if not any(last_name(call.func) in _CATS for call in _calls(statement)):
        found["cat"] = "this line concatenates nothing (`x = torch.cat([x, part])`)"
    else:
        found["cat"] = repeats or "what is concatenated does not become the next round's first part"
    ran = [run for run in summary.runs.values() if run.site.at in {call.at for call in _calls(statement)}]
    if not ran:
        calls_here = [call for call in _calls(statement) if isinstance(call.func, ir.Name | ir.Attr)]
        model = "no model is known to run on this line"
        if facts.grad_mode == "off" and calls_here:
            model += f" while autograd records: grad mode is off ({facts.decided_by})"
        found["run"] = model
    elif facts.grad_mode == "off":
        found["run"] = f"`{ran[0].text}` runs with grad mode off ({facts.decided_by})"
    return {kind: said for kind, said in found.items() if said}


def _unrepeated(summary: Summary, recording: Recording, statement: ir.Stmt, facts: StatementFacts) -> str:
    """Why the stored value does not accumulate; "" if something repeats the line."""
    around = recording.loops.get(statement.at, ())
    if not facts.loops:
        return "nothing is known to repeat this line: there is no loop around it or around a call of the function"
    if around and len(facts.loops) == len(around) and not any(loop.counts for loop in around):
        return f"`{around[-1].loop.text}` runs over layers, steps or a few parts, and not over data"
    name = _local(summary, statement)
    if name and not around:
        return (
            f"`{name}` is a local variable that each call makes anew, and no loop in the function is around this line"
        )
    return ""


def _local(summary: Summary, statement: ir.Stmt) -> str:
    """The local variable in which the statement stores something; "" for another place."""
    target: ir.Expr | None = None
    if isinstance(statement, ir.AugAssign):
        target = statement.target
    elif isinstance(statement, ir.Assign):
        target = statement.targets[0]
    else:
        call = next(_calls(statement), None)
        target = call.func.value if call is not None and isinstance(call.func, ir.Attr) else None
    names = {param.name for param in summary.function.params}
    is_local = isinstance(target, ir.Name) and target.id in summary.function.locals and target.id not in names
    return target.id if is_local and isinstance(target, ir.Name) and summary.function.node is not None else ""


def _calls(statement: ir.Stmt) -> Iterator[ir.Call]:
    for part in parts_of(statement):
        if isinstance(part, ir.Call):
            yield part


def _added(statement: ir.Stmt) -> ir.Expr | None:
    """The term that is added to a sum, or the expression from which a variable is computed with its own value."""
    if isinstance(statement, ir.AugAssign):
        return statement.value
    if isinstance(statement, ir.Assign) and len(statement.targets) == 1:
        target = text(statement.targets[0], 200)
        if isinstance(statement.value, ir.Binary) and any(
            isinstance(part, ir.Name | ir.Attr | ir.Subscript) and text(part, 200) == target
            for part in walk_expression(statement.value)
        ):
            left = text(statement.value.left, 200) == target
            return statement.value.right if left else statement.value.left
    return None


def _stored(statement: ir.Stmt) -> ir.Expr | None:
    """The value that is stored in a container or attribute."""
    if isinstance(statement, ir.Assign) and any(isinstance(one, ir.Attr | ir.Subscript) for one in statement.targets):
        return statement.value
    for call in _calls(statement):
        if isinstance(call.func, ir.Attr) and call.func.name in _STORES and call.args:
            return call.args[-1]
    return None


def _graphless(recording: Recording, expr: ir.Expr, subject: str, facts: StatementFacts) -> str:
    """Why the added or stored value has no graph; "" if it has one, or may have."""
    value = recording.values.get(expr.at)
    if value is None or value.kinds & UNKNOWN:
        return f"{subject} a value of which nothing is known" if value is not None and not value.src else ""
    cutter = last_name(expr.func) if isinstance(expr, ir.Call) else ""
    by = f" (`.{cutter}()`)" if cutter in _CUTS else ""
    if value.is_only(DATA | NONE):
        return f"{subject} a number{by}, which has no graph"
    if value.kinds & TENSORS and not value.src:
        if facts.grad_mode == "off":
            return f"{subject} a tensor without a graph: grad mode is off ({facts.decided_by})"
        return f"{subject} a tensor without a graph{by}"
    return ""


def _hostly(recording: Recording, expr: ir.Expr) -> str:
    value: V | None = recording.values.get(expr.at)
    if value is None:
        return ""
    if value.is_only(DATA | NONE):
        return f"`{text(expr)}` is a number, text or other data on the host"
    return ""
