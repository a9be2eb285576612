//! The congestion window at the receiver without timestamps, from sequence numbers: a sender as RFC 5681 describes it,
//! behind a queue that drops what exceeds it. `support/mod.rs` explains the notation.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write;

use hindflight_flows::{Phase, Sample};
use support::run;

const SMSS: i64 = 1000;

const HANDSHAKE_US: i64 = 2 * DELAY_US;

/// One way, and the time on the wire of one segment, in us.
const DELAY_US: i64 = 20_000;
const SERVICE_US: i64 = 2_000;

/// How the window of the sender grows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// RFC 5681 §3.1.
    Reno,
    /// By four segments per window, and reduced to four fifths.
    Other,
    /// As RFC 5681 says, but three times as fast after every fifth reduction.
    Faster,
    /// The same, but hardly at all after every fifth reduction.
    Slower,
}

#[derive(Clone, Copy)]
enum Step {
    /// A segment and its IPv4 ID.
    Arrive(usize, u16),
    /// Of all segments before the first number, and of the second.
    Acknowledge(usize, usize),
}

#[derive(Clone, Copy, Default)]
struct Segment {
    received: bool,
    sacked: bool,
    retransmitted: bool,
}

/// A recovery of RFC 6937.
#[derive(Clone, Copy)]
struct Recovery {
    point: usize,
    prior: usize,
    delivered: usize,
    sent: usize,
}

/// A sender, its queue and its receiver; sequence numbers in segments.
struct Link {
    growth: Growth,
    queue: i64,
    handshake_us: i64,
    /// Whether the sender increments its IPv4 IDs; else there are none.
    ids: bool,
    sent: u16,
    steps: BTreeMap<(i64, u32), Step>,
    number: u32,
    free_us: i64,
    segments: Vec<Segment>,
    una: usize,
    cwnd: usize,
    count: usize,
    ssthresh: usize,
    recovery: Option<Recovery>,
    reductions: usize,
    ladder: String,
    /// Time of arrival of each segment, and the window with which it left.
    truth: Vec<(i64, i64)>,
}

impl Link {
    /// The path of a connection whose handshake took `handshake_us`.
    fn new(growth: Growth, queue: i64, handshake_us: i64) -> Self {
        Self {
            growth,
            queue,
            handshake_us,
            ids: true,
            sent: 1,
            steps: BTreeMap::new(),
            number: 0,
            free_us: 0,
            segments: Vec::new(),
            una: 0,
            cwnd: 10,
            count: 0,
            ssthresh: usize::MAX,
            recovery: None,
            reductions: 0,
            ladder: format!(
                "  0.00 a>b S  0 mss 1000 ws 7 sackok id 0
                   0.05 b>a SA 0 ack 1 mss 1000 ws 7 sackok
                  {} a>b A  1 ack 1 id 1
                ",
                handshake_us as f64 / 1e3 + 0.05
            ),
            truth: Vec::new(),
        }
    }

    fn add(&mut self, t_us: i64, step: Step) {
        self.number += 1;
        self.steps.insert((t_us, self.number), step);
    }

    /// The queue has room for retransmissions.
    fn send(&mut self, now_us: i64, number: usize) {
        let waiting = (self.free_us - now_us).max(0) / SERVICE_US;
        self.sent += 1;
        if waiting < self.queue || self.segments[number].retransmitted {
            self.free_us = self.free_us.max(now_us) + SERVICE_US;
            let at_us = self.free_us + DELAY_US;
            self.truth.push((at_us, self.cwnd as i64));
            self.add(at_us, Step::Arrive(number, self.sent));
        }
    }

    /// Lost segments that have not been sent again, and the octets in flight, in segments (RFC 6675 §4).
    fn scoreboard(&self) -> (Vec<usize>, usize) {
        let highest = self.segments.iter().rposition(|segment| segment.sacked);
        let is_lost = |number: usize| highest.is_some_and(|highest| number + 2 < highest);
        let waiting =
            (self.una..self.segments.len()).filter(|&number| !self.segments[number].sacked);
        let lost = |number: &usize| !self.segments[*number].retransmitted && is_lost(*number);
        let (lost, flying): (Vec<_>, Vec<_>) = waiting.partition(lost);
        (lost, flying.len())
    }

    /// Sends what the window allows.
    fn fill(&mut self, now_us: i64) {
        loop {
            let (lost, pipe) = self.scoreboard();
            if let Some(recovery) = &mut self.recovery {
                let budget = (recovery.delivered * self.ssthresh).div_ceil(recovery.prior);
                self.cwnd = self
                    .ssthresh
                    .max(pipe + budget.saturating_sub(recovery.sent));
                recovery.sent += usize::from(pipe < self.cwnd);
            }
            if pipe >= self.cwnd {
                return;
            }
            let number = if let Some(&number) = lost.first() {
                self.segments[number].retransmitted = true;
                number
            } else {
                self.segments.push(Segment::default());
                self.segments.len() - 1
            };
            self.send(now_us, number);
        }
    }

    fn acknowledge(&mut self, now_us: i64, ack: usize, sacked: usize) {
        let acked = ack.saturating_sub(self.una);
        self.una = self.una.max(ack);
        self.segments[sacked].sacked = true;
        if let Some(recovery) = &mut self.recovery {
            recovery.delivered += 1;
            if ack >= recovery.point {
                self.recovery = None;
                self.cwnd = self.ssthresh;
            }
        } else if acked > 0 {
            self.grow(acked);
        } else if !self.scoreboard().0.is_empty() {
            let prior = self.cwnd;
            self.ssthresh = match self.growth {
                Growth::Reno | Growth::Faster | Growth::Slower => prior / 2,
                Growth::Other => prior * 4 / 5,
            };
            self.count = 0;
            self.reductions += 1;
            self.recovery = Some(Recovery {
                point: self.segments.len(),
                prior,
                delivered: 1,
                sent: 0,
            });
        }
        self.fill(now_us);
    }

    fn grow(&mut self, acked: usize) {
        if self.cwnd < self.ssthresh {
            self.cwnd += acked;
            return;
        }
        self.count += match self.growth {
            Growth::Faster if self.reductions % 5 == 0 => 3 * acked,
            Growth::Slower if self.reductions % 5 == 0 && self.una % 4 > 0 => 0,
            Growth::Reno | Growth::Faster | Growth::Slower => acked,
            Growth::Other => 4 * acked,
        };
        if self.count >= self.cwnd {
            self.count -= self.cwnd;
            self.cwnd += 1;
        }
    }

    /// A segment arrives and is acknowledged at once.
    fn arrive(&mut self, now_us: i64, number: usize, id: u16) {
        self.segments[number].received = true;
        let missing = self.segments.iter().position(|segment| !segment.received);
        let ack = missing.unwrap_or(self.segments.len());
        let octet = |number: usize| number as i64 * SMSS + 1;
        let (start, end) = (octet(number), octet(number + 1));
        let ms = |us: i64| us as f64 / 1e3;
        let at_ms = ms(now_us);
        let id = if self.ids {
            format!(" id {id}")
        } else {
            String::new()
        };
        writeln!(self.ladder, "{at_ms} a>b A {start}:{end} ack 1{id}").expect("text");
        let (ack_ms, seg_ack) = (ms(now_us + 10), octet(ack));
        write!(self.ladder, "{ack_ms} b>a A 1 ack {seg_ack} win 60000").expect("text");
        if number >= ack {
            write!(self.ladder, " sack {start}-{end}").expect("text");
        }
        self.ladder.push('\n');
        self.add(now_us + DELAY_US, Step::Acknowledge(ack, number));
    }

    /// The ladder of `duration_us`, and what is true of it.
    fn run(mut self, duration_us: i64) -> (String, Vec<(i64, i64)>) {
        self.fill(self.handshake_us + 1000);
        while let Some(((now_us, _), step)) = self.steps.pop_first()
            && now_us < duration_us
        {
            match step {
                Step::Arrive(number, id) => self.arrive(now_us, number, id),
                Step::Acknowledge(ack, sacked) => self.acknowledge(now_us, ack, sacked),
            }
        }
        (self.ladder, self.truth)
    }
}

fn row_at(samples: &[Sample], t_us: i64) -> Option<&Sample> {
    let count = samples.partition_point(|sample| sample.t_ns <= t_us * 1000);
    samples[..count].last()
}

/// The segments of which the window is known, those of which the interval holds the true one, and all.
fn compare(link: Link) -> (usize, usize, usize) {
    let (ladder, truth) = link.run(20_000_000);
    let samples = run(&ladder).samples;
    let rows = truth.iter().map(|&(t_us, cwnd)| {
        let row = row_at(&samples, t_us)?;
        let (low, high) = row.cwnd_low_bytes.zip(row.cwnd_high_bytes)?;
        Some(low <= cwnd * SMSS && cwnd * SMSS <= high)
    });
    let rows: Vec<_> = rows.collect();
    let known = rows.iter().flatten().count();
    let held = rows.iter().flatten().filter(|held| **held).count();
    (known, held, rows.len())
}

#[test]
fn the_window_grows_with_the_octets_acknowledged_from_one_reduction_to_the_next() {
    for queue in [10, 30, 60] {
        for ids in [true, false] {
            let link = Link::new(Growth::Reno, queue, HANDSHAKE_US);
            let (known, held, all) = compare(Link { ids, ..link });
            assert!(10 * known > 9 * all, "{queue}: {known} of {all}");
            assert!(20 * held > 19 * known, "{queue}: {held} of {known}");
        }
    }
}

#[test]
fn ids_show_retransmissions_that_come_sooner_than_half_the_round_trip_of_the_handshake() {
    // 500 ms, of which 40 ms are left, and 120 ms in the queue.
    let (known, held, all) = compare(Link::new(Growth::Reno, 60, 500_000));
    assert!(10 * known > 9 * all, "{known} of {all}");
    assert!(20 * held > 19 * known, "{held} of {known}");
    let link = Link::new(Growth::Reno, 60, 500_000);
    let (known, ..) = compare(Link { ids: false, ..link });
    assert_eq!(known, 0, "as if others had overtaken them");
}

#[test]
fn a_sender_that_follows_no_known_law_has_no_estimate() {
    let (known, _, all) = compare(Link::new(Growth::Other, 30, HANDSHAKE_US));
    assert!(10 * known < all, "{known} of {all}");
}

#[test]
fn where_the_law_of_the_sender_does_not_lead_to_the_next_window_the_interval_is_wider() {
    for growth in [Growth::Faster, Growth::Slower] {
        let (known, held, all) = compare(Link::new(growth, 30, HANDSHAKE_US));
        assert!(10 * known > 9 * all, "{known} of {all}");
        assert!(20 * held > 19 * known, "{held} of {known}");
        assert!(widest(growth) > 2 * widest(Growth::Reno));
    }
}

/// The widest interval in congestion avoidance, in octets.
fn widest(growth: Growth) -> i64 {
    let (ladder, _) = Link::new(growth, 30, HANDSHAKE_US).run(20_000_000);
    let samples = run(&ladder).samples;
    let avoids = |row: &&Sample| row.phase == Phase::CongestionAvoidance;
    let intervals = (samples.iter().filter(avoids))
        .filter_map(|row| Some(row.cwnd_high_bytes? - row.cwnd_low_bytes?));
    intervals.max().expect("an estimate")
}

#[test]
fn the_window_before_a_recovery_is_what_left_before_its_retransmission() {
    let (ladder, truth) = Link::new(Growth::Reno, 30, HANDSHAKE_US).run(5_000_000);
    let samples = run(&ladder).samples;
    let first = samples.iter().position(|row| row.phase == Phase::Recovery);
    let row = samples[first.expect("a recovery") - 1];
    let before = truth.iter().rfind(|(t_us, _)| t_us * 1000 <= row.t_ns);
    let (cwnd, before) = row.cwnd_bytes.zip(before).expect("an estimate");
    assert!((cwnd - before.1 * SMSS).abs() <= SMSS, "{cwnd}");
    assert_eq!(row.recoveries, 0);
}

#[test]
fn a_pause_of_the_application_and_a_timeout_hide_the_window() {
    let ladder = "
         0.00 a>b S  0 mss 1000 sackok
         0.05 b>a SA 0 ack 1 mss 1000 sackok
        40.05 a>b A  1 ack 1
        60.0  a>b A 1:1001 ack 1
        60.1  b>a A 1 ack 1001
        900.0 a>b A 1001:2001 ack 1
        900.1 b>a A 1 ack 2001";
    let samples = run(ladder).samples;
    assert!(samples.iter().all(|row| row.cwnd_bytes.is_none()));
}
