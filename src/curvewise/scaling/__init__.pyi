from curvewise.scaling.load import load_scaling_runs as load_scaling_runs
from curvewise.scaling.runs import ScalingRuns as ScalingRuns
from curvewise.scaling.law import ScalingLaw as ScalingLaw
from curvewise.scaling.law import fit_scaling_law as fit_scaling_law
