from curvewise.nn.task import Assignment as Assignment
from curvewise.nn.task import Examples as Examples
from curvewise.nn.task import Keep as Keep
from curvewise.nn.task import Poke as Poke
from curvewise.nn.task import Trained as Trained
from curvewise.nn.training import Training as Training
