"""What a finding claims follows from what was measured: severity, memory and words, for each state of the graph."""

from __future__ import annotations

import pages
import pytest
from test_rooms import load

from memlint.sdk import Carry, Event, Facts, Loop, ModelCall, Place, Report, Retain, Site, Step, Value

ROOM = {room.name[:6].upper(): load(room) for room in pages.ROOMS}
SITE = Site("train.py", 0, 1)
LOOP = Loop("for", "loader", "iteration", None, "for x, y in loader", SITE)
STEPS = Loop("for", "range", "iteration", None, "for step in range(length)", SITE)
OBJECTS = Loop("for", "unknown", "iteration", None, "for one in library.objects()", SITE)
SINGLE = Loop("for", "loader", "iteration", None, "for x, y in loader", SITE, single=True)
CALLS = Loop("calls", "unknown", "iteration", None, "each call of training_step", SITE)
EPOCHS = Loop("for", "epochs", "epoch", None, "for epoch in range(epochs)", SITE)
A_FEW, MANY = ("note", "device-tensor", "peak"), ("warning", "device-tensor", "peak")
#: a sample is a picture, a map of features, scores of a vocabulary
WIDE = {"weight": "large"}
LOSS = Value("yes", "no", "accelerator", "scalar", "loss", "high", ())


def drawn(source: str) -> Loop:
    """A loop that draws a batch in each of so many rounds."""
    return Loop("for", "loader", "iteration", None, f"for i in {source}", SITE)


def value(**changes: object) -> Value:
    fields = {name: getattr(LOSS, name) for name in LOSS.__struct_fields__}
    return Value(**{**fields, **changes})


def carry(
    how="add", loop=LOOP, needed=False, reset="", certainty="high", in_model_loop=False, **changes: object
) -> Carry:
    return Carry(
        site=SITE,
        function="train",
        certainty=certainty,
        value=value(**changes),
        place=Place("local", "total"),
        loop=loop,
        how=how,
        needed=needed,
        reset=reset,
        in_model_loop=in_model_loop,
    )


def retain(loop=LOOP, needed=False, reset="", **changes: object) -> Retain:
    return Retain(
        site=SITE,
        function="train",
        value=value(**changes),
        place=Place("local", "kept"),
        loop=loop,
        how="append",
        needed=needed,
        reset=reset,
    )


def call(**changes: object) -> ModelCall:
    fields: dict[str, object] = {
        "module": "model",
        "loop": LOOP,
        "evaluation": "eval",
        "retained": False,
        "owner": "yes",
        "guard": "",
        "consumed": "detached",
    }
    return ModelCall(site=SITE, function="evaluate", **{**fields, **changes})


def reports(code: str, event: Event) -> list[Report]:
    return list(ROOM[code].check(Facts((event,))))


def claim(code: str, event: Event) -> tuple[str, str, str]:
    (report,) = reports(code, event)
    return report.severity, report.growth.memory, report.growth.kind


@pytest.mark.parametrize(
    ("code", "event", "expected"),
    [
        ("MEM101", carry(), ("error", "device-graph", "per-iteration")),
        ("MEM101", carry(freed="some"), ("warning", "device-graph", "per-iteration")),
        ("MEM101", carry(freed="yes"), ("warning", "host", "per-iteration")),
        ("MEM101", carry(freed="unknown"), ("warning", "host", "per-iteration")),
        ("MEM101", carry(device="cpu"), ("warning", "host", "per-iteration")),
        ("MEM102", retain(device="cpu"), ("warning", "host", "per-iteration")),
        ("MEM103", carry("call", device="cpu"), ("note", "host", "per-iteration")),
        # moved to the host with its graph, of which the saved activations stay on the device
        ("MEM101", carry(device="cpu", moved=True), ("error", "device-graph", "per-iteration")),
        ("MEM102", retain(device="cpu", moved=True), ("warning", "device-graph", "per-iteration")),
        ("MEM102", retain(device="cpu", moved=True, freed="yes"), ("warning", "host", "per-iteration")),
        ("MEM103", carry("call", device="cpu", moved=True), ("note", "device-graph", "per-iteration")),
        ("MEM302", carry("cat", size="batch", device="cpu"), ("error", "host", "per-iteration")),
        ("MEM302", carry("cat", size="batch", device="cpu", moved=True), ("error", "device-graph", "per-iteration")),
        ("MEM101", carry(reset="the next log"), ("warning", "device-graph", "per-iteration")),
        ("MEM101", carry(freed="yes", loop=EPOCHS), ("note", "host", "per-epoch")),
        ("MEM102", retain(), ("warning", "device-graph", "per-iteration")),
        ("MEM102", retain(freed="yes"), ("warning", "host", "per-iteration")),
        ("MEM102", retain(freed="yes", size="batch"), ("warning", "device-tensor", "per-iteration")),
        ("MEM102", retain(freed="yes", size="batch", device="cpu"), ("warning", "host", "per-iteration")),
        ("MEM102", retain(size="batch"), ("note", "device-graph", "per-iteration")),
        ("MEM102", retain(freed="some"), ("note", "device-graph", "per-iteration")),
        ("MEM102", retain(freed="yes", attached="some", size="batch"), ("note", "device-tensor", "per-iteration")),
        ("MEM103", carry("call"), ("note", "device-graph", "per-iteration")),
        ("MEM103", carry("call", in_model_loop=True), ("warning", "device-graph", "per-iteration")),
        ("MEM103", carry("call", freed="yes"), ("note", "host", "per-iteration")),
        ("MEM103", carry("average", loop=CALLS, freed="yes"), ("note", "host", "per-iteration")),
        ("MEM103", carry("average", freed="yes"), ("warning", "host", "per-iteration")),
        ("MEM103", carry("average", freed="yes", attached="some"), ("note", "host", "per-iteration")),
        ("MEM103", carry("average", freed="yes", size="batch"), ("note", "host", "per-iteration")),
        ("MEM103", carry("add", size="batch"), ("note", "device-graph", "per-iteration")),
        ("MEM104", retain(attached="no", size="batch", **WIDE), ("warning", "device-tensor", "per-iteration")),
        ("MEM104", retain(attached="no", size="sample", **WIDE), ("warning", "device-tensor", "per-iteration")),
        (
            "MEM104",
            retain(attached="no", size="batch", reset="x", **WIDE),
            ("warning", "device-tensor", "per-iteration"),
        ),
        ("MEM104", retain(attached="no", size="batch"), ("note", "device-tensor", "per-iteration")),
        ("MEM104", retain(attached="no", size="batch", weight="small"), ("note", "device-tensor", "per-iteration")),
        (
            "MEM104",
            retain(attached="no", size="batch", loop=SINGLE, **WIDE),
            ("note", "device-tensor", "per-iteration"),
        ),
        ("MEM201", call(), ("warning", "none", "peak")),
        ("MEM201", call(evaluation="spent"), ("note", "none", "peak")),
        ("MEM201", call(evaluation="spent", named=True), ("warning", "none", "peak")),
        ("MEM201", call(evaluation="spent", followed=True), ("warning", "none", "peak")),
        ("MEM201", call(loop=None), ("note", "none", "peak")),
        ("MEM201", call(loop=None, named=True), ("note", "none", "peak")),
        ("MEM201", call(loop=None, followed=True), ("note", "none", "peak")),
        ("MEM201", call(loop=None, followed=True, unguarded=True), ("warning", "none", "peak")),
        ("MEM201", call(loop=None, followed=True, large=True), ("warning", "none", "peak")),
        ("MEM201", call(loop=None, large=True), ("warning", "none", "peak")),
        ("MEM201", call(loop=OBJECTS, followed=True, consumed="escapes"), ("note", "none", "peak")),
        ("MEM201", call(loop=OBJECTS, followed=True, consumed="escapes", large=True), ("warning", "none", "peak")),
        ("MEM201", call(loop=OBJECTS, followed=True, consumed="escapes", named=True), ("warning", "none", "peak")),
        ("MEM201", call(loop=OBJECTS, followed=True), ("warning", "none", "peak")),
        ("MEM201", call(followed=True, consumed="escapes"), ("warning", "none", "peak")),
        ("MEM201", call(loop=None, large=True, evaluation="spent"), ("note", "none", "peak")),
        ("MEM201", call(loop=None, large=True, served=True), ("note", "none", "peak")),
        (
            "MEM201",
            call(followed=True, certainty="medium", trace=(Step(SITE, "calls it"),), unguarded=True),
            ("warning", "none", "peak"),
        ),
        (
            "MEM201",
            call(followed=True, certainty="medium", trace=(Step(SITE, "where it runs"),)),
            ("note", "none", "peak"),
        ),
        ("MEM201", call(retained="kept", rounds=LOOP, named=True), ("error", "device-graph", "per-iteration")),
        ("MEM201", call(retained="kept", rounds=LOOP), ("error", "device-graph", "per-iteration")),
        (
            "MEM201",
            call(retained="kept", rounds=LOOP, certainty="medium"),
            ("warning", "device-graph", "per-iteration"),
        ),
        ("MEM201", call(retained="state", rounds=STEPS, named=True), ("warning", "device-graph", "per-iteration")),
        ("MEM101", carry(loop=STEPS), ("note", "device-graph", "per-iteration")),
        ("MEM102", retain(loop=STEPS), ("note", "device-graph", "per-iteration")),
        ("MEM103", carry("call", loop=STEPS), ("note", "device-graph", "per-iteration")),
        ("MEM102", retain(loop=CALLS), ("warning", "device-graph", "per-iteration")),
        ("MEM202", call(owner="no", evaluation="", consumed="loss"), ("warning", "none", "peak")),
        ("MEM202", call(owner="no", evaluation="", consumed="loss", small=True), ("note", "none", "peak")),
        ("MEM202", call(owner="no", evaluation="", consumed="detached"), ("note", "none", "peak")),
        ("MEM202", call(owner="no", evaluation="", large=True), ("warning", "none", "peak")),
        ("MEM202", call(owner="no", evaluation="", large=True, loop=None), ("note", "none", "peak")),
        ("MEM202", call(owner="unknown", evaluation="cut", large=True), ("note", "none", "peak")),
        ("MEM302", carry("cat", attached="no", size="batch", **WIDE), ("warning", "device-tensor", "peak")),
        ("MEM302", carry("cat", attached="no", size="batch"), ("note", "device-tensor", "peak")),
        ("MEM302", carry("cat", attached="no", size="batch", weight="small"), ("note", "none", "time")),
        ("MEM302", carry("cat", attached="no", size="sample"), ("note", "none", "time")),
        ("MEM302", carry("cat", loop=drawn("range(times - 1)"), attached="no", size="batch", **WIDE), A_FEW),
        ("MEM302", carry("cat", loop=drawn("range(len(loader))"), attached="no", size="batch", **WIDE), MANY),
        ("MEM302", carry("cat", loop=drawn("range(num_batches)"), attached="no", size="batch", **WIDE), MANY),
        ("MEM302", carry("cat", size="batch"), ("error", "device-graph", "per-iteration")),
    ],
)
def test_claim(code: str, event: Event, expected: tuple[str, str, str]) -> None:
    assert claim(code, event) == expected


@pytest.mark.parametrize(
    ("code", "event"),
    [
        ("MEM101", carry(needed=True)),
        ("MEM101", carry(attached="unknown")),
        ("MEM101", carry(attached="no")),
        ("MEM101", carry(size="batch")),
        ("MEM102", retain(needed=True)),
        ("MEM102", retain(attached="unknown")),
        ("MEM103", carry("call", needed=True)),
        ("MEM103", carry("call", attached="unknown")),
        ("MEM103", carry("cat")),
        ("MEM104", retain(attached="no", size="scalar")),
        ("MEM104", retain(attached="no", size="batch", device="unknown")),
        ("MEM104", retain(attached="no", size="batch", loop=EPOCHS)),
        ("MEM201", call(evaluation="")),
        ("MEM201", call(guard="torch.no_grad() as a statement")),
        ("MEM201", call(owner="no")),
        ("MEM202", call(owner="unknown", evaluation="")),
    ],
)
def test_silent(code: str, event: Event) -> None:
    assert reports(code, event) == []


@pytest.mark.parametrize("code", ["MEM101", "MEM102", "MEM103"])
def test_a_chain_is_as_strong_as_its_weakest_link(code: str) -> None:
    event = retain(certainty="medium") if code == "MEM102" else carry("add" if code == "MEM101" else "call")
    (report,) = reports(code, event)
    assert report.confidence == ("medium" if code == "MEM102" else "high")


@pytest.mark.parametrize(
    ("event", "confidence"),
    [
        (call(evaluation="name", loop=None), "low"),
        (call(evaluation="name", loop=STEPS), "low"),
        (call(evaluation="name", consumed="escapes"), "low"),
        (call(evaluation="name"), "medium"),  # in a loop over a loader, and cut
        (call(evaluation="name", certainty="low"), "low"),
        (call(consumed="escapes", loop=None), "low"),
        (call(consumed="escapes", loop=None, named=True), "medium"),
        (call(consumed="escapes", loop=None, named=True, certainty="medium"), "low"),
    ],
)
def test_how_sure_it_is_that_a_run_is_an_evaluation(event: Event, confidence: str) -> None:
    (report,) = reports("MEM201", event)
    assert report.confidence == confidence


def test_phases_of_one_body() -> None:
    (report,) = reports("MEM201", call(phase="phase == 'val'", training="phase == 'train'"))
    assert "where `phase == 'val'`" in report.message
    assert "set_grad_enabled(phase == 'train')" in report.help


def test_a_freed_graph_is_not_called_a_device_leak() -> None:
    (report,) = reports("MEM101", carry(freed="yes"))
    assert "host memory" in report.message and "device memory" not in report.message
    (report,) = reports("MEM102", retain(freed="yes"))
    assert "512 B" in report.message and "host memory" in report.message


def test_loops_that_are_calls_are_named_as_such() -> None:
    (report,) = reports("MEM101", carry(loop=CALLS))
    assert "with each call of training_step" in report.message


def test_small_updates_are_not_worth_a_word() -> None:
    event = ROOM["MEM301"].Rebind(
        site=SITE,
        function="f",
        op="x + y",
        inplace="x += y",
        target="x",
        alone="yes",
        recorded="no",
        size="scalar",
        loop=LOOP,
    )
    assert reports("MEM301", event) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for name in self.optimizers.keys()", "note"),
        ("for model, optimizer in zip(models, optimizers)", "note"),
        ("for (index, criterion) in enumerate(self.criteria)", "note"),
        ("for net in self.submodels", "note"),
        ("for batch in self.batches.values()", "warning"),
        ("for models in library.objects()", "warning"),
        ("for x in stream(path)", "warning"),
    ],
)
def test_sums_over_the_parts_of_one_step(text: str, expected: str) -> None:
    """There are few of them, and backward() has freed what their losses saved."""
    loop = Loop("for", "unknown", "iteration", None, text, SITE)
    (report,) = reports("MEM101", carry(loop=loop, freed="yes"))
    assert report.severity == expected
