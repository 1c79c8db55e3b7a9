"""Memory for time: `checkpoint`, its policies, and names for what they keep."""

from atled.higher_order.remat import checkpoint, checkpoint_name, checkpoint_policies, remat

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "remat"]
