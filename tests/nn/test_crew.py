"""How many networks are trained side by side on a GPU, with a stopwatch that is told."""

from types import SimpleNamespace

from curvewise.nn.engine import LanePool


def grown(most, seconds, *, again=None):
    """The number of lanes for so many runs, where a step of so many takes the seconds given."""
    pool = LanePool(stopwatch=lambda lanes: seconds(len(lanes)))

    def lane():
        return SimpleNamespace(is_taken=False, setup=SimpleNamespace(cuda=False))

    return [len(pool.grown("single", lambda: lane, n)) for n in (most, again) if n is not None]


def test_every_run_has_a_lane_where_that_is_quicker():
    for most, expected in ((1, 1), (2, 2), (3, 3), (5, 5), (8, 8)):
        assert grown(most, lambda count: 1.0) == [expected]


def test_lanes_that_gain_nothing_are_not_made():
    assert grown(8, lambda count: float(count)) == [1]
    assert grown(8, lambda count: max(1.0, count / 4)) == [4]


def test_what_was_found_by_doubling_holds_for_later_runs():
    assert grown(8, lambda count: max(1.0, count / 2), again=8) == [2, 2]
    # the third of three lanes gained little: that says nothing of a fourth
    assert grown(3, lambda count: 1.5 if count == 3 else 1.0, again=8) == [2, 8]
