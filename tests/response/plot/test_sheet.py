"""Sheets of perturbed images, against the same changes done with numpy."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from curvewise.errors import InputError
from curvewise.nn import Examples
from curvewise.response.plot.sheet import plot_perturbed

torch = pytest.importorskip("torch")
find_perturbation = pytest.importorskip("curvewise.response.networks.perturbations").find_perturbation
load_digits = pytest.importorskip("sklearn.datasets").load_digits


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    return (found.images * 255 / 16).astype(np.uint8)[:, None], found.target


@pytest.fixture(scope="module")
def coloured():
    return np.random.default_rng(0).integers(0, 256, (12, 6, 9, 3)).astype(np.uint8)


def cells(ax, height, width, partner=False):
    """The images of a sheet: rows × columns × height × width × RGB."""
    (sheet,) = (np.asarray(i.get_array()) for i in ax.images)
    clear = sheet[..., 3] == 0
    rows = np.flatnonzero(~clear.all(axis=1)).reshape(-1, height)
    columns = np.flatnonzero(~clear.all(axis=0)).reshape(-1, width)
    assert partner == (len({tuple(np.diff(columns[:, 0]))[k] for k in (0, -1)}) == 2)
    return sheet[rows[:, None, :, None], columns[None, :, None, :], :3]


def ticks(ax, axis="x"):
    return [t.get_text() for t in getattr(ax, f"get_{axis}ticklabels")()]


def test_images_are_turned_moved_and_darkened(digits):
    x, _ = digits
    seen = cells(plot_perturbed(x[:4], "rotation", [-180, -90, 0, 90]), 8, 8)
    plain = x[:4, 0] / 255
    for column, turns in enumerate((2, -1, 0, 1)):
        wanted = np.rot90(plain, turns, axes=(1, 2))
        np.testing.assert_allclose(seen[:, column, ..., 0], wanted, atol=1e-5)
        np.testing.assert_allclose(seen[:, column, ..., 2], wanted, atol=1e-5)
    seen = cells(plot_perturbed(x[:4], find_perturbation("shift-x", fill=0.5), [0, 0.25]), 8, 8)
    np.testing.assert_allclose(seen[:, 1, :, 2:, 0], plain[:, :, :-2], atol=1e-5)
    np.testing.assert_allclose(seen[:, 1, :, :2], 0.5)
    seen = cells(plot_perturbed(x[:4], "brightness", [-0.5]), 8, 8)
    np.testing.assert_allclose(seen[:, 0, ..., 0], plain / 2, atol=1e-5)


def test_zero_is_always_shown_and_magnitudes_rise(digits):
    ax = plot_perturbed(digits[0][:2], "noise", [0.3, 0.1])
    assert ticks(ax) == ["0", "0.1", "0.3"]
    np.testing.assert_allclose(cells(ax, 8, 8)[:, 0, ..., 0], digits[0][:2, 0] / 255)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("rotation", "-30 -20 -10 0 10 20 30"),
        ("mixup-intra", "0 0.1 0.2 0.3 0.4 0.5 partner"),
        ("mixup-inter", "0 0.1 0.2 0.3 0.4 partner"),
        ("shift-y", "-0.5 -0.25 0 0.25 0.5"),
        ("blur", "0 0.5 1 1.5 2 2.5 3"),
    ],
)
def test_the_usual_magnitudes_are_round(digits, name, wanted):
    ax = plot_perturbed((digits[0][:60], digits[1][:60]), name)
    assert ticks(ax) == wanted.split()


@pytest.mark.parametrize("kind", ["intra", "inter"])
def test_mixtures_stand_between_an_image_and_its_partner(digits, kind):
    x, y = digits
    names = [f"digit {i}" for i in range(10)]
    ax = plot_perturbed((x, y), f"mixup-{kind}", [0.0, 0.2, 0.4], classes=names, rng=3)
    seen = cells(ax, 8, 8, partner=True)
    first, other = seen[:, 0], seen[:, -1]
    for column, share in enumerate((0.0, 0.2, 0.4)):
        np.testing.assert_allclose(seen[:, column], (1 - share) * first + share * other, atol=1e-5)
    stored = {image.tobytes(): int(label) for image, label in zip(x[:, 0], y, strict=True)}
    found = [[stored[np.rint(255 * i[..., 0]).astype(np.uint8).tobytes()] for i in column] for column in (first, other)]
    assert ticks(ax, "y") == [names[i] for i in found[0]]
    assert found[0] == [0, 1, 2, 3, 4]
    same = [a == b for a, b in zip(*found, strict=True)]
    assert same == [kind == "intra"] * 5
    assert not (first == other).all(axis=(1, 2, 3)).any()
    beside = [t.get_text() for t in ax.texts if t.get_gid() == "curvewise-class"]
    assert beside == ([] if kind == "intra" else [names[i] for i in found[1]])


def test_images_come_from_whatever_holds_them(digits):
    x, y = digits
    mean, std = (0.3,), (0.4,)
    given = Examples(x[:6], y[:6], 10, mean, std)
    tensors = torch.utils.data.TensorDataset(torch.tensor((x[:6] / 255 - 0.3) / 0.4), torch.tensor(y[:6]))
    want = cells(plot_perturbed(given, "cutout", [0.4], examples=6), 8, 8)
    np.testing.assert_allclose(want[:, 0, ..., 0], x[:6, 0] / 255, atol=1e-6)
    options = {"reading": {"mean": mean, "std": std}, "examples": 6}
    for data in (tensors, torch.utils.data.DataLoader(tensors, batch_size=4, shuffle=True)):
        seen = cells(plot_perturbed(data, "cutout", [0.4], **options), 8, 8)
        np.testing.assert_allclose(seen, want, atol=1e-5)
    for data in (x[:6, 0], torch.tensor(x[:6]), list(x[:6]), x[:6] / 255):
        ax = plot_perturbed(data, "cutout", [0.4], examples=6)
        np.testing.assert_allclose(cells(ax, 8, 8), want, atol=1e-5)
        assert ticks(ax, "y") == [""] * 6


def test_values_of_a_network_are_scaled_as_it_sees_them(digits):
    x, y = digits
    given = Examples(x[:3], y[:3], 10, (0.3,), (0.4,))
    seen = cells(plot_perturbed(given, "intensity", [-0.5]), 8, 8)[:, 0, ..., 0]
    np.testing.assert_allclose(seen, (x[:3, 0] / 255 - 0.3) / 2 + 0.3, atol=1e-5)

    def inverted(x, magnitude, rng):
        return x * (1 - 2 * magnitude)

    seen = cells(plot_perturbed(x[:3] / 255, inverted, [0.25]), 8, 8)[:, 1, ..., 0]
    np.testing.assert_allclose(seen, x[:3, 0] / 510, atol=1e-5)


def test_colours_last_or_first(coloured):
    last = cells(plot_perturbed(coloured, "hue", [0.2], examples=12), 6, 9)
    np.testing.assert_allclose(last[:, 0], coloured / 255, atol=1e-6)
    first = cells(plot_perturbed(np.moveaxis(coloured, -1, 1), "hue", [0.2], examples=12), 6, 9)
    np.testing.assert_allclose(first, last)


def test_the_seed_decides(digits):
    x, y = digits
    one, same, other = (
        cells(plot_perturbed((x, y), "noise", [0.3], rng=r), 8, 8) for r in (1, np.random.default_rng(1), 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_nothing_overlaps_and_hostile_names_are_drawn(digits):
    x, y = digits
    names = ["$x$ \\frac \n" + "very long name " * 5 + str(i) for i in range(10)]
    for size in ((6.4, 4.8), (3.3, 2.6)):
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.add_subplot()
        given = {"classes": names, "examples": 10}
        assert plot_perturbed((x, y), "mixup-inter", ax=ax, **given) is ax
        figure.draw_without_rendering()
        for group in (ax.get_xticklabels(), ax.get_yticklabels()):
            boxes = [t.get_window_extent() for t in group]
            assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    own = plot_perturbed(x, "noise", [0.3], examples=2)
    own.figure.draw_without_rendering()
    label = own.xaxis.label.get_window_extent()
    assert label.x0 >= 0
    assert label.x1 <= own.figure.bbox.x1


def test_images_that_cannot_be_shown_are_refused(digits, coloured):
    x, y = digits
    with pytest.raises(InputError, match="holds values from 0 to 16"):
        plot_perturbed(load_digits().images, "blur")
    with pytest.raises(InputError, match="labels are missing: mixing depends on them"):
        plot_perturbed(x, "mixup-intra")
    with pytest.raises(InputError, match="class 0 has no second example"):
        plot_perturbed((x[:3], y[:3]), "mixup-intra")
    with pytest.raises(InputError, match="there is no class but 1 among"):
        plot_perturbed((x[:2], [1, 1]), "mixup-inter")
    with pytest.raises(InputError, match=r"give .examples, channels, height, width"):
        plot_perturbed(np.zeros((3, 4), dtype=np.uint8), "blur")
    with pytest.raises(InputError, match=r"has shape \(3, 2, 8, 8\)"):
        plot_perturbed(np.zeros((3, 2, 8, 8), dtype=np.uint8), "blur")
    with pytest.raises(InputError, match="classes has 2 names, labels goes up to 9"):
        plot_perturbed((x, y), "blur", classes=["a", "b"], examples=10)
    with pytest.raises(InputError, match="different sizes"):
        plot_perturbed([x[0], coloured[0]], "blur")
    with pytest.raises(InputError, match="examples=0"):
        plot_perturbed(x, "blur", examples=0)
    with pytest.raises(InputError, match=r"magnitudes=.*finite"):
        plot_perturbed(x, "blur", [np.nan])
    with pytest.raises(InputError, match="these images have 1 channel"):
        plot_perturbed(x, "hue")
    with pytest.raises(InputError, match="perturbation='blurr' is not known"):
        plot_perturbed(x, "blurr")


def test_settings_are_left_alone(digits):
    before = dict(mpl.rcParams)
    plot_perturbed(digits[0][:2], "blur").figure.draw_without_rendering()
    assert dict(mpl.rcParams) == before
