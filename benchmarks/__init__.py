"""Speed of atled against the bare engine and against JAX, measured side by side in one run."""
