"""How many networks are trained side by side on a GPU, with a stopwatch that is told."""

import pytest

from curvewise.nn import engine as crew


@pytest.fixture
def grown(monkeypatch):
    """The number of lanes for so many runs, where a step of so many takes the seconds given."""

    def find(most, seconds, *, again=None):
        crew.forget()
        monkeypatch.setattr(crew, "_existing", lambda name, maker, count: [name] * count)
        monkeypatch.setattr(crew, "seconds_per_step", lambda lanes: seconds(len(lanes)))
        found = [len(crew._grown("single", object, n)) for n in (most, again) if n is not None]
        crew.forget()
        return found

    return find


def test_every_run_has_a_lane_where_that_is_quicker(grown):
    for most, expected in ((1, 1), (2, 2), (3, 3), (5, 5), (8, 8)):
        assert grown(most, lambda count: 1.0) == [expected]


def test_lanes_that_gain_nothing_are_not_made(grown):
    assert grown(8, lambda count: float(count)) == [1]
    assert grown(8, lambda count: max(1.0, count / 4)) == [4]


def test_what_was_found_by_doubling_holds_for_later_runs(grown):
    assert grown(8, lambda count: max(1.0, count / 2), again=8) == [2, 2]
    # the third of three lanes gained little: that says nothing of a fourth
    assert grown(3, lambda count: 1.5 if count == 3 else 1.0, again=8) == [2, 8]
