"""The table of shapes: all of it at toy size, and some of it where levels and rounds are many."""

import pytest

from epsilot_lab.studies import exactness


def test_every_shape_is_sound_at_toy_size(tmp_path, capsys):
    exactness.main([str(tmp_path), "--toy"])
    store = exactness.Store(tmp_path / "solves.jsonl", exactness.KEY)
    tasks = [
        exactness.ExactnessTask(case, exactness.TOY, method)
        for case in exactness.CASES
        for method in exactness.methods_of(case)
    ]
    lines = store.lines(tasks)
    assert len(lines) == len(tasks)
    unsound = [x for x in lines if not (exactness.is_sound(x) and x["certified"])]
    assert unsound == []
    assert f"{len(lines)} are sound by hand" in capsys.readouterr().out


#: case -> size
LARGER = {
    "2-d uniform, random, sqeuclidean": 1500,
    "2-d apart, random, euclidean": 1000,
    "2-d uniform, decades, euclidean": 1500,
    "2-d whole, random, cityblock": 1500,
    "2-d clustered, random, sqeuclidean": 1500,
    "10-d, random, sqeuclidean": 1000,
    "square, random, sqeuclidean": 1600,
    "square, decades, cityblock": 2000,
    "square, spacing 1, 3.14, cityblock": 2000,
}


@pytest.mark.parametrize("case", LARGER)
def test_some_shapes_are_sound_where_they_are_larger(case):
    (line,) = exactness.measure(case, LARGER[case], [exactness.CASES[case].method])
    assert line["certified"]
    assert exactness.is_sound(line), line


BREAKS = {
    "difference": 1e-8,
    "gap": 1e-8,
    "excess": 1e-12,
    "marginals": 1e-9,
    "arcs": 10**6,
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_false_line_is_found(name):
    (line,) = exactness.measure("1-d grid, cityblock", 40, ["grid_flow"])
    assert exactness.is_sound(line)
    assert not exactness.is_sound({**line, name: BREAKS[name]})
