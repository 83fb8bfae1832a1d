"""Workers on other machines: those of a Dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor
from typing import Any

from memlint.config import ConfigError

SCHEME = "dask://"
#: seconds that a scheduler has to answer
PATIENCE = 10


@contextlib.contextmanager
def cluster(address: str) -> Iterator[tuple[Callable[[], Executor], Callable[[BaseException], bool]]]:
    """What makes an executor over a cluster's workers, and what tells that one of these was lost. ``address``:
    ``dask://HOST:PORT`` of the scheduler.

    Raises ConfigError where the extra is not installed, or nobody answers.
    """
    try:
        import distributed
    except ImportError:
        raise ConfigError("--executor dask://… needs Dask: install torch-memlint[distributed]") from None
    try:
        connect: Any = distributed.Client
        client = connect("tcp://" + address.removeprefix(SCHEME), timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--executor {address}: no scheduler answers: {error}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise ConfigError(f"--executor {address}: the scheduler has no workers")
        try:
            # what a worker says hangs on files as well, and may be another thing the next time
            yield lambda: client.get_executor(pure=False), lambda error: isinstance(error, distributed.KilledWorker)
        except (OSError, CancelledError, TimeoutError) as error:
            raise ConfigError(f"--executor {address}: the cluster is gone: {error or type(error).__name__}") from None
