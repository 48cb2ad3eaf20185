"""Send arrays and tasks to the workers of a Dask client, and recover from lost workers.

All state of a run is in this process, and a task is a pure function of its arguments. Lost tasks
are therefore sent again: single ones by the scheduler, all of them by :meth:`Cluster.gather` after
the connection was lost.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._types import Array
from ..errors import ClusterError, InvalidProblem, MissingExtra
from ..version import __version__
from ..wording import first_line, shown

if TYPE_CHECKING:
    from distributed import Client, Future
else:
    Client = Future = Any


@dataclass(frozen=True)
class ClusterTuning:
    """Sizes of messages, and patience with workers and scheduler."""

    # Bytes of an array that one task carries at most; Dask warns above, and the scheduler keeps
    # them.
    max_task_bytes: int = 8_000_000
    warn_bytes: int = 32 * max_task_bytes  # bytes of all tasks of one call above which Dask warns
    # Fewest bytes of an array that is sent only once if consecutive items share it.
    min_shared_bytes: int = 1 << 14
    # Most matrix entries of a pass that runs in this process, because sending it would take
    # longer.
    max_local_entries: int = 1 << 24
    max_retries: int = 2  # times that a task is retried after it raised
    max_sends: int = 5  # times that all tasks are sent after workers or the connection were lost
    reconnect_seconds: float = 10.0  # A client must reconnect to its scheduler within this time
    count_seconds: float = 5.0  # time between two counts of the workers
    first_task_items: int = 4  # fewer than later, so that all workers start soon
    task_items: int = 32
    first_tasks_per_slot: int = 4
    pending_tasks_per_slot: int = 3


TUNING = ClusterTuning()


#: Argument of a task; a future stands for its result.
TaskArgument: TypeAlias = Any
#: Submits tasks and returns their futures; called again if they are lost.
Submit: TypeAlias = Callable[[], list[Future]]

#: Words of the :class:`MissingExtra` that is raised without Dask.
_NEEDED = "a Dask cluster", "Dask", "distributed"
#: Evaluated on every worker, also on one that cannot import this package.
_VERSION_OF_WORKER = "__import__('epsilot').__version__"
_CANNOT_IMPORT = (
    f"cannot import epsilot, and this process has epsilot {__version__}; install the same version "
    "where the worker runs"
)


class Cluster:
    """The workers of a client.

    Parameters
    ----------
    client : distributed.Client
        A synchronous client.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._kept: dict[tuple[int, int], tuple[object, Future]] = {}
        self._slots, self._counted = 1, -np.inf

    @classmethod
    def of(cls, client: object = None) -> Cluster:
        """Return the cluster of a client, by default of Dask's default client."""
        try:
            from distributed import Client, default_client
        except ImportError:
            raise MissingExtra(*_NEEDED) from None
        if client is None:
            try:
                client = default_client()
            except ValueError:
                raise InvalidProblem(
                    "there is no Dask client; create one (client = distributed.Client(...)), or "
                    "pass client=."
                ) from None
        if not isinstance(client, Client):
            raise InvalidProblem(
                f"client is {shown(client)}; it must be a distributed.Client (create one with "
                "distributed.Client(address))."
            )
        if client.asynchronous:
            raise InvalidProblem(
                "client is asynchronous; it must be synchronous (create it with "
                "asynchronous=False, or call from another thread)."
            )
        cluster = cls(client)
        cluster.check()
        return cluster

    # -- the workers -------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Tell whether the client is connected to the scheduler."""
        return bool(self.client.status == "running")

    @property
    def slots(self) -> int:
        """Number of tasks that the workers can run at the same time, at least one."""
        if time.monotonic() - self._counted > TUNING.count_seconds and self.is_connected:
            self._slots = max(1, sum(self.client.nthreads().values()))
            self._counted = time.monotonic()
        return self._slots

    def check(self) -> None:
        """Raise if a worker cannot import epsilot, or has another version than this process.

        Workers that disconnect meanwhile are ignored.
        """
        if not self.is_connected:
            raise self._gone()
        for worker, found in self.client.run(eval, _VERSION_OF_WORKER, on_error="return").items():
            if isinstance(found, OSError):
                continue
            if isinstance(found, BaseException):
                raise ClusterError(f"the worker {worker} {_CANNOT_IMPORT} ({found}).")
            if found != __version__:
                raise ClusterError(other_version(worker, found, __version__))

    # -- send and submit ---------------------------------------------------------------------

    def send(self, x: Array) -> Future:
        """Send an array as the argument of a task, so that the scheduler can restore it."""
        if x.nbytes <= TUNING.max_task_bytes:
            return self.submit(aligned, x)
        step = max(1, TUNING.max_task_bytes * len(x) // x.nbytes)
        slabs = [self.send(x[start : start + step]) for start in range(0, len(x), step)]
        return self.submit(joined, slabs)

    def send_once(self, x: Array) -> Future:
        """Send an array that does not change, once; the workers keep it."""
        return self.once(x, 0, lambda: self.send(x))

    def once(self, owner: object, index: int, submit: Callable[[], Future]) -> Future:
        """Submit part ``index`` of an owner unless the workers keep it; return its future."""
        key = id(owner), index
        if key not in self._kept:
            self._kept[key] = owner, submit()
        return self._kept[key][1]

    def release_all_but(self, owners: Iterable[object]) -> None:
        """Let the workers release the parts of all other owners."""
        names = {id(x) for x in owners}
        self._kept = {key: pair for key, pair in self._kept.items() if key[0] in names}

    def submit(self, function: Callable[..., object], *args: TaskArgument) -> Future:
        """Submit a task."""
        return self.client.submit(function, *args, pure=False, retries=TUNING.max_retries)

    def map(self, function: Callable[..., object], *args: Sequence[TaskArgument]) -> list[Future]:
        """Submit one task for each item of the arguments."""
        import dask

        with dask.config.set(
            {"distributed.admin.large-graph-warning-threshold": TUNING.warn_bytes}
        ):
            found: list[Future] = self.client.map(
                function, *args, pure=False, retries=TUNING.max_retries
            )
        return found

    # -- gather -----------------------------------------------------------------------------

    def gather(self, submit: Submit, futures: list[Future] | None = None) -> list[Any]:
        """Return the results of the tasks that ``submit`` submits, again if they are lost.

        ``futures`` are those of a previous call of ``submit``.
        """
        for _ in range(TUNING.max_sends):
            if not self.is_connected:
                raise self._gone()
            try:
                return list(self.client.gather(submit() if futures is None else futures))
            except Exception as error:
                self._recover(error)
                futures = None
        raise ClusterError(
            f"the workers of {self._address} were lost {TUNING.max_sends} times during one task; "
            "find out why they end (a memory limit?), and resume from the checkpoint if there is "
            "one."
        )

    def _recover(self, error: Exception) -> None:
        """Reconnect after workers or the connection were lost; raise all other errors."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError

        lost = CancelledError, ClosedClientError, CommClosedError, KilledWorker
        if isinstance(error, ModuleNotFoundError) and "epsilot" in str(error):
            raise ClusterError(f"a worker {_CANNOT_IMPORT} ({error}).") from None
        if not isinstance(error, lost):
            raise error
        self._kept.clear()
        ends = time.monotonic() + TUNING.reconnect_seconds
        while not self.is_connected:
            if self.client.status != "connecting" or time.monotonic() > ends:
                raise self._gone() from None
            time.sleep(0.05)

    @property
    def _address(self) -> str:
        scheduler = self.client.scheduler
        return scheduler.address if scheduler is not None else "the cluster"

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler at {self._address} is lost; start it again and create a new "
            "client (a run with checkpoint=... can then be resumed)."
        )


def connected(address: str, seconds: float = 10.0) -> Client:
    """Connect to the scheduler at an address."""
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise MissingExtra(*_NEEDED) from None
    try:
        # A client without a scheduler would keep trying to connect after it was deleted.
        socket.create_connection(get_address_host_port(address, strict=True), seconds).close()
        return Client(address, timeout=seconds, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InvalidProblem(
            f"no Dask scheduler answers at {shown(address)} ({first_line(error)}); start one with "
            "'dask scheduler' and give the address that it prints."
        ) from None


# -- functions that run on workers --------------------------------------------------------------


def other_version(worker: str, theirs: str, ours: str) -> str:
    """Return the message that a worker has another version."""
    return (
        f"the worker {worker} has epsilot {theirs} and this process has {ours}; install one "
        "version everywhere."
    )


def check_version(wanted: str) -> None:
    """Raise on a worker if the client has another version, whose results may differ in bits."""
    if wanted != __version__:
        from distributed import get_worker

        raise ClusterError(other_version(get_worker().address, __version__, wanted))


def aligned(x: Array) -> Array:
    """Return an array with the memory layout that kernels expect."""
    return np.require(x, requirements=("C", "A", "W"))


def joined(slabs: Sequence[Array]) -> Array:
    """Concatenate the slabs of an array."""
    return np.concatenate(slabs)
