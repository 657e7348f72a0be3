"""Where an Outcome meets its proof: certificates attached, and claims judged."""
