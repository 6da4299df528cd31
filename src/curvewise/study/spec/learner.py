"""Learners: a network, an estimator of scikit-learn, or a command of one's own."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from curvewise.errors import InputError
from curvewise.nn.task import Outputs, settle_training
from curvewise.nn.training import NUMBER_LOSSES, Training

FIELDS = (*("n", "fold", "seed", "init_seed", "order_seed", "augmentation_seed"), *("id", "rows", "data", "out"))
"""Fields that a command may ask for in braces, beside the names of the grid."""


@dataclass(frozen=True)
class Learner:
    """One way to turn a training set into predictions; exactly one of the three kinds.

    Attributes
    ----------
    training : Training, optional
        A network and how it is trained.
    estimator : str, optional
        An estimator by its place, ``"sklearn.svm:SVC"``; its parameters in ``options``.
    command : str, optional
        A command line with ``{n}``, ``{seed}``, ``{out}`` and others of :data:`FIELDS` in it. It is
        run without a shell, is given its training rows in the file ``{rows}``, and writes its
        predictions to the folder ``{out}``.
    options : dict
        Parameters of the estimator.
    members : int
        How many networks with seeds of their own average their probabilities, or numbers.
    timeout : float, optional
        Seconds after which a command is stopped and counted as failed.
    judged : {"l1", "l2"}, optional
        By which loss an estimator or a command is judged where targets are numbers; ``"l2"`` by
        default. Networks are judged by the loss they are trained with.
    """

    training: Training | None = None
    estimator: str | None = None
    command: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    members: int = 1
    timeout: float | None = None
    judged: str | None = None

    def __post_init__(self) -> None:
        kinds = [k for k in ("training", "estimator", "command") if getattr(self, k) is not None]
        if len(kinds) != 1:
            raise InputError(
                "A learner needs one of architecture (a network), estimator or command; it has "
                f"{' and '.join(kinds) or 'none'}."
            )
        whole = isinstance(self.members, int) and not isinstance(self.members, bool)
        if not whole or self.members < 1 or (self.members > 1 and self.training is None):
            raise InputError(f"members={self.members!r}: only networks, one or more, form ensembles.")
        if self.estimator is not None:
            self._check_estimator(self.estimator)
        if self.command is not None:
            self._check_command(self.command)
        if self.timeout is not None:
            self._check_timeout(self.timeout)
        if self.judged is not None and self.judged not in NUMBER_LOSSES:
            raise InputError(f"judged={self.judged!r} is not known: use one of {', '.join(NUMBER_LOSSES)}.")
        if self.judged is not None and self.training is not None:
            raise InputError(
                f"judged={self.judged!r}: a network is judged by the loss it is trained with; give loss= instead."
            )

    def _check_estimator(self, estimator: Any) -> None:
        parts = estimator.split(":") if isinstance(estimator, str) else []
        if len(parts) != 2 or not all(p.isidentifier() for p in [*parts[0].split("."), parts[1]]):
            raise InputError(f"estimator={estimator!r}: give its place as 'module:Class', such as 'sklearn.svm:SVC'.")

    def _check_timeout(self, timeout: Any) -> None:
        number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not number or not timeout > 0 or self.command is None:
            raise InputError(f"timeout={timeout!r}: give a command that may take so many seconds.")

    def _check_command(self, command: Any) -> None:
        if not isinstance(command, str) or not command.strip():
            raise InputError(f"command={command!r}: give a command line as text.")
        try:
            asked = _asked(command)
        except ValueError as error:
            raise InputError(f"command={command!r}: {error}.") from error
        if "out" not in asked:
            raise InputError(
                f"command={command!r} does not say {{out}}: the folder to which it must write its predictions."
            )

    @property
    def kind(self) -> str:
        """``"network"``, ``"estimator"`` or ``"command"``."""
        if self.training is not None:
            return "network"
        return "estimator" if self.estimator is not None else "command"

    @property
    def loss(self) -> str | None:
        """By which loss it is judged where targets are numbers; None for classes."""
        return self.judged if self.training is None else self.training.loss

    def takes(self, setting: str) -> bool:
        """Return whether a setting that a grid varies for all learners means something to this one.

        >>> Learner(estimator="sklearn.svm:SVC").takes("batch")
        False
        """
        if self.training is not None:
            return True
        if self.command is not None:
            return setting in _asked(self.command) or setting in FIELDS  # which is refused
        return setting != "members" and setting not in Training().as_dict()

    def with_settings(self, settings: Mapping[str, Any]) -> Learner:
        """The learner with some of its settings replaced, as a grid asks for."""
        if self.training is None:
            return replace(self, options={**self.options, **settings})
        members = settings.get("members", self.members)
        settings = {k: v for k, v in settings.items() if k != "members"}
        known = {f.name for f in fields(Training)} - {"options"}
        direct = {k: v for k, v in settings.items() if k in known}
        inner = {k: v for k, v in settings.items() if k not in known}
        options = {**self.training.options, **inner}
        training = replace(self.training, **direct, options=options)
        return replace(self, training=training, members=members)

    def as_dict(self) -> dict[str, Any]:
        """Everything that determines what is trained, ready for JSON."""
        if self.training is not None:
            return {**self.training.as_dict(), "members": self.members}
        judged = {} if self.judged is None else {"judged": self.judged}
        if self.estimator is not None:
            return {"estimator": self.estimator, "options": dict(self.options), **judged}
        return {"command": self.command, "options": dict(self.options), **judged}


def settle_learner(learner: Learner, outputs: Outputs, name: str = "learner") -> Learner:
    """Settle by which loss a learner is judged, and refuse one that is not for such targets.

    >>> settle_learner(Learner(estimator="sklearn.linear_model:Ridge"), (2,)).loss
    'l2'
    """
    try:
        if learner.training is not None:
            return replace(learner, training=settle_training(learner.training, outputs))
        if isinstance(outputs, int):
            if learner.judged is not None:
                raise InputError(
                    f"judged={learner.judged!r} is for numbers, and the targets are classes: leave it out."
                )
            return learner
        if learner.estimator is not None and len(outputs) > 1:
            raise InputError(
                f"estimator={learner.estimator!r} predicts rows of numbers, and the targets are "
                f"images of shape {outputs}: use a network or a command."
            )
    except InputError as error:
        raise InputError(f"learners.{name}: {error}") from error
    return replace(learner, judged=learner.judged or "l2")


def _asked(command: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(command) if name is not None]
