from curvewise.report.export import export_report as export_report
from curvewise.report.page import write_report as write_report
