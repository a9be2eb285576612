//! The congestion window at the receiver without timestamps, from sequence numbers: a sender as RFC 5681 describes it,
//! behind a queue that drops what exceeds it. `support/mod.rs` explains the notation.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write;

use hindflight_flows::{Phase, Sample};
use support::run;

const SMSS: i64 = 1000;

/// One way, and the time on the wire of one segment, in us.
const DELAY_US: i64 = 20_000;
const SERVICE_US: i64 = 2_000;

/// How the window of the sender grows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// RFC 5681 §3.1.
    Reno,
    /// By four segments per window, and reduced to three quarters.
    Other,
}

#[derive(Clone, Copy)]
enum Step {
    Arrive(i64),
    Acknowledge(i64),
}

/// A sender, its queue and its receiver; sequence numbers in segments.
struct Link {
    growth: Growth,
    queue: i64,
    steps: BTreeMap<(i64, u32), Step>,
    number: u32,
    free_us: i64,
    una: i64,
    nxt: i64,
    cwnd: i64,
    count: i64,
    ssthresh: i64,
    dup_acks: i64,
    recovery_point: Option<i64>,
    received: Vec<bool>,
    ladder: String,
    /// Time of arrival of each new segment, and the window with which it left.
    truth: Vec<(i64, i64)>,
}

impl Link {
    fn new(growth: Growth, queue: i64) -> Self {
        Self {
            growth,
            queue,
            steps: BTreeMap::new(),
            number: 0,
            free_us: 0,
            una: 0,
            nxt: 0,
            cwnd: 10,
            count: 0,
            ssthresh: i64::MAX,
            dup_acks: 0,
            recovery_point: None,
            received: Vec::new(),
            ladder: String::from(
                "  0.00 a>b S  0 mss 1000 ws 7 sackok
                   0.05 b>a SA 0 ack 1 mss 1000 ws 7 sackok
                  40.05 a>b A  1 ack 1
                ",
            ),
            truth: Vec::new(),
        }
    }

    fn add(&mut self, t_us: i64, step: Step) {
        self.number += 1;
        self.steps.insert((t_us, self.number), step);
    }

    fn send(&mut self, now_us: i64, segment: i64) {
        let waiting = (self.free_us - now_us).max(0) / SERVICE_US;
        if waiting >= self.queue {
            return;
        }
        self.free_us = self.free_us.max(now_us) + SERVICE_US;
        let at_us = self.free_us + DELAY_US;
        self.truth.push((at_us, self.cwnd));
        self.add(at_us, Step::Arrive(segment));
    }

    /// Sends what the window allows.
    fn fill(&mut self, now_us: i64) {
        let lost = i64::from(self.recovery_point.is_some());
        while self.nxt - self.una - self.dup_acks + lost < self.cwnd + lost {
            self.nxt += 1;
            self.received.push(false);
            self.send(now_us, self.nxt - 1);
        }
    }

    fn acknowledge(&mut self, now_us: i64, ack: i64) {
        if ack > self.una {
            let acked = ack - self.una;
            self.una = ack;
            self.dup_acks = 0;
            match self.recovery_point {
                Some(point) if ack < point => self.send(now_us, ack),
                Some(_) => self.recovery_point = None,
                None => self.grow(acked),
            }
        } else {
            self.dup_acks += 1;
            if self.dup_acks == 3 && self.recovery_point.is_none() {
                self.send(now_us, self.una);
                self.recovery_point = Some(self.nxt);
                self.cwnd = match self.growth {
                    Growth::Reno => self.cwnd / 2,
                    Growth::Other => self.cwnd * 3 / 4,
                };
                self.ssthresh = self.cwnd;
                self.count = 0;
            }
        }
        self.fill(now_us);
    }

    fn grow(&mut self, acked: i64) {
        if self.cwnd < self.ssthresh {
            self.cwnd += acked;
            return;
        }
        self.count += match self.growth {
            Growth::Reno => acked,
            Growth::Other => 4 * acked,
        };
        if self.count >= self.cwnd {
            self.count -= self.cwnd;
            self.cwnd += 1;
        }
    }

    /// A segment arrives and is acknowledged at once.
    fn arrive(&mut self, now_us: i64, segment: i64) {
        self.received[segment as usize] = true;
        let ack = self.received.iter().position(|received| !received);
        let ack = ack.map_or(self.nxt, |ack| ack as i64);
        let octet = |segment: i64| segment * SMSS + 1;
        let (start, end) = (octet(segment), octet(segment + 1));
        let ms = |us: i64| us as f64 / 1e3;
        writeln!(self.ladder, "{} a>b A {start}:{end} ack 1", ms(now_us)).expect("text");
        let ack_ms = ms(now_us + 10);
        write!(self.ladder, "{ack_ms} b>a A 1 ack {} win 60000", octet(ack)).expect("text");
        if segment >= ack {
            let sack = (octet(segment), octet(segment + 1));
            write!(self.ladder, " sack {}-{}", sack.0, sack.1).expect("text");
        }
        self.ladder.push('\n');
        self.add(now_us + DELAY_US, Step::Acknowledge(ack));
    }

    /// The ladder of `duration_us`, and what is true of it.
    fn run(mut self, duration_us: i64) -> (String, Vec<(i64, i64)>) {
        self.fill(41_000);
        while let Some(((now_us, _), step)) = self.steps.pop_first()
            && now_us < duration_us
        {
            match step {
                Step::Arrive(segment) => self.arrive(now_us, segment),
                Step::Acknowledge(ack) => self.acknowledge(now_us, ack),
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
fn compare(growth: Growth, queue: i64) -> (usize, usize, usize) {
    let (ladder, truth) = Link::new(growth, queue).run(20_000_000);
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
        let (known, held, all) = compare(Growth::Reno, queue);
        assert!(10 * known > 9 * all, "{queue}: {known} of {all}");
        assert!(20 * held > 19 * known, "{queue}: {held} of {known}");
    }
}

#[test]
fn a_sender_that_follows_no_known_law_has_no_estimate() {
    let (known, _, all) = compare(Growth::Other, 30);
    assert!(10 * known < all, "{known} of {all}");
}

#[test]
fn the_window_before_a_recovery_is_what_left_before_its_retransmission() {
    let (ladder, truth) = Link::new(Growth::Reno, 30).run(5_000_000);
    let samples = run(&ladder).samples;
    let first = samples.iter().position(|row| row.phase == Phase::Recovery);
    let row = samples[first.expect("a recovery") - 1];
    let before = truth.iter().rfind(|(t_us, _)| t_us * 1000 <= row.t_ns);
    assert_eq!(row.cwnd_bytes, before.map(|(_, cwnd)| cwnd * SMSS));
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
