//! Runs every scenario with every variant under every profile and prints a row of values for each flow.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;
use std::thread;

use hindflight_engine::{Config, Event, FlowSummary, Nanos, Profile, Tap, VARIANTS, World, run};

use crate::scenarios::{self, Scenario};

/// Seed of every run.
const SEED: u64 = 20_261_122;

const HEADER: &str = "id\tgoodput_bps\tsegments_out\tretransmissions\trtos\trecoveries\tdsacks_in\tdup_acks_in\t\
    ecn_reductions\tchannel_losses\tqueue_losses\taqm_losses\tdata_packets\tmean_cwnd_bytes\tcwnd_digest\n";

/// A data packet that has left, before the sender's state after it is known.
#[derive(Clone, Copy)]
struct Departure {
    at: Nanos,
    seq: u64,
}

/// cwnd of a leg at each of its data packets: the one that holds when everything at that time has happened.
#[derive(Clone, Default)]
struct LegWindows {
    cwnd_bytes: i64,
    departures: Vec<Departure>,
    data_packets: u64,
    sum_bytes: i128,
    digest: u64,
}

impl LegWindows {
    /// Counts the departures before `now`.
    fn settle(&mut self, now: Nanos) {
        let due = self
            .departures
            .partition_point(|departure| departure.at < now);
        for departure in self.departures.drain(..due) {
            self.data_packets += 1;
            self.sum_bytes += i128::from(self.cwnd_bytes);
            // FNV-1a over words.
            for word in [departure.at, departure.seq, self.cwnd_bytes as u64] {
                self.digest = (self.digest ^ word).wrapping_mul(0x0100_0000_01B3);
            }
        }
    }
}

#[derive(Default)]
struct Windows {
    legs: Vec<LegWindows>,
}

impl Windows {
    fn leg(&mut self, number: u16) -> &mut LegWindows {
        let number = usize::from(number);
        if self.legs.len() <= number {
            self.legs.resize(number + 1, LegWindows::default());
        }
        &mut self.legs[number]
    }
}

impl Tap for Windows {
    fn event(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Sent(segment) if segment.payload_bytes > 0 => {
                let leg = self.leg(segment.leg);
                leg.settle(now);
                leg.departures.push(Departure {
                    at: now,
                    seq: segment.seq,
                });
            }
            Event::State { leg, sample } => {
                let leg = self.leg(leg);
                leg.settle(now);
                leg.cwnd_bytes = sample.cwnd_bytes;
            }
            _ => {}
        }
    }
}

fn row(id: &str, flow: &FlowSummary, windows: &LegWindows) -> String {
    let counters = &flow.sender;
    let mean = windows.sum_bytes as f64 / windows.data_packets.max(1) as f64;
    format!(
        "{id}\t{:.0}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{mean:.0}\t{:016x}\n",
        flow.goodput_bps,
        counters.segments_out,
        counters.retransmissions,
        counters.rtos,
        counters.recoveries,
        counters.dsacks_in,
        counters.dup_acks_in,
        counters.ecn_reductions,
        flow.links.channel_losses,
        flow.links.queue_losses,
        flow.links.aqm_losses,
        windows.data_packets,
        windows.digest,
    )
}

/// The rows of one configuration. The run with a listener and the run without one must agree.
fn rows(scenario: &Scenario, profile: &str, variant: &str) -> String {
    let id = format!("{}/{profile}/{variant}", scenario.id);
    let config: Config = serde_json::from_value(scenario.config(variant, profile))
        .unwrap_or_else(|error| panic!("{id}: {error}"));
    let mut windows = Windows::default();
    let observed = World::new(&config, SEED, &mut windows).map(|mut world| {
        let flow_of_leg: Vec<_> = world
            .legs()
            .iter()
            .map(|leg| (leg.flow, leg.index))
            .collect();
        let summary = world
            .run(&AtomicBool::new(false))
            .expect("nobody interrupts");
        (summary, flow_of_leg)
    });
    let Ok((observed, flow_of_leg)) = observed else {
        return format!("{id}\trefused\n");
    };
    let unobserved = run(&config, SEED).unwrap_or_else(|error| panic!("{id}: {error}"));
    assert_eq!(observed, unobserved, "{id}: a listener changes the run");
    let mut text = String::new();
    for (number, flow) in observed.flows.iter().enumerate() {
        let leg = flow_of_leg.iter().position(|&leg| leg == (number, 0));
        let leg = windows.leg(leg.expect("every flow has a first leg") as u16);
        leg.settle(Nanos::MAX);
        let suffix = if number == 0 { "" } else { "#2" };
        text += &row(&format!("{id}{suffix}"), flow, leg);
    }
    text
}

/// The digest: a header and a row per scenario, profile, variant and flow, on two threads.
pub fn digest() -> String {
    let scenarios = scenarios::all();
    let cases: Vec<_> = scenarios
        .iter()
        .flat_map(|scenario| {
            Profile::ALL.into_iter().flat_map(move |profile| {
                VARIANTS
                    .iter()
                    .map(move |variant| (scenario, profile.name(), variant.info().name))
            })
        })
        .collect();
    let middle = cases.len() / 2;
    let (first, second) = cases.split_at(middle);
    let of = |cases: &[(&Scenario, &str, &str)]| -> String {
        cases
            .iter()
            .fold(String::new(), |mut text, (scenario, profile, variant)| {
                write!(text, "{}", rows(scenario, profile, variant)).expect("a string takes all");
                text
            })
    };
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| of(first));
        let second = of(second);
        (first.join().expect("no row panics"), second)
    });
    format!("{HEADER}{first}{second}")
}
