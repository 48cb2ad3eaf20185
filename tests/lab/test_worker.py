import os
from types import SimpleNamespace

import pytest
from serving import double

from epsilot_lab import worker as worker_module
from epsilot_lab.worker import Died, Late, Worker, replies


@pytest.fixture
def worker():
    with Worker(double, variables={"EPSILOT_TEST": "mine"}) as made:
        yield made


def test_a_process_answers_in_its_own_environment(worker, monkeypatch):
    monkeypatch.delenv("EPSILOT_TEST", raising=False)
    worker.send(4)
    assert worker.receive(60) == 8
    worker.send(0)
    assert worker.receive(60) == "mine"
    assert "EPSILOT_TEST" not in os.environ


def test_a_process_that_dies_or_is_late_is_replaced(worker):
    worker.send(-1)
    with pytest.raises(Died, match="ended with code 3"):
        worker.receive(60)
    worker.send(101)
    with pytest.raises(Late, match=r"no answer within 0\.2 s"):
        worker.receive(0.2)
    worker.send(5)
    assert worker.receive(60) == 10


def test_a_variable_that_was_set_comes_back(monkeypatch):
    monkeypatch.setenv("EPSILOT_TEST", "theirs")
    with Worker(double, 1, variables={"EPSILOT_TEST": "mine"}) as worker:
        worker.send(1)
        assert worker.receive(60) == 3
    assert os.environ["EPSILOT_TEST"] == "theirs"


def test_replies_come_from_whoever_is_free(monkeypatch):
    now, found = 0.0, []
    monkeypatch.setattr(worker_module, "time", SimpleNamespace(monotonic=lambda: now))
    requests = iter([1, -1, 2, 101, 3])
    for reply in replies(requests, [Worker(double) for _ in range(2)], limit=10.0):
        found.append(reply)
        now = 10.0 * (len(found) == 4)  # only the sleeping worker is left
    assert sorted((r.request, r.answer) for r in found if r.failure is None) == [
        (1, 2),
        (2, 4),
        (3, 6),
    ]
    failed = {reply.request: reply for reply in found if reply.failure}
    assert isinstance(failed[-1].failure, Died)
    assert isinstance(failed[101].failure, Late)
    assert str(failed[101].failure) == "no answer within 10 s"
    assert failed[101].seconds == 10.0


def test_requests_are_drawn_only_when_somebody_is_free():
    drawn = []

    def requests():
        for x in range(1, 5):
            drawn.append(x)
            yield x

    found = replies(requests(), [Worker(double)])
    assert next(found).request == 1
    assert drawn == [1, 2]
    found.close()
