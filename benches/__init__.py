"""Speed and memory compared with peers, run by hand or nightly; never a timed test."""
