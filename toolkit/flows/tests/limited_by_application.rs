//! The window of a sender that waits for its application, compared with one whose window is known.

mod support;

use std::collections::VecDeque;
use std::fmt::Write;

use hindflight_flows::{Phase, Sample};
use support::Outcome;

const MSS: u64 = 1000;
const RTT_MS: f64 = 20.0;
const SERVICE_MS: f64 = 1.0;
/// Octets of a write, seven segments, of one that the window does not let through at once, and the time between two.
const WRITE: u64 = 6300;
const LARGE_WRITE: u64 = 29_500;
const WRITES_MS: f64 = 50.0;

/// A sender with SACK behind a bottleneck, whose application writes at a constant rate.
struct Sender {
    ladder: String,
    /// Time and octets of the next write, and octets written and sent.
    write_ms: f64,
    write: u64,
    written: u64,
    sent: u64,
    /// Ends of the segments in flight, and when the last one leaves the bottleneck.
    flight: VecDeque<u64>,
    free_ms: f64,
    /// ACKs on their way: time and number.
    acks: VecDeque<(f64, u64)>,
    cwnd: f64,
    /// The flight has reached the window since the last window of data.
    full: bool,
    /// Segments sent together are captured as one.
    offload: bool,
    /// Time between two segments.
    pace_ms: Option<f64>,
    next_ms: f64,
}

impl Sender {
    /// A connection whose first flight of ten segments lacks its second one, if `lost`, so that the window falls to
    /// four.
    fn new(lost: bool, pace_ms: Option<f64>) -> Self {
        let mut ladder = String::from(
            "0 a>b S 0 mss 1000 sackok\n20 b>a SA 0 ack 1 mss 1000 sackok\n20.01 a>b A 1 ack 1\n",
        );
        let mut send = |t: f64, seq: u64| {
            let _ = writeln!(ladder, "{t:.3} a>b A {seq}:{} ack 1", seq + MSS);
        };
        for number in 0..10 {
            send(20.02 + 0.001 * number as f64, 1 + number * MSS);
        }
        let _ = writeln!(ladder, "41 b>a A 1 ack 1001");
        if lost {
            for number in 3..=10 {
                let end = 1 + number * MSS;
                let _ = writeln!(ladder, "{} b>a A 1 ack 1001 sack 2001-{end}", 40 + number);
                if number == 5 {
                    let _ = writeln!(ladder, "45.02 a>b A 1001:2001 ack 1");
                }
            }
        }
        let _ = writeln!(ladder, "66 b>a A 1 ack 10001");
        Self {
            ladder,
            write_ms: 100.0,
            write: WRITE,
            written: 10_001,
            sent: 10_001,
            flight: VecDeque::new(),
            free_ms: 0.0,
            acks: VecDeque::new(),
            cwnd: if lost { 4.0 } else { 20.0 },
            full: false,
            offload: false,
            pace_ms,
            next_ms: 0.0,
        }
    }

    fn run(&mut self, until_ms: f64) {
        loop {
            let ack_ms = self.acks.front().map_or(f64::INFINITY, |ack| ack.0);
            let waits = self.written > self.sent && self.flight.len() < self.cwnd as usize;
            let paced_ms = if waits { self.next_ms } else { f64::INFINITY };
            let now = ack_ms.min(self.write_ms).min(paced_ms);
            if now > until_ms {
                return;
            }
            if now >= self.write_ms {
                self.written += self.write;
                self.write_ms += WRITES_MS;
            } else if now >= ack_ms {
                self.take_ack();
            }
            self.send(now + 0.02);
        }
    }

    fn send(&mut self, mut now: f64) {
        let first = self.sent;
        while self.written > self.sent
            && self.flight.len() < self.cwnd as usize
            && now >= self.next_ms
        {
            let end = self.written.min(self.sent + MSS);
            if !self.offload {
                let _ = writeln!(self.ladder, "{now:.3} a>b A {}:{end} ack 1", self.sent);
            }
            self.sent = end;
            self.flight.push_back(end);
            self.free_ms = self.free_ms.max(now) + SERVICE_MS;
            if self.flight.len() % 2 == 0 || end == self.written {
                self.acks.push_back((self.free_ms + RTT_MS, end));
            }
            self.full |= self.flight.len() >= self.cwnd as usize;
            self.next_ms = self.pace_ms.map_or(0.0, |pace_ms| now + pace_ms);
            now += 0.001;
        }
        if self.offload && self.sent > first {
            let _ = writeln!(self.ladder, "{now:.3} a>b A {first}:{} ack 1", self.sent);
        }
    }

    fn take_ack(&mut self) {
        let (t_ms, ack) = self.acks.pop_front().expect("an ACK");
        let _ = writeln!(self.ladder, "{t_ms:.3} b>a A 1 ack {ack}");
        while self.flight.front().is_some_and(|&end| end <= ack) {
            self.flight.pop_front();
            if self.full {
                self.cwnd += 1.0 / self.cwnd;
            }
        }
        self.full &= !self.flight.is_empty();
    }

    fn outcome(&self) -> Outcome {
        support::run(&self.ladder)
    }
}

fn last(outcome: &Outcome) -> Sample {
    *outcome.samples.last().expect("rows")
}

/// Checks the estimates of a sender that writes until 2 s, once it has filled its window.
fn check(sender: &Sender) {
    let outcome = sender.outcome();
    let cwnd = sender.cwnd as i64 * MSS as i64;
    assert_eq!(cwnd, 8000, "a segment more than a write");
    let row = last(&outcome);
    assert_eq!((row.phase, row.app_limited), (Phase::Limited, Some(true)));
    assert!(row.cwnd_low_bytes < Some(cwnd) && row.cwnd_high_bytes > Some(cwnd));
    let settled: Vec<&Sample> = outcome
        .samples
        .iter()
        .filter(|row| row.t_ns > 1_000_000_000)
        .collect();
    assert!(settled.len() > 20 && settled.iter().all(|row| row.cwnd_bytes == Some(cwnd)));
}

#[test]
fn a_window_that_writes_have_filled_stays_known() {
    let mut sender = Sender::new(true, None);
    sender.run(2000.0);
    check(&sender);
}

#[test]
fn what_the_interface_cuts_is_short_if_its_last_segment_is() {
    let mut sender = Sender::new(true, None);
    sender.offload = true;
    sender.run(2000.0);
    check(&sender);
}

#[test]
fn an_idle_sender_starts_again() {
    let mut sender = Sender::new(true, None);
    sender.run(2000.0);
    sender.write_ms += 1000.0;
    sender.run(4500.0);
    let row = last(&sender.outcome());
    assert_eq!((row.phase, row.cwnd_bytes), (Phase::Limited, None));
}

#[test]
fn before_the_first_reduction_the_window_may_be_larger_than_any_write() {
    let mut sender = Sender::new(false, None);
    sender.cwnd = 10.0;
    sender.write = LARGE_WRITE;
    sender.run(500.0);
    sender.write = WRITE;
    sender.run(2500.0);
    let row = last(&sender.outcome());
    assert_eq!((row.phase, row.cwnd_bytes), (Phase::Limited, None));
}

#[test]
fn a_sender_that_paces_what_the_application_writes_has_no_estimate() {
    let mut sender = Sender::new(true, Some(3.0));
    sender.run(4000.0);
    assert_eq!(last(&sender.outcome()).cwnd_bytes, None);
}
