"""Memory for time: `checkpoint`, its policies, names for what they keep, and a list of what is kept."""

from atled.higher_order.remat import checkpoint, checkpoint_name, checkpoint_policies, remat
from atled.higher_order.residuals import print_saved_residuals

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat"]
