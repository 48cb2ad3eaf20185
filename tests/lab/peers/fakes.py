"""Peers that misbehave; imported by the processes of the benchmark."""

import time

import numpy as np

from epsilot_lab.peers.solvers import PeerAnswer, Prepared


def _fake(plan, delay=0.0):
    def adapter(M, a, b, setting):
        def run():
            if M.shape[0] < 64:  # not while warming up
                time.sleep(delay)
            return plan(M, a, b)

        return Prepared(run, PeerAnswer)

    return adapter


def _broken(M, a, b):
    raise FloatingPointError("overflow\nin exp")


wrong = _fake(lambda M, a, b: np.outer(a, b))
infeasible = _fake(lambda M, a, b: 0.5 * np.outer(a, b))
not_finite = _fake(lambda M, a, b: np.full(M.shape, np.nan))
broken = _fake(_broken)
slow = _fake(lambda M, a, b: np.outer(a, b), delay=30.0)
