"""Examples out of files and packages: digits, IDX, CIFAR, image folders, arrays, tables, texts."""

from curvewise.study.datasets.loading import load_dataset

__all__ = ["load_dataset"]
