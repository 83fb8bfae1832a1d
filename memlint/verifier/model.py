"""The records of a verification, all serialisable as JSON; bytes are bytes, seconds are seconds."""

from __future__ import annotations

from typing import Literal

import msgspec

from memlint.evidence import WORST as WORST
from memlint.evidence import VerdictName as VerdictName
from memlint.finding import Failure, Finding
from memlint.finding import PerIteration as PerIteration

#: the verdicts that the program wastes memory
BAD: frozenset[str] = frozenset({"confirmed", "confirmed-host", "cycle", "peak-only"})

#: the places of growth that is not in tensors on a device
HOST, WORKERS = "host", "workers"


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who keeps what stays. ``path``: from a root of the program, in its own names (``registry.CACHE['17']``).
    ``kind``: what the root is: global, class, local, context or suspended (a variable of a generator that waits, or of
    a call that an exception has ended). ``where``: the module or the function that it is of, in ``file`` at ``line``.
    ``through``: what holds it at the end of the path, where the path does not lead to the tensor itself: a kind of
    graph node. ``container``: the innermost list, dict or set of the path, and how many ``elements`` it has, and has at
    ``most``, where it is a ring. ``survivors``: how many of those that were looked at are kept so.
    """

    path: str
    kind: Literal["global", "class", "local", "context", "suspended"]
    where: str
    file: str | None = None
    line: int | None = None
    through: str = ""
    container: str | None = None
    elements: int | None = None
    most: int | None = None
    survivors: int = 1


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What measuring says of one finding. ``reason`` is a sentence. ``bytes_per_iteration``: tensors that stay on
    ``device``, as asked for (an allocator may round up). ``host_bytes_per_iteration``: what the C library handed out
    beside them, as far as it says. ``graph_nodes_per_iteration``: autograd nodes that stay. ``held_bytes``: what the
    window's hits held at its end. ``hits``: how often the place was reached. ``iterations_until_full``: at this pace.
    ``holders``: who keeps it, as far as that is known.
    """

    verdict: VerdictName
    reason: str
    device: str | None = None
    bytes_per_iteration: PerIteration | None = None
    host_bytes_per_iteration: int | None = None
    graph_nodes_per_iteration: int | None = None
    held_bytes: int | None = None
    hits: int = 0
    iterations_until_full: int | None = None
    holders: tuple[Holder, ...] = ()


class Verified(msgspec.Struct, frozen=True):
    finding: Finding
    verdict: Verdict


class Frame(msgspec.Struct, frozen=True):
    path: str
    line: int
    function: str


class Stack(msgspec.Struct, frozen=True):
    """Where memory was allocated, innermost first, how much of it an iteration leaves, and what holds it."""

    bytes_per_iteration: int
    frames: tuple[Frame, ...]
    holders: tuple[Holder, ...] = ()


class Unattributed(msgspec.Struct, frozen=True):
    """Growth of a loop that no finding explains. ``loop``: its place, ``path:line``. ``device``: of tensors; "host" for
    host memory beside them, as the C library has handed it out, with what became ``resident`` of the process meanwhile;
    "workers" for the processes of a `DataLoader`."""

    bytes_per_iteration: int
    stacks: tuple[Stack, ...] = ()
    device: str | None = None
    loop: str | None = None
    resident: int | None = None

    @property
    def in_words(self) -> str:
        """The memory that an iteration leaves, a clause."""
        where = {HOST: "of host memory beside tensors", WORKERS: "of host memory in worker processes"}
        said = (
            f"each iteration leaves {self.bytes_per_iteration:,} B {where.get(self.device or '', f'on {self.device}')}"
        )
        resident = "" if self.resident is None else f" (resident memory: {self.resident:+,} B)"
        return f"{said} that no finding explains{resident}"


class Fragmentation(msgspec.Struct, frozen=True):
    """The allocator's reserved but unused memory, at the first and the last iteration of a loop's window. ``peak``: the
    most allocated until then. ``advice``: what to do."""

    device: str
    reserved: tuple[int, int]
    peak: tuple[int, int]
    allocated: tuple[int, int]
    split: tuple[int, int]
    advice: str


class Side(msgspec.Struct, frozen=True):
    """One of two compared runs. ``bytes_per_iteration`` and ``host_bytes_per_iteration`` of its innermost loops;
    ``step_spread``: between which times the middle half of the steps lies."""

    peak: int | None
    bytes_per_iteration: int | None
    host_bytes_per_iteration: int | None
    step_seconds: float | None
    steps: int
    step_spread: tuple[float, float] | None = None


class LoopSide(msgspec.Struct, frozen=True):
    """One loop in one of two compared runs: what an iteration leaves on the device and on the host, its median time
    after the warm-up, and how many there were. None where its window was not read. ``step_spread``: as of a `Side`."""

    bytes_per_iteration: int | None
    host_bytes_per_iteration: int | None
    step_seconds: float | None
    steps: int
    step_spread: tuple[float, float] | None = None


class LoopPair(msgspec.Struct, frozen=True):
    """An innermost loop of both runs. ``place``: as it is, ``path:line``."""

    place: str
    before: LoopSide
    after: LoopSide


class Saving(msgspec.Struct, frozen=True):
    """What fixing one finding saves: of the program's peak, of what an iteration of the loop around it leaves, and the
    share of that loop's step time (0.25: a quarter). Negative where it costs. ``alone``: measured with this fix and no
    other; else with all."""

    fingerprint: str
    alone: bool
    peak: int | None
    bytes_per_iteration: int | None
    host_bytes_per_iteration: int | None
    step_time: float | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The program as it is beside the program as it would be. ``losses``: "equal" bit for bit, "different" with the
    largest difference, or "unknown" where no backward() was seen; ``compared`` of them were there on both sides.
    ``own_difference``: by how much two runs of the program as it is differ from each other, where it ran twice; above
    0, the program is not deterministic and a difference may be its own. ``fixed``: fingerprints of the findings that
    the other side is without, ``left_out`` of those whose fixes hold but were not made, since the program fails with
    them; ``savings``: of single ones, as far as asked. ``reason``: what went wrong, a sentence."""

    label: str
    before: Side
    after: Side
    losses: Literal["equal", "different", "unknown"]
    largest_difference: float | None
    compared: int
    own_difference: float | None = None
    fixed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    savings: tuple[Saving, ...] = ()
    loops: tuple[LoopPair, ...] = ()
    reason: str = ""


class Rank(msgspec.Struct, frozen=True):
    """One process of a distributed run; ``verdicts`` by fingerprint, those that differ from the merged ones."""

    rank: int
    end: str
    steps: int
    verdicts: dict[str, VerdictName] = {}


class Run(msgspec.Struct, frozen=True):
    """How the program ran. ``exit``: its exit code; None if it was stopped when everything was measured. ``end``:
    finished, stopped, failed, timeout, interrupted, killed, or broken, if the program succeeded and memlint's probes
    failed in it. ``broken``: that, a sentence. ``steps``: iterations of the loop that ran most. ``out_of_memory``:
    after such an error, the requested amount, and whether a setting of the allocator would have helped."""

    python: str | None
    torch: str | None
    device: str | None
    meter: str
    steps: int
    seconds: float
    exit: int | None
    end: str
    reason: str = ""
    out_of_memory: str = ""
    broken: str = ""
    warmup: int = 3
    window: int = 12


class LoopRun(msgspec.Struct, frozen=True):
    """One run of a loop (``path:line``), from the step where it begins to the one where it ends, if it does."""

    loop: str
    first: int
    last: int | None


class Share(msgspec.Struct, frozen=True):
    """What a confirmed site keeps on a device, at each point. ``measured``: of the hits that were followed, no memory
    counted for two sites; ``projected``: of all hits, if the others keep as much each."""

    fingerprint: str
    device: str
    measured: tuple[int, ...]
    projected: tuple[int, ...]


class Timeline(msgspec.Struct, frozen=True):
    """Readings over the run, one column each. ``steps``: iterations of innermost loops that are done; ``devices``:
    bytes of live tensors; ``host``: bytes that the C library handed out, where it says."""

    steps: tuple[int, ...]
    seconds: tuple[float, ...]
    devices: dict[str, tuple[int, ...]]
    host: tuple[int | None, ...]
    shares: tuple[Share, ...]
    runs: tuple[LoopRun, ...]


class LoopBill(msgspec.Struct, frozen=True, kw_only=True):
    """What one loop was seen to do. ``place``: ``path:line``. ``bytes_per_iteration``: what an iteration leaves of
    tensors, by device, and ``host_bytes_per_iteration`` beside them, 0 for noise, where its window was read;
    ``until_its_end``: the same of what is freed when the loop ends, that of the host under "host". ``reason``: why it
    was not read, and what would have it be. ``longest``: the most iterations of one of its ``runs``.
    ``fills``: rings that it fills (a deque with a ``maxlen``), and about how many bytes each holds when it is full.
    ``findings``: whether a finding in it is confirmed, which may be more than the readings of the whole process tell
    from noise."""

    place: str
    iterations: int
    runs: int
    longest: int
    bytes_per_iteration: dict[str, int] | None
    host_bytes_per_iteration: int | None
    until_its_end: dict[str, int] = {}
    fills: dict[str, int] = {}
    reason: str = ""
    findings: bool = False


class Peak(msgspec.Struct, frozen=True):
    """The most that a device held at once while it was followed, of allocated ``bytes``. ``step``: the iteration that
    it came in, 0 before the first, of the ``loop`` at this place. ``phase``: training, evaluation, or nothing where
    that is not known. ``parts``: what of it was parameters, gradients and the state of optimizers (``optimizer``), and
    the ``rest``: activations, inputs and all else; empty where it is not known."""

    device: str
    bytes: int
    step: int
    loop: str = ""
    phase: str = ""
    parts: dict[str, int] = {}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that one verification says. ``timeline`` and ``loops``: of the first rank; ``peak``: the most that was held
    on each device, of any rank, as far as it was measured."""

    verified: tuple[Verified, ...]
    failures: tuple[Failure, ...]
    run: Run
    unattributed: tuple[Unattributed, ...] = ()
    fragmentation: tuple[Fragmentation, ...] = ()
    peaks: tuple[Peak, ...] = ()
    comparison: Comparison | None = None
    ranks: tuple[Rank, ...] = ()
    timeline: Timeline | None = None
    loops: tuple[LoopBill, ...] = ()
    peak: dict[str, int] = {}
    files: int = 0
    seconds: float = 0.0
