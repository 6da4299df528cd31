from curvewise.drawing.picture import draw as draw
from curvewise.drawing.picture import save_picture as save_picture
from curvewise.drawing.style import PALETTE as PALETTE
