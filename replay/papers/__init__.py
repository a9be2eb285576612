"""The published studies that Hindflight reproduces: scenarios, claims, readings, and how each claim is judged."""
