from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, sem

from curvewise.errors import InputError
from curvewise.transfer.risks import Control, TransferRisks, as_control, measured_control
from curvewise.types import Interval


def make(**changes) -> TransferRisks:
    given = {
        "tasks": ["a", "a", "b", "b"],
        "methods": ["scratch", "swav", "scratch", "moco"],
        "n": [100, 100, 50, 1000],
        "risk": [0.8, 0.5, np.nan, 0.3],
        "seeds": [0, 1, 0, 1],
        **changes,
    }
    return TransferRisks(**given)


def test_names_come_in_order_of_appearance() -> None:
    risks = make()
    assert risks.task_names == ("a", "b")
    assert risks.method_names == ("scratch", "swav", "moco")
    assert len(risks) == 4
    assert repr(risks) == "TransferRisks(4 runs, 2 tasks, 3 methods, 3 sizes from 50 to 1,000)"
    large = make(n=[1e5, 1e6, 1e6, 2e6])
    assert repr(large).endswith("3 sizes from 100,000 to 2,000,000)")
    assert repr(make().select([0])) == "TransferRisks(1 run, 1 task, 1 method, 1 size: 100)"


def test_parts() -> None:
    risks = make(folds=["x", "y", "x", "y"], blind={"a": 0.9})
    part = risks.of(task="b")
    assert part.methods.tolist() == ["scratch", "moco"]
    assert part.seeds.tolist() == ["0", "1"]
    assert part.folds.tolist() == ["x", "y"]
    assert part.blind == risks.blind
    assert risks.of(task="a", method="swav").risk.tolist() == [0.5]
    assert risks.select([True, False, False, True]).n.tolist() == [100, 1000]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda r: r.of(task="c"), "task='c' is not among the risks; there are 'a', 'b'"),
        (lambda r: r.of(method="pirl"), "method='pirl'"),
        (lambda r: r.of(task="b", method="swav"), "was not measured on task='b'"),
        (lambda r: r.select([True]), "one entry for each of 4 rows"),
    ],
    ids=["task", "method", "both", "mask"],
)
def test_parts_that_are_not_there(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call(make())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"risk": [], "n": [], "tasks": [], "methods": []}, "risk is empty"),
        ({"n": [100, 100]}, "n has shape"),
        ({"methods": ["a"]}, "methods has shape"),
        ({"n": [100, 0, 1, 1]}, "n holds 0"),
        ({"n": [100, np.nan, 1, 1]}, "n holds nan"),
        ({"risk": [1, np.inf, 1, 1]}, "infinite"),
        ({"risk": ["low", 1, 1, 1]}, "risk must hold numbers"),
        ({"blind": 0.9}, "blind=0.9: must be a dictionary"),
        ({"maximal": {"a": "gold"}}, "risk='gold' of a control must be a number"),
    ],
    ids=["empty", "n", "methods", "zero", "nan", "infinite", "text", "controls", "control"],
)
def test_what_cannot_be_a_table_of_risks(changes: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(**changes)


def test_numbers_are_controls_without_an_error() -> None:
    assert make(blind={"a": 0.9}).blind == {"a": Control(0.9)}
    assert Control(np.float32(0.5)) == Control(0.5, 0.0, "given", False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"risk": np.nan}, "finite"),
        ({"risk": np.inf}, "finite"),
        ({"risk": True}, "must be a number"),
        ({"risk": 0.1, "std": -0.1}, "0 or above"),
        ({"risk": 0.1, "std": np.inf}, "0 or above"),
        ({"risk": 0.1, "std": None}, "std=None"),
        ({"risk": 0.1, "degrees": 0}, "degrees=0.0"),
        ({"risk": 0.1, "degrees": np.nan}, "degrees=nan"),
    ],
    ids=["nan", "infinite", "flag", "negative", "endless", "none", "no degrees", "nan degrees"],
)
def test_what_cannot_be_a_control(given: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Control(**given)


def test_a_control_out_of_runs() -> None:
    """Against scipy: the standard error of the mean, and runs less one."""
    risks = [0.2, 0.5, np.nan, 0.3]
    found = measured_control([-1] * 4, risks)
    assert found.risk == pytest.approx(np.nanmean(risks))
    assert found.std == pytest.approx(sem(risks, nan_policy="omit"))
    assert (found.degrees, found.source) == (2, "measured")
    assert measured_control([10, 100, 100, np.nan], risks).risk == 0.3
    largest = measured_control([10, 100, 1000, 100], risks)
    assert (largest.risk, largest.source) == (pytest.approx(0.4), "measured at n = 100")
    single = measured_control([10, 1000], [0.2, 0.1])
    assert (single.risk, single.degrees) == (0.1, np.inf)
    assert np.isnan(single.std)
    assert measured_control([10], [np.nan]) is None


def test_what_is_given_as_a_control() -> None:
    class Guess:
        def control(self) -> Control:
            return Control(0.9, 0.01, "a guess")

    given = Control(0.1, 0.02, degrees=3)
    assert as_control(given, "maximal") is given
    assert as_control(Guess(), "blind").source == "a guess"
    assert as_control(80, "maximal", lambda x: 1 - x / 100).risk == pytest.approx(0.2)
    wide = Interval(0.5, 0.5 - norm.ppf(0.95), 0.5 + norm.ppf(0.95), level=0.9)
    assert as_control(wide, "blind").std == pytest.approx(1)
    assert np.isnan(as_control(Interval(0.5, 0.4, np.inf), "blind").std)


@pytest.mark.parametrize(
    "value", [True, None, np.nan, np.inf, [0.1], "x" * 500], ids=["flag", "none", "nan", "infinite", "list", "long"]
)
def test_what_is_no_control(value: object) -> None:
    with pytest.raises(InputError, match=r"^blind=.{1,200} is no control: give a finite number"):
        as_control(value, "blind")


def test_columns_hold_what_is_known() -> None:
    assert list(make().columns()) == ["task", "method", "n", "seed", "risk"]
    assert list(make(seeds=None, folds=[1, 2, 3, 4]).columns()) == ["task", "method", "n", "fold", "risk"]


def test_a_frame_has_a_row_for_each_run() -> None:
    pytest.importorskip("pandas")
    assert make().frame().shape == (4, 5)
