"""Speed and memory beside peers, run by hand or nightly; never a timed test."""
