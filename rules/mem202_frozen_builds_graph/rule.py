"""MEM202: a target, teacher or reference network that nobody trains, run while autograd records."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, Memory, Meta, ModelCall, Report, Severity, Silent, guard_plan, silent

META = Meta(
    code="MEM202",
    name="frozen-builds-graph",
    summary="A network that no optimizer trains runs with grad mode on, though its output needs no gradient.",
    severity="warning",
    fix_rank=0,  # under a guard there are no graphs for other rules to report
    of_grad_mode=True,
)


SEEKS = "a network that no optimizer trains, or whose output is used without its graph, run while autograd records"
CANDIDATES = ("run",)

SILENT = (
    # an evaluation of a model that is trained belongs to MEM201
    Silent(ModelCall, "", "", lambda event: event.owner != "no" and event.evaluation not in ("cut", "beside")),
    Silent(ModelCall, "guarded", "{event.guard} guards this run", lambda event: event.guard),
    Silent(
        ModelCall,
        "output-escapes",
        "what `{event.module}` gives is returned or passed on, and a caller may need its graph",
        lambda event: event.consumed == "escapes" and not event.retained,
    ),
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(ModelCall):
        if silent(event, SILENT) is not None:
            continue
        memory: Memory = "device-graph" if event.retained else "none"
        yield Report(
            site=event.site,
            message=f"{_why(event)}, but the call saves all activations: {_cost(event)}",
            help=_help(event),
            severity=_severity(event),
            confidence=event.certainty,
            growth=Growth(memory, "per-iteration" if event.retained else "peak"),
            trace=event.trace,
            fix=guard_plan(event.place),
        )


def _why(event: ModelCall) -> str:
    if event.owner == "no":
        return f"no optimizer trains `{event.module}` and its input needs no gradient"
    if event.evaluation == "beside":
        return f"`{event.module}` is in eval mode, beside a model in train mode that learns from it"
    return f"every use of the output of `{event.module}` cuts its graph"


def _help(event: ModelCall) -> str:
    if event.owner == "no" or event.evaluation == "beside":
        model = event.module.removesuffix(".forward")
        return f"call it under `with torch.no_grad():`, or freeze it once with `{model}.requires_grad_(False)`"
    return "call it under `with torch.no_grad():`"


def _severity(event: ModelCall) -> Severity:
    if event.retained:
        return "warning"
    if event.owner != "no" or event.small:
        return "note"
    once = event.loop is None and event.function == "<module>"
    trains = event.consumed == "loss" and not once
    repeated = event.large and event.loop is not None  # what such a network saves is a peak wherever its output goes
    return "warning" if trains or repeated else "note"


def _cost(event: ModelCall) -> str:
    if event.retained:
        return "device memory grows by its graph in every iteration, because a later line keeps it"
    if event.evaluation == "beside":
        return "they stay in memory until the loss is freed"
    if event.consumed == "loss":
        return "they stay in memory until backward(), which also fills gradients that no step uses"
    return "they raise the peak until the output is detached or dropped"
