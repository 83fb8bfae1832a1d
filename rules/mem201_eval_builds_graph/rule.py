"""MEM201: an evaluation that runs its model while autograd records."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import (
    Confidence,
    Facts,
    Growth,
    Memory,
    Meta,
    ModelCall,
    Report,
    Severity,
    Silent,
    guard_plan,
    inference_plans,
    silent,
    weakest,
)

META = Meta(
    code="MEM201",
    name="eval-builds-graph",
    summary="An evaluation runs the model with grad mode on and saves activations for a backward that never comes.",
    severity="error",
    fix_rank=0,  # under a guard there are no graphs for other rules to report
    of_grad_mode=True,
)


SEEKS = "a model that an evaluation runs while autograd records"
CANDIDATES = ("run",)

SILENT = (
    Silent(
        ModelCall,
        "no-evaluation",
        "nothing says that this run of `{event.module}` is an evaluation: no eval mode, no use of the output that cuts "
        "its graph, no name of the function",
        lambda event: event.evaluation == "",
    ),
    Silent(
        ModelCall,
        "part-of-training",
        "`{event.module}` runs beside training: MEM202 is about such runs",
        lambda event: event.evaluation in ("cut", "beside"),
    ),
    Silent(ModelCall, "guarded", "{event.guard} guards this run", lambda event: event.guard),
    Silent(
        ModelCall,
        "no-optimizer-owns-it",
        "no optimizer owns `{event.module}`: MEM202 knows more about such networks",
        lambda event: event.owner == "no",
    ),
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(ModelCall):
        if silent(event, SILENT) is not None:
            continue
        memory: Memory = "none" if not event.retained else "host" if event.on_host else "device-graph"
        yield Report(
            site=event.site,
            message=f"{_what(event)} with grad mode on{_where(event)} and saves activations for a backward() that "
            f"never comes: {_cost(event)}",
            help=_help(event),
            severity=_severity(event),
            confidence=_confidence(event),
            growth=Growth(memory, "per-iteration" if event.retained else "peak"),
            trace=(*event.trace, *event.keeping),
            fix=guard_plan(event.place),
            alternatives=inference_plans(event.place),
        )


def _severity(event: ModelCall) -> Severity:
    """An error if graphs are stored; less if it is not certain that a model is evaluated.

    The signs: its forward is known, the loop iterates over data, the function has an evaluation's name. One of them
    suffices for a warning if the model was put into eval mode too, and for an error if the function itself does that.
    """
    if event.served and not event.followed:
        return "note"
    on_one = event.single and (event.loop is None or event.on_host)
    if event.function == "<module>" and not event.retained and (on_one or (event.loop is None and not event.large)):
        return "note"  # a script that runs its model once, or prints its results for single samples on the host
    through_data = any(loop and (loop.over == "loader" or loop.names_data) for loop in (event.loop, event.rounds))
    through_data = through_data or (event.rounds is not None and event.rounds.over == "requests")
    signs = sum((event.followed, through_data, event.named))
    if signs < 2 and not (event.evaluation == "eval" and (event.followed or through_data or event.large)):
        return "note"
    if event.trace and event.certainty != "high" and not event.unguarded:
        return "note"  # a helper runs it in one of its phases
    if event.small and not (event.retained and (event.rounds is None or event.rounds.over_data)):
        return "note"
    if event.consumed == "escapes" and not (through_data or event.named or event.retained or event.large):
        return "note"  # its callers, even in loops, may need gradients of the input
    once = event.loop is None or event.loop.over == "requests"
    if once and not (event.retained or event.large or event.unguarded):
        return "note"  # as far as known, it runs once, or for one sample at a time
    grows = event.rounds is not None and event.rounds.over_data
    evaluated = event.evaluation == "eval" and event.certainty == "high"
    return "error" if grows and (signs > 1 or (evaluated and through_data)) else "warning"


def _what(event: ModelCall) -> str:
    return f"`{event.called}` evaluates `{event.module}`" if event.called else f"`{event.module}` is evaluated"


def _where(event: ModelCall) -> str:
    return f" where `{event.phase}`" if event.phase else ""


def _help(event: ModelCall) -> str:
    if event.phase:
        return f"run it under `with torch.set_grad_enabled({event.training}):`; `eval()` does not turn autograd off"
    guards = "`with torch.no_grad():` or `torch.inference_mode()`"
    return f"run the evaluation under {guards}; `eval()` does not turn autograd off"


def _cost(event: ModelCall) -> str:
    if event.rounds is not None:
        grows = f"{'host' if event.on_host else 'device'} memory grows by the graph of"
        if (asked := event.rounds.over == "requests") or event.rounds.over_data:
            return f"{grows} {event.rounds.text if asked else 'every batch'}, because `{event.retained}` keeps it"
        return f"{grows} each iteration of `{event.rounds.text}`, as `{event.retained}` keeps it"
    if event.held:  # a member of a growing container, or a value
        ends = "" if event.held.endswith("[…]") else " until it is replaced"
        return f"the peak rises with the model's depth, and `{event.held.removesuffix('[…]')}` keeps the graph{ends}"
    if event.consumed == "escapes":
        return "the peak rises with the model's depth, and the graph lives as long as the output"
    return "nothing keeps the graph, but the peak rises with the model's depth"


def _confidence(event: ModelCall) -> Confidence:
    if event.evaluation == "name":
        through_data = event.loop is not None and event.loop.over in ("loader", "requests") and event.loop.over_data
        done = event.consumed == "detached" or event.beside_training
        if event.served and event.loop is not None and event.loop.over == "requests":
            done = False  # a library may guard what its model serves, and a request is no sign against that
        return weakest(event.certainty, "medium" if through_data and done else "low")
    if event.consumed == "escapes" and not event.retained:
        # a caller may need gradients of a single result that is returned, unless all signs are against it
        alone = event.loop is None and not (event.named and event.certainty == "high")
        return "low" if alone else weakest(event.certainty, "medium")
    return event.certainty
