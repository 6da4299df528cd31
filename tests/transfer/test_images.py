"""Predicted images side by side: their losses, and the grid that shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")  # the pictures; absent where the lens runs on numpy and scipy alone

import matplotlib.pyplot as plt
from matplotlib.colors import Normalize

from curvewise.errors import InputError
from curvewise.transfer.images import PredictedImages, compare_images
from curvewise.transfer.plot.tasks import IMAGE, plot_predictions

RNG = np.random.default_rng(0)
TARGETS = RNG.normal(size=(4, 1, 6, 8))
INPUTS = RNG.integers(0, 256, (4, 3, 6, 8), dtype=np.uint8)
OFF = {n: TARGETS + RNG.normal(0, 1 / n, TARGETS.shape) for n in (10, 100)}


@pytest.fixture(autouse=True)
def _close() -> Any:
    yield
    plt.close("all")


def found(**options: Any) -> PredictedImages:
    guess = np.zeros_like(TARGETS)
    return compare_images({"blind": guess, "scratch": OFF, "late": {100: TARGETS}}, TARGETS, INPUTS, **options)


@pytest.mark.parametrize(("loss", "power"), [("l1", 1), ("l2", 2)])
def test_losses_are_means_over_the_pixels_of_each_image(loss: str, power: int) -> None:
    made = found(loss=loss, examples=[3, 1])
    assert (made.methods, made.sizes, made.positions) == (("blind", "scratch", "late"), (10, 100), (3, 1))
    for row in made.rows:
        image = {"blind": np.zeros_like(TARGETS), "scratch": OFF.get(row.n), "late": TARGETS}[row.method]
        expected = (np.abs(image[row.example] - TARGETS[row.example]) ** power).mean()
        assert row.loss == pytest.approx(expected)
    # What has no size belongs to every size; what was not trained at a size has no image there.
    assert made.loss_of("blind", 1, 10) == made.loss_of("blind", 1, 100)
    assert made.images_of("late", 10) is None
    assert np.isnan(made.loss_of("late", 1, 10))
    assert np.array_equal(made.images_of("scratch", 100), OFF[100][[3, 1]])
    assert len(made.frame()) == len(made.rows) == 2 + 4 + 2
    assert "late 0" in made.summary()
    assert set(made.to_dict()) == {"type", "loss", "sizes", "rows", "warnings", "summary"}  # and no pixels


def drawn(ax: Any) -> dict[tuple[int, int], Any]:
    """Images of a picture by their row and column."""
    images = [image for image in ax.images if image.get_gid() == IMAGE]
    lefts = sorted({round(i.get_extent()[0], 6) for i in images})
    tops = sorted({round(i.get_extent()[3], 6) for i in images})
    return {
        (tops.index(round(i.get_extent()[3], 6)), lefts.index(round(i.get_extent()[0], 6))): i.get_array()
        for i in images
    }


def test_each_image_is_in_its_row_and_column() -> None:
    ax = plot_predictions(found(examples=[2, 0]))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["input", "blind", "scratch", "late", "target"]
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        f"image {i}\nn = {n}" for i in (2, 0) for n in (10, 100)
    ]  # fmt: skip
    cells = drawn(ax)
    for row, (example, n) in enumerate([(2, 10), (2, 100), (0, 10), (0, 100)]):
        assert np.allclose(cells[row, 0], np.moveaxis(INPUTS[example], 0, 2) / 255)
        assert np.array_equal(cells[row, 2], OFF[n][example, 0])
        assert np.array_equal(cells[row, 4], TARGETS[example, 0])
        assert ((row, 3) in cells) == (n == 100)
    losses = [t.get_text() for t in ax.texts if t.get_gid() is None]
    assert f"{np.abs(OFF[10][2] - TARGETS[2]).mean():.3g}" in losses
    # All images but the inputs are on one scale, that of the targets.
    scales = {(i.norm.vmin, i.norm.vmax) for i in ax.images if i.get_array().ndim == 2}
    shown = TARGETS[[2, 0]]
    assert scales == {(shown.min(), shown.max())}
    assert isinstance(ax.images[1].norm, Normalize)


def test_arrays_are_drawn_on_given_axes_and_colours_as_colours() -> None:
    normals = np.concatenate([TARGETS, TARGETS[::-1], -TARGETS], axis=1)
    _, ax = plt.subplots()
    assert plot_predictions({"scratch": normals + 9}, ax, targets=normals, losses=False, examples=[1]) is ax
    cells = drawn(ax)
    assert cells[0, 0].shape == (6, 8, 3)
    assert np.all(cells[0, 0] == 1)  # beyond the range of the targets
    low, high = normals[1].min(), normals[1].max()
    assert np.allclose(cells[0, 1], (np.moveaxis(normals[1], 0, 2) - low) / (high - low))
    assert not [t for t in ax.texts if t.get_gid() is None]
    one = drawn(plot_predictions({"scratch": normals}, targets=normals, channel=2, examples=[1]))
    assert np.array_equal(one[0, 0], normals[1, 2])
    three_axes = plot_predictions({"scratch": TARGETS[:, 0]}, targets=TARGETS[:, 0])
    assert len(drawn(three_axes)) == 8


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (lambda: compare_images({"a": TARGETS[:3]}, TARGETS), "shape"),
        (lambda: compare_images({"a": TARGETS}, TARGETS, INPUTS[:2]), "2 images"),
        (lambda: compare_images({"a": TARGETS}, TARGETS, examples=[4]), "0 to 3"),
        (lambda: compare_images({}, TARGETS), "dict of methods"),
        (lambda: compare_images({"a": TARGETS}, TARGETS, loss="huber"), "l1, l2"),
        (lambda: compare_images({"a": np.zeros(4)}, np.zeros(4)), "no images"),
        (lambda: compare_images({"a": TARGETS}, np.where(TARGETS > 1, np.nan, TARGETS)), "targets holds NaN"),
        (lambda: plot_predictions({"a": TARGETS}), "targets"),
        (lambda: plot_predictions(found(), targets=TARGETS), "already"),
        (lambda: plot_predictions({"a": TARGETS}, targets=TARGETS, channel=1), "channels 0 to 0"),
        (lambda: plot_predictions({"a": np.zeros((50, 2, 2))}, targets=np.zeros((50, 2, 2))), "at most 40"),
    ],
)
def test_what_does_not_go_together_is_refused(given: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        given()


def test_a_network_that_predicted_nan_is_named() -> None:
    made = compare_images({"good": TARGETS, "diverged": np.full_like(TARGETS, np.nan)}, TARGETS)
    assert made.sentences().endswith("good 0, diverged unknown.")
    texts = [t.get_text() for t in plot_predictions(made).texts]
    assert texts.count("unknown") == len(TARGETS)
    assert "nan" not in texts
