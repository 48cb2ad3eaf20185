import pytest

from epsilot.errors import InvalidProblem
from epsilot_lab.peers.entrants import ENTRANTS, Entrant
from epsilot_lab.peers.run import QUICK, Wishes, selected


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        (Wishes(solvers=("emd3",)), "solver 'emd3' is unknown; .*did you mean emd2"),
        (Wishes(families=("pictures",)), "problem 'pictures' is unknown"),
        (Wishes(sizes=(2,)), "the size is 2; it must be between 4 and 20000"),
        (Wishes(rtols=(0.0,)), "the rtol is 0"),
        (Wishes(rtols=(float("nan"),)), "the rtol is nan"),
        (Wishes(time_limit=0.0), "the time limit is 0;"),
        (Wishes(time_limit=1e9), r"the time limit is 1e\+09"),
    ],
)
def test_bad_wishes_are_refused(wishes, message):
    with pytest.raises(InvalidProblem, match=message):
        selected(QUICK, wishes)


def test_a_peer_that_is_not_installed_is_refused_by_name_and_left_out_by_default(monkeypatch):
    gone = Entrant("gone", "Gone", "entropic", "x:y", "no_such_package_here", "gone-ot")
    monkeypatch.setitem(ENTRANTS, "gone", gone)
    assert gone.version == "not installed"
    assert "gone" not in selected(QUICK, Wishes()).solvers
    with pytest.raises(InvalidProblem, match="pip install gone-ot"):
        selected(QUICK, Wishes(solvers=("gone",)))


def test_we_and_the_reference_always_take_part():
    assert selected(QUICK, Wishes(solvers=("sinkhorn",))).solvers == ("epsilot", "emd2", "sinkhorn")
