"""Reports: one page that holds everything, and its tables and figures for papers."""

from curvewise.report.export import export_report
from curvewise.report.writing import write_report

__all__ = ["export_report", "write_report"]
