"""Collect the numbers by which the engine ends, starts and divides runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EngineTuning:
    """Seconds, shares and ratios by which the engine ends, starts and divides runs."""

    grace_seconds: float = 0.2  # of a step that runs when the time is up
    last_proof_seconds: float = 0.35  # from an interruption until a last certificate is abandoned
    # Share of the tolerated overrun after which a last certificate is abandoned.
    overrun_share: float = 0.3
    # Evaluations that take longer are proved at once, not at the end.
    proved_at_once_seconds: float = 0.2
    # Operations of a certificate and its proof, in units of those of the certificate.
    proof_margin: float = 4.0
    # Seconds per operation of the slowest pass of a certificate; steps that search are slower.
    slowest_pass_seconds: float = 1e-9
    dual_share: float = 0.4  # share of the time of a certificate that the lower bound takes
    # Steps of fewer operations than this share of a certificate's do not tell how long one takes:
    # a millisecond in which another process ran would count as many seconds.
    reliable_share: float = 1 / 16
    # A run has stalled if the gap (with stop="paper": the violation) has not improved by 1 %
    # while the work grew by this factor, and for so many epochs.
    stall_work_ratio: float = 8.0
    stall_epochs: int = 5000
    # Largest potentials to start from, in units of the largest cost or η; beyond, digits are
    # lost.
    max_start_ratio: float = 1e6
    max_potential: float = 1e300  # largest potentials that can be audited
    # Larger potentials, in units of the largest cost (or η), are replaced by c-transforms.
    far_ratio: float = 100.0
    n_cells: int = 1500  # cells of the coarsest clouds, whose problem takes a fraction of a second
    coarse_rtol: float = 1e-3  # accuracy of the coarsest problem
    # Work of a chunk of a batch: a thread solves one at a time, and Ctrl-C waits for it.
    chunk_seconds: float = 0.01
    save_seconds: float = 20.0  # seconds between two checkpoints of a batch
    # About how many times longer ``execute`` takes for a problem than the compiled solver.
    execute_slowdown: float = 100.0
    max_shapes: int = 64  # number of shapes whose index arrays are kept
    n_middle: int = 8000  # cells of the cloud between a large one and the coarsest
    middle_rtol: float = 0.1
    min_points_of_middle: int = 40_000  # smallest cloud that has one in between
    # Smallest cloud and highest dimension that start from a coarse cloud by default.
    min_points_of_coarse: int = 5000
    max_axes_of_coarse: int = 3
    max_chunk_problems: int = 4096  # most problems per chunk
    small_batch_chunk: int = 16  # most problems per chunk of a small batch


TUNING = EngineTuning()
