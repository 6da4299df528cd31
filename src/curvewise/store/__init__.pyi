from curvewise.store.read import Run as Run
from curvewise.store.read import list_runs as list_runs
from curvewise.store.read import read_run as read_run
from curvewise.store.tables import export_store as export_store
from curvewise.store.verify import verify_store as verify_store
from curvewise.store.write import write_run as write_run
