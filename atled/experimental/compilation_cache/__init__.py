"""Where compiled programs are kept."""
