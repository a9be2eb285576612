"""`make bench`: every bench beside its peers, one after another. Run it on an idle machine."""

from __future__ import annotations

from benches import bench_ingest

if __name__ == "__main__":
    bench_ingest.main([])
