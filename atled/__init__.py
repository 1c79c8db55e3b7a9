"""atled."""
from atled.core import config, trace
from atled.core.array import Array
from atled.engine.eager import Evaluate
from atled.higher_order.jit import jit, make_program
from atled.transforms.grad import grad, hessian, jvp, linear_transpose, linearize, value_and_grad, vjp
from atled.transforms.vmap import vmap

trace.install(Evaluate())
