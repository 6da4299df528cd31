"""Reports: one page that holds everything, and its tables and figures for papers."""

from curvewise.report.writing import write_report

__all__ = ["write_report"]
