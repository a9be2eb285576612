"""A channel from a capture: bottleneck, queue, delays, losses and their causes."""
