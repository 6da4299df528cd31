"""Networks: architectures, optimisers, and an engine that trains many of them at once.

The only folder that imports torch. Settings and tasks are plain dataclasses, which can be read,
written and planned with where torch is not installed.
"""

from curvewise.nn.settings import Training
from curvewise.nn.task import Assignment, Examples, Keep, Poke, Trained

__all__ = ["Assignment", "Examples", "Keep", "Poke", "Trained", "Training"]
