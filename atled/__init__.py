"""atled."""
from atled.core import trace
from atled.engine.eager import Evaluate
trace.install(Evaluate())
