"""The named reasons for which a model run is no finding, with their texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from memlint.analysis.judge.reasons import Judged

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import ModelRun
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser

#: in the order in which `memlint.analysis.judge.judged_runs` and then `memlint.analysis.judge.evaluation` decide
TEXTS: dict[str, str] = {
    "layer-code": "{function} is a forward or a part of one: it runs under the grad mode of its caller, where the "
    "guard belongs",
    "not-recorded": "it is not certain that autograd records here: every known caller of {function} turns grad mode "
    "off, or some do and none is known to leave it on",
    "gives-no-graph": "the program uses what {model} gives in a way that raises for a tensor with a graph",
    "only-some-callers": "some callers of {function} turn grad mode off, and the one that evaluates may be one of them",
    "frozen": "{model} is frozen (its parameters require no gradient), or another branch guards the same run",
    "reported-inside": "the function that holds the call reports it itself",
    "spent-inside": "the function that holds the call tells by itself that nobody needs its gradients",
    "left-to-callers": "{function} returns what {model} gives: its callers put the model into eval mode, and the guard "
    "belongs there",
    "gradients-wanted": "gradients of this run are wanted: {wanted}",
    "no-evaluation": "nothing says that this run of {model} is an evaluation: it is not known to be in eval mode, "
    "not every use of the output cuts its graph, and the name of {function} does not say so",
    "same-guard": "another run of the same loop or function is reported, and the guard that it needs serves this one",
    "may-be-any-model": "what runs may be a model whose forward needs its graph",
    "library-test": "{function} is a test of a library: how much memory it takes does not matter",
    "freezes-itself": "what puts the model into eval mode decides whether its parameters require gradients as well",
    "setting-decides": "a setting of the model decides whether it guards this run itself",
    "no-call-comes-here": "no known call of {function} comes to this line",
    "named-only": "only the name of {function}, a method of the module itself, says that this is an evaluation",
    "measures-time": "{function} measures how long a step takes, training included",
    "trial": "{function} is a trial or a test that runs once",
    "asks-for-shape": "the run is there for the shape of what layers give, or nothing uses its output",
    "new-model-runs-once": "a new model runs once, and nothing trains or loads it: a trial",
    "may-be-trained-by": "it is not certain that no backward() comes for the graph that is kept",
}


def report_run_reason(
    analyser: Analyser, summary: Summary, run: ModelRun, effect: Literal["dropped", "low"], name: str, wanted: str = ""
) -> None:
    """Report to the observer, if there is one, why a run is no finding."""
    if analyser.observer is not None:
        words = {"function": f"`{summary.function.name}`", "model": f"`{run.text}`", "wanted": wanted}
        text = TEXTS[name].format(**words)
        analyser.observer.judged(Judged(run.site, summary.function.qual, ("run", ""), effect, name, text))
