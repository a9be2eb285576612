//! The rows of `runs`, as far as the engine knows them: one per job and flow, TCP flows before streams of datagrams.
//!
//! Decides nothing: what a column means is in `toolkit/schema`.

use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use hindflight_engine::{
    Config, DatagramSummary, EXTERNAL, FlowSummary, LinkCounts, Nanos, ProxyCounts, RunSummary,
    SecondsSummary, SenderCounters,
};
use pyo3::PyResult;

use crate::columns::{Batch, Columns};
use crate::rows::each;

/// A finished run and what it was.
pub struct Finished<'a> {
    /// Number of the run.
    pub run_id: u32,
    /// Its root seed.
    pub seed: u64,
    /// Its configuration.
    pub config: &'a Config,
    /// What it came to.
    pub summary: &'a RunSummary,
}

/// What sets rows of datagrams apart.
const DATAGRAM_VARIANT: &str = "udp";

/// A row.
struct Row<'a> {
    run: &'a Finished<'a>,
    flow_id: u32,
    flow: &'a str,
    variant: &'a str,
    came_to: CameTo<'a>,
}

enum CameTo<'a> {
    Flow(&'a FlowSummary),
    Datagrams(&'a DatagramSummary),
}

impl<'a> Row<'a> {
    fn all(run: &'a Finished<'a>) -> impl Iterator<Item = Self> {
        let Finished {
            config, summary, ..
        } = run;
        let flows = config.flows.iter().zip(&summary.flows);
        let flows = flows.map(|(flow, summary)| {
            (
                flow.name.as_str(),
                flow.variant.strip_prefix(EXTERNAL).unwrap_or(&flow.variant),
                CameTo::Flow(summary),
            )
        });
        let others = config.datagrams.iter().zip(&summary.datagrams);
        let others = others.map(|(other, summary)| {
            (
                other.name.as_str(),
                DATAGRAM_VARIANT,
                CameTo::Datagrams(summary),
            )
        });
        let numbered = (1..).zip(flows.chain(others));
        numbered.map(move |(flow_id, (flow, variant, came_to))| Self {
            run,
            flow_id,
            flow,
            variant,
            came_to,
        })
    }

    /// One number, from whichever summary the row has.
    fn of<T>(
        &self,
        flow: impl Fn(&FlowSummary) -> T,
        datagrams: impl Fn(&DatagramSummary) -> T,
    ) -> T {
        match self.came_to {
            CameTo::Flow(summary) => flow(summary),
            CameTo::Datagrams(summary) => datagrams(summary),
        }
    }

    /// What links did to its packets.
    fn links(&self) -> LinkCounts {
        self.of(|flow| flow.links, |datagrams| datagrams.links)
    }

    /// A count of its sender; datagrams have none but those sent.
    fn count(&self, count: impl Fn(&SenderCounters) -> u64) -> u64 {
        self.of(|flow| count(&flow.sender), |_| 0)
    }

    /// A time that only TCP flows have.
    fn time(&self, time: impl Fn(&FlowSummary) -> Option<Nanos>) -> Option<i64> {
        self.of(time, |_| None).map(|ns| ns as i64)
    }

    /// A time that both have.
    fn delay(
        &self,
        flow: impl Fn(&FlowSummary) -> Option<Nanos>,
        datagrams: impl Fn(&DatagramSummary) -> Option<Nanos>,
    ) -> Option<i64> {
        self.of(flow, datagrams).map(|ns| ns as i64)
    }
}

/// The table's part for `finished` runs.
pub fn runs(finished: &[Finished<'_>]) -> PyResult<Columns> {
    let rows: Vec<Row<'_>> = finished.iter().flat_map(Row::all).collect();
    let batch = Batch::new(rows.len())
        .number::<UInt32Type>("run_id", each(&rows, |r| r.run.run_id))
        .text("flow", &each(&rows, |r| r.flow))
        .text("variant", &each(&rows, |r| r.variant))
        .number::<UInt64Type>("seed", each(&rows, |r| r.run.seed))
        .number::<UInt32Type>("flow_id", each(&rows, |r| r.flow_id));
    let batch = proxies(losses(counts(batch, &rows), &rows), &rows);
    progress(applications(batch, &rows), &rows).finish()
}

fn counts(batch: Batch, rows: &[Row<'_>]) -> Batch {
    batch
        .number::<Int64Type>(
            "duration_ns",
            each(rows, |r| r.of(|f| f.duration_ns, |d| d.duration_ns) as i64),
        )
        .flag(
            "completed",
            each(rows, |r| r.of(|f| f.completed, |_| false)),
        )
        .optional::<Int64Type>("reset_ns", each(rows, |r| r.time(|f| f.reset_ns)))
        .number::<UInt64Type>(
            "delivered_bytes",
            each(rows, |r| r.of(|f| f.delivered_bytes, |d| d.delivered_bytes)),
        )
        .number::<Float64Type>(
            "goodput_bps",
            each(rows, |r| r.of(|f| f.goodput_bps, |d| d.goodput_bps)),
        )
        .number::<UInt64Type>(
            "segments_out",
            each(rows, |r| r.of(|f| f.sender.segments_out, |d| d.sent)),
        )
        .number::<UInt64Type>(
            "retransmissions",
            each(rows, |r| r.count(|c| c.retransmissions)),
        )
        .number::<UInt64Type>("rtos", each(rows, |r| r.count(|c| c.rtos)))
        .number::<UInt64Type>("recoveries", each(rows, |r| r.count(|c| c.recoveries)))
}

/// What links did to its packets, and what its senders noticed of marks.
fn losses(batch: Batch, rows: &[Row<'_>]) -> Batch {
    batch
        .number::<UInt64Type>("channel_losses", each(rows, |r| r.links().channel_losses))
        .number::<UInt64Type>("queue_losses", each(rows, |r| r.links().queue_losses))
        .number::<UInt64Type>("aqm_losses", each(rows, |r| r.links().aqm_losses))
        .number::<UInt64Type>("ecn_marks", each(rows, |r| r.links().ecn_marks))
        .number::<UInt64Type>(
            "ecn_reductions",
            each(rows, |r| r.count(|c| c.ecn_reductions)),
        )
        .number::<UInt64Type>("outage_losses", each(rows, |r| r.links().outage_losses))
        .number::<UInt64Type>(
            "control_losses",
            each(rows, |r| r.of(|f| f.control_losses, |_| 0)),
        )
        .number::<UInt64Type>(
            "trace_beyond_pkts",
            each(rows, |r| r.run.summary.trace_beyond_pkts),
        )
        .optional::<Int64Type>("srtt_mean_ns", each(rows, |r| r.time(|f| f.rtt_mean_ns)))
        .optional::<Int64Type>("rtt_p95_ns", each(rows, |r| r.time(|f| f.rtt_p95_ns)))
        .optional::<UInt64Type>(
            "proxy_held_max_bytes",
            each(rows, |r| r.of(|f| f.proxy_held_max_bytes, |_| None)),
        )
        .optional::<UInt64Type>(
            "proxy_stored_max_bytes",
            each(rows, |r| r.of(|f| f.proxy_stored_max_bytes, |_| None)),
        )
        .optional::<UInt64Type>(
            "proxy_stored_mean_bytes",
            each(rows, |r| r.of(|f| f.proxy_stored_mean_bytes, |_| None)),
        )
        .optional::<Int64Type>(
            "proxy_delay_mean_ns",
            each(rows, |r| r.time(|f| f.proxy_delay_mean_ns)),
        )
        .optional::<UInt64Type>(
            "proxy_lost_bytes",
            each(rows, |r| r.of(|f| f.proxy_lost_bytes, |_| None)),
        )
}

/// What befell its connections at proxies.
fn proxies(batch: Batch, rows: &[Row<'_>]) -> Batch {
    let of = |count: fn(&ProxyCounts) -> u64| {
        each(rows, |r| {
            r.of(|f| f.proxy_counts.as_ref().map(count), |_| None)
        })
    };
    batch
        .optional::<UInt64Type>(
            "proxy_corrupted_bytes",
            each(rows, |r| r.of(|f| f.proxy_corrupted_bytes, |_| None)),
        )
        .optional::<UInt64Type>("proxy_refused", of(|c| c.refused))
        .optional::<UInt64Type>("proxy_unsplit", of(|c| c.unsplit))
        .optional::<UInt64Type>("proxy_timeouts", of(|c| c.timeouts))
        .optional::<UInt64Type>("proxy_dropped", of(|c| c.dropped))
        .optional::<UInt64Type>("proxy_filtered_acks", of(|c| c.filtered_acks))
        .optional::<UInt64Type>("proxy_suppressed_acks", of(|c| c.suppressed_acks))
        .optional::<UInt64Type>("proxy_spoofed_acks", of(|c| c.spoofed_acks))
        .optional::<UInt64Type>("proxy_retransmissions", of(|c| c.local_retransmissions))
}

fn applications(batch: Batch, rows: &[Row<'_>]) -> Batch {
    batch
        .optional::<Int64Type>(
            "one_way_delay_p50_ns",
            each(rows, |r| {
                r.delay(|f| f.one_way_delay_p50_ns, |d| d.delay_p50_ns)
            }),
        )
        .optional::<Int64Type>(
            "one_way_delay_p95_ns",
            each(rows, |r| {
                r.delay(|f| f.one_way_delay_p95_ns, |d| d.delay_p95_ns)
            }),
        )
        .optional::<Int64Type>(
            "app_delay_p50_ns",
            each(rows, |r| {
                r.delay(|f| f.app_delay_p50_ns, |d| d.delay_p50_ns)
            }),
        )
        .optional::<Int64Type>(
            "app_delay_p95_ns",
            each(rows, |r| {
                r.delay(|f| f.app_delay_p95_ns, |d| d.delay_p95_ns)
            }),
        )
        .optional::<Int64Type>(
            "app_delay_p99_ns",
            each(rows, |r| {
                r.delay(|f| f.app_delay_p99_ns, |d| d.delay_p99_ns)
            }),
        )
        .optional::<Int64Type>(
            "app_delay_max_ns",
            each(rows, |r| {
                r.delay(|f| f.app_delay_max_ns, |d| d.delay_max_ns)
            }),
        )
        .optional::<Int64Type>(
            "jitter_ns",
            each(rows, |r| r.delay(|_| None, |d| d.jitter_ns)),
        )
        .optional::<UInt64Type>("stalls", each(rows, |r| r.of(|f| f.stalls, |_| None)))
        .optional::<Int64Type>("stalled_ns", each(rows, |r| r.time(|f| f.stalled_ns)))
        .optional::<UInt64Type>("pages", each(rows, |r| r.of(|f| f.pages, |_| None)))
        .optional::<Int64Type>(
            "page_load_p50_ns",
            each(rows, |r| r.time(|f| f.page_load_p50_ns)),
        )
        .optional::<Int64Type>(
            "page_load_p95_ns",
            each(rows, |r| r.time(|f| f.page_load_p95_ns)),
        )
}

/// How data arrived over time; datagrams have none of it.
fn progress(batch: Batch, rows: &[Row<'_>]) -> Batch {
    let of = |value: fn(&SecondsSummary) -> Option<f64>| {
        each(rows, |r| {
            r.of(|f| f.progress.seconds.as_ref().and_then(value), |_| None)
        })
    };
    batch
        .optional::<Int64Type>(
            "longest_gap_ns",
            each(rows, |r| r.time(|f| f.progress.longest_gap_ns)),
        )
        .optional::<Int64Type>(
            "restart_mean_ns",
            each(rows, |r| r.time(|f| f.progress.restart_mean_ns)),
        )
        .optional::<Int64Type>(
            "restart_max_ns",
            each(rows, |r| r.time(|f| f.progress.restart_max_ns)),
        )
        .optional::<Float64Type>("second_mean_bps", of(|s| Some(s.mean_bps)))
        .optional::<Float64Type>("second_sd_bps", of(|s| s.sd_bps))
        .optional::<Float64Type>("second_p10_bps", of(|s| Some(s.p10_bps)))
        .optional::<Float64Type>("second_p50_bps", of(|s| Some(s.p50_bps)))
        .optional::<Float64Type>("second_p90_bps", of(|s| Some(s.p90_bps)))
        .optional::<Float64Type>("idle_share", of(|s| Some(s.idle_share)))
}
