"""Devices, buffers, executables and their cache: the only folder that imports jaxlib."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # read when jaxlib is imported, so set before
