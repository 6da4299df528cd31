from curvewise.scaling.load import load_scaling_runs as load_scaling_runs
from curvewise.scaling.runs import ScalingRuns as ScalingRuns
