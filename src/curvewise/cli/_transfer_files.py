"""``curvewise transfer blind`` and ``wins``: answers about arrays in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from curvewise.cli._console import GATE, warn
from curvewise.cli._files import quietly, save_plot
from curvewise.cli._options import Drawing, Showing
from curvewise.cli._predictions import Level, Words
from curvewise.cli._transfer_arrays import (
    ignored,
    named_files,
    names_of_files,
    read_array,
    to_paste,
)
from curvewise.cli._transfer_shown import Flag, Gates, show_plain
from curvewise.cli._transfer_words import worded


def blind(
    targets: Annotated[str, Parameter(name="TARGETS")],
    /,
    *,
    loss: str,
    test: Path | None = None,
    key: Words = [],  # noqa: B006
    per: Literal["output", "pixel", "all"] = "output",
    axis: int | None = None,
    ignore: str | None = None,
    average: Literal["example", "pixel"] = "example",
    groups: Path | None = None,
    classes: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    smoothing: Annotated[float, Parameter(validator=Number(gte=0))] = 0.0,
    level: Level = 0.95,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Find the blind guess: the best constant prediction for a loss, and its risk.

    Example: `curvewise transfer blind depth.npy --loss l1 --per pixel --test test_depth.npy`

    Example: `curvewise transfer blind labels.csv --key label --loss cross-entropy`

    Parameters
    ----------
    targets
        What is to be predicted, a row for each training example: .npy, .npz, .csv, .txt, .json.
    loss
        error, cross-entropy, l1, l2, binary, binary-error, angular or cosine.
    test
        File with the targets that the risk is measured on; without it, those of training.
    key
        The array or column; several, such as x,y, are the outputs of each example.
    per
        What has a constant of its own: an output, each element of an example, or nothing.
    axis
        Which axis holds channels, or the components of vectors.
    ignore
        The value that marks an element without target, such as 255 or nan.
    average
        What counts the same in the risk.
    groups
        File that says which measured examples belong together.
    classes
        How many classes, numbered from 0.
    smoothing
        Examples added to each class before frequencies are taken.
    level
        Coverage of the interval.
    """
    page = (showing or Showing()).page()
    from curvewise.transfer.blind import blind_guess

    with quietly(), worded():
        result = blind_guess(
            read_array(targets, key),
            loss,
            test_targets=None if test is None else read_array(test, key),
            per=per,
            axis=axis,
            ignore=ignored(ignore),
            average=average,
            groups=None if groups is None else read_array(groups),
            classes=classes,
            smoothing=smoothing,
            level=level,
        )
    show_plain(page, result, f"Blind guess for {result.loss} ({100 * level:.4g}% interval)")
    page.say(to_paste(result), style="dim")
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


def wins(
    method: Annotated[str, Parameter(name="METHOD")],
    scratch: Annotated[str, Parameter(name="SCRATCH")],
    /,
    *,
    key: Words = [],  # noqa: B006
    groups: Path | None = None,
    paired: Flag = False,
    fail_if: Gates = [],  # noqa: B006
    level: Level = 0.95,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Count the test examples on which a method has a lower loss than scratch.

    Each file holds the losses of the same test examples: one for each, or runs × examples. Ties
    count half.

    Example: `curvewise transfer wins pretrained.npy scratch.npy --groups patients.npy`

    Parameters
    ----------
    method
        Losses of the method: .npy, .npz, .csv, .txt, .json.
    scratch
        Losses of training from scratch, or of any other to compare with.
    key
        The array or column, where a file has several; several, such as seed1,seed2, are runs.
    groups
        File that says which examples belong together.
    paired
        Run r of both belong together: they share a seed or a training subset.
    fail_if
        Exit with status 3 if the method is shown to win on fewer than half of the examples, or if
        neither more nor fewer is shown. May be repeated.
    level
        Coverage of the interval.
    """
    page = (showing or Showing()).page()
    names = names_of_files(method, scratch)
    from curvewise.transfer.wins import win_rate

    with quietly(), worded(), named_files(method, scratch):
        result = win_rate(
            read_array(method, key, "runs"),
            read_array(scratch, key, "runs"),
            groups=None if groups is None else read_array(groups),
            paired=paired,
            names=names,
            level=level,
        )
    title = f"Examples on which {names[0]} beats {names[1]} ({100 * level:.4g}% interval)"
    show_plain(page, result, title)
    save_plot(drawing.plot if drawing else None, result.plot)
    rate = result.rate
    holds = {"worse": rate.high < 0.5, "undecided": not (rate.high < 0.5 or rate.low > 0.5)}
    met = [gate for gate in fail_if if holds[gate]]
    for gate in met:
        warn(f"--fail-if {gate} holds: exit status {GATE}.")
    return page.close(GATE if met else 0)
