//! Packet ladders of the sender: a script of arrivals in, the whole ladder out, compared as text.
//!
//! A line is `TIME < ack N [sack A-B …] [wnd W] [ece 1] [dummy 1]` for an ACK that awaits segment N (segments count from 1, all full)
//! and `TIME > 5 6 R3 (cwnd 4 recovery)` for what leaves then, R for a retransmission, C for
//! new data that confirms a reduced window (CWR). `TIME end` lets the timers run
//! until then. Times are seconds.

mod aerotcp;
mod fack;
mod linux;
mod mechanisms;
mod ns2;
mod ns2_tcp_linux;
mod peach;
mod rack;
mod scps_tp;
mod supertcp;
mod undo;

use std::fmt::Write;

use hindflight_kernels::{Purpose as DrawPurpose, StreamKey, StreamRng};

use super::segment::{Direction, Purpose, Segment, flags};
use super::sender::{PhaseName, Sender};
use crate::cc::catalogue::Variant;
use crate::cc::{Controller, ParamValues};
use crate::config::{Profile, StackOverrides, StackParams};
use crate::sim::time::{Nanos, SECOND, seconds};

pub(super) const SMSS: u64 = 1000;

/// A sender of `variant` with segments of 1000 octets, an open connection and no end of data.
#[allow(
    clippy::large_types_passed_by_value,
    reason = "each test writes its own"
)]
pub(super) fn sender(variant: Variant, profile: Profile, overrides: StackOverrides) -> Sender {
    sender_with((variant, "{}"), profile, overrides)
}

/// The same with a window of `pkts` that nothing moves, under `rfc`.
pub(super) fn holding(variant: Variant, pkts: u32) -> Sender {
    let fixed = StackOverrides {
        fixed_window_pkts: Some(pkts),
        ..StackOverrides::default()
    };
    sender(variant, Profile::Rfc, fixed)
}

/// The same, with the variant's parameters as a scenario writes them.
#[allow(
    clippy::large_types_passed_by_value,
    reason = "each test writes its own"
)]
pub(super) fn sender_with(
    (variant, values): (Variant, &str),
    profile: Profile,
    overrides: StackOverrides,
) -> Sender {
    let values: ParamValues = serde_json::from_str(values).expect("well-formed");
    let params = variant.fix(&params(profile, overrides), &ParamValues::new());
    let draws = StreamRng::new(StreamKey {
        seed: 1,
        owner: 0,
        direction: 0,
        purpose: DrawPurpose::Controller,
    });
    open_sender(&params, variant.controller(&params, &values, draws))
}

/// The parameters of a stack with segments of 1000 octets and an open connection.
#[allow(
    clippy::large_types_passed_by_value,
    reason = "each test writes its own"
)]
pub(super) fn params(profile: Profile, overrides: StackOverrides) -> StackParams {
    StackParams::resolve(
        profile,
        &StackOverrides {
            handshake: Some(false),
            smss_bytes: Some(SMSS as u32),
            ..overrides
        },
    )
}

/// A sender with this controller, an open connection and no end of data.
pub(super) fn open_sender(params: &StackParams, controller: impl Into<Controller>) -> Sender {
    let mut sender = Sender::new(0, params, controller.into());
    sender.open(0, 1000 * SMSS);
    sender.write_to(1 << 40, false);
    sender
}

pub(super) fn window(pkts: u32) -> StackOverrides {
    StackOverrides {
        initial_window_pkts: Some(pkts),
        ..StackOverrides::default()
    }
}

/// The same, in congestion avoidance from the start.
pub(super) fn avoiding(pkts: u32) -> StackOverrides {
    StackOverrides {
        initial_ssthresh_pkts: Some(2),
        ..window(pkts)
    }
}

/// A sender whose application has written so many full segments and no more.
pub(super) fn finite(mut sender: Sender, segments: u64) -> Sender {
    sender.write_end = 1 + segments * SMSS;
    sender.finished = true;
    sender
}

/// Plays the arrivals of `script` and compares the ladder with it.
pub(super) fn check(mut sender: Sender, script: &str) {
    let mut got = String::new();
    let mut now = 0;
    send(&mut sender, now, &mut got);
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (time, event) = line.split_once(' ').unwrap_or((line, ""));
        if event.starts_with('>') {
            continue;
        }
        let time = (time.parse::<f64>().expect("a time") * SECOND as f64).round() as Nanos;
        while sender.next_deadline() <= time {
            now = sender.next_deadline();
            sender.on_deadline(now);
            send(&mut sender, now, &mut got);
        }
        now = time;
        writeln!(got, "{:.3} {event}", seconds(now)).expect("writes to a string");
        if let Some(ack) = event.strip_prefix("< ") {
            sender.receive(&parse(ack, now), now);
            send(&mut sender, now, &mut got);
        }
    }
    let want: String = script
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .fold(String::new(), |s, l| s + l + "\n");
    assert!(got == want, "ladder:\n{got}\nexpected:\n{want}");
}

fn send(sender: &mut Sender, now: Nanos, out: &mut String) {
    let mut sent = String::new();
    let mut segment = Segment::new(0, Direction::Forward);
    while sender.transmit(now, &mut segment) {
        let again = match segment.purpose {
            Purpose::FastRetransmission | Purpose::TimeoutRetransmission => "R",
            Purpose::Probe => "P",
            Purpose::Data
            | Purpose::Datagram
            | Purpose::Control
            | Purpose::Ack
            | Purpose::Request => "",
        };
        let again = if segment.has(flags::CWR) { "C" } else { again };
        write!(sent, " {again}{}", (segment.seq.max(1) - 1) / SMSS + 1)
            .expect("writes to a string");
    }
    if !sent.is_empty() {
        let sample = sender.sample();
        let phase = match sample.phase {
            PhaseName::SlowStart => "slow start",
            PhaseName::CongestionAvoidance => "avoidance",
            PhaseName::Recovery => "recovery",
            PhaseName::Loss => "loss",
            PhaseName::Limited => "limited",
            PhaseName::Handshake => "handshake",
        };
        let cwnd = sample.cwnd_bytes / SMSS as i64;
        writeln!(out, "{:.3} >{sent} (cwnd {cwnd} {phase})", seconds(now))
            .expect("writes to a string");
    }
}

pub(super) fn parse(text: &str, now: Nanos) -> Segment {
    let octet = |number: u64| 1 + (number - 1) * SMSS;
    let mut words = text.split(' ');
    let mut segment = Segment {
        wnd_bytes: 1_000_000,
        flags: flags::ACK,
        ..Segment::new(0, Direction::Reverse)
    };
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        match key {
            "ack" => segment.ack = octet(value.parse().expect("a segment")),
            "dummy" => segment.flags |= flags::DUMMY,
            "ece" => segment.flags |= flags::ECE,
            "echo" => segment.ts_ecr = value.parse().expect("milliseconds"),
            "wnd" => segment.wnd_bytes = value.parse::<u32>().expect("segments") * SMSS as u32,
            "sack" => {
                for block in value.split(',') {
                    let (first, last) = block.split_once('-').expect("FIRST-LAST");
                    let left = octet(first.parse().expect("a segment"));
                    let right = octet(last.parse::<u64>().expect("a segment") + 1);
                    let offset = |edge: u64| (edge as i64 - segment.ack as i64) as i32;
                    segment.sack[usize::from(segment.sack_len)] = (offset(left), offset(right));
                    segment.sack_len += 1;
                }
            }
            other => panic!("{other} at {now}"),
        }
    }
    segment
}

#[test]
fn slow_start_adds_one_segment_per_ack() {
    check(
        sender(Variant::Newreno, Profile::Rfc, window(2)),
        "0.000 > 1 2 (cwnd 2 slow start)
         0.100 < ack 2
         0.100 > 3 4 (cwnd 3 slow start)
         0.100 < ack 3
         0.100 > 5 6 (cwnd 4 slow start)
         0.200 < ack 5
         0.200 > 7 8 9 (cwnd 5 slow start)",
    );
}

#[test]
fn rfc3042_and_rfc5681_limited_transmit_then_fast_retransmit() {
    // Segment 1 of 8 is lost. Two limited transmissions, then fast retransmit: ssthresh = 8 / 2, cwnd = 4 + 3.
    check(
        sender(Variant::Reno, Profile::Rfc, window(8)),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
         0.100 < ack 1
         0.100 > 9 (cwnd 9 slow start)
         0.101 < ack 1
         0.101 > 10 (cwnd 10 slow start)
         0.102 < ack 1
         0.102 > R1 (cwnd 7 recovery)
         0.103 < ack 1
         0.104 < ack 1
         0.105 < ack 1
         0.106 < ack 1
         0.106 > 11 (cwnd 11 recovery)
         0.200 < ack 9
         0.200 > 12 (cwnd 4 avoidance)",
    );
}

#[test]
fn rfc6582_partial_acks_retransmit_one_loss_per_round_trip() {
    // 1, 3 and 5 of 8 are lost: three retransmissions, three round trips, one window decrease.
    check(
        sender(
            Variant::Newreno,
            Profile::Rfc,
            StackOverrides {
                limited_transmit: Some(false),
                ..window(8)
            },
        ),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
         0.100 < ack 1
         0.101 < ack 1
         0.102 < ack 1
         0.102 > R1 (cwnd 7 recovery)
         0.103 < ack 1
         0.104 < ack 1
         0.104 > 9 (cwnd 9 recovery)
         0.200 < ack 3
         0.200 > R3 10 (cwnd 8 recovery)
         0.201 < ack 3
         0.201 > 11 (cwnd 9 recovery)
         0.300 < ack 5
         0.300 > R5 12 (cwnd 8 recovery)
         0.400 < ack 9
         0.401 < ack 10
         0.401 > 13 (cwnd 4 avoidance)",
    );
}

#[test]
fn rfc6582_full_ack_leaves_no_burst() {
    // At the full ACK nothing but one segment is outstanding: cwnd = min(ssthresh, flight + 1).
    check(
        sender(
            Variant::Newreno,
            Profile::Rfc,
            StackOverrides {
                limited_transmit: Some(false),
                ..window(20)
            },
        ),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 (cwnd 20 slow start)
         0.100 < ack 1
         0.101 < ack 1
         0.102 < ack 1
         0.102 > R1 (cwnd 13 recovery)
         0.200 < ack 21
         0.200 > 21 22 (cwnd 2 slow start)",
    );
}

#[test]
fn rfc6675_three_sacked_segments_above_a_hole_make_it_lost() {
    // 1 and 5 of 10 are lost. pipe after the third SACK: 12 out - 3 sacked - 1 lost = 8; cwnd falls to 5. Segment 5
    // is lost from 0.105 on, but the pipe leaves no room before 0.106.
    check(
        sender(Variant::Sack, Profile::Rfc, window(10)),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.100 < ack 1 sack 2-2
         0.100 > 11 (cwnd 10 slow start)
         0.101 < ack 1 sack 2-3
         0.101 > 12 (cwnd 10 slow start)
         0.102 < ack 1 sack 2-4
         0.102 > R1 (cwnd 5 recovery)
         0.103 < ack 1 sack 6-6,2-4
         0.104 < ack 1 sack 6-7,2-4
         0.105 < ack 1 sack 6-8,2-4
         0.106 < ack 1 sack 6-9,2-4
         0.106 > R5 (cwnd 5 recovery)
         0.200 < ack 5 sack 6-12
         0.200 > 13 14 15 16 (cwnd 5 recovery)
         0.204 < ack 13
         0.204 > 17 (cwnd 5 avoidance)",
    );
}

#[test]
fn rfc6675_nextseg_rules_3_and_4_retransmit_a_short_tail() {
    // Ten segments are all there is; 1, 8 and 10 are lost, so 8 and 10 never get three SACKs above them. First the
    // rescue of the last segment (4), then, with 9 sacked above it, the hole at 8 (3).
    check(
        finite(sender(Variant::Sack, Profile::Rfc, window(10)), 10),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.100 < ack 1 sack 2-2
         0.101 < ack 1 sack 2-3
         0.102 < ack 1 sack 2-4
         0.102 > R1 (cwnd 5 recovery)
         0.103 < ack 1 sack 2-5
         0.104 < ack 1 sack 2-6
         0.105 < ack 1 sack 2-7
         0.105 > R10 (cwnd 5 recovery)
         0.106 < ack 1 sack 9-9,2-7
         0.106 > R8 (cwnd 5 recovery)
         0.202 < ack 8 sack 9-9
         0.205 < ack 8 sack 9-10
         0.206 < ack 11",
    );
}

#[test]
fn rfc6298_timeout_backs_off_and_karn_waits_for_a_fresh_sample() {
    // RTO 1 s before any sample, then 2 s, 4 s; the ACK of the retransmission gives no sample, so the backoff stays at 8 s.
    check(
        sender(Variant::Newreno, Profile::Rfc, window(2)),
        "0.000 > 1 2 (cwnd 2 slow start)
         1.000 > R1 (cwnd 1 loss)
         3.000 > R1 (cwnd 1 loss)
         7.000 > R1 (cwnd 1 loss)
         7.100 < ack 2
         7.100 > R2 3 (cwnd 2 loss)
         15.000 end
         15.100 > R2 (cwnd 1 loss)
         15.200 end",
    );
}

#[test]
fn after_a_timeout_slow_start_retransmits_up_to_half_the_flight() {
    // Eight outstanding: ssthresh 4.
    check(
        sender(Variant::Newreno, Profile::Rfc, window(8)),
        "0.000 > 1 2 3 4 5 6 7 8 (cwnd 8 slow start)
         1.000 > R1 (cwnd 1 loss)
         1.100 < ack 2
         1.100 > R2 R3 (cwnd 2 loss)
         1.200 < ack 3
         1.200 > R4 R5 (cwnd 3 loss)
         1.210 < ack 4
         1.210 > R6 R7 (cwnd 4 loss)
         1.300 < ack 9
         1.300 > 9 10 11 12 13 (cwnd 5 avoidance)",
    );
}

#[test]
fn a_closed_window_is_probed_at_doubling_intervals_until_it_opens() {
    check(
        sender(Variant::Sack, Profile::Rfc, window(2)),
        "0.000 > 1 2 (cwnd 2 slow start)
         0.100 < ack 3 wnd 0
         1.100 > P2 (cwnd 3 limited)
         1.200 < ack 3 wnd 0
         3.200 > P2 (cwnd 3 limited)
         3.300 < ack 3 wnd 2
         3.300 > 3 4 (cwnd 2 slow start)",
    );
}

#[test]
fn nothing_leaves_beyond_the_receivers_window() {
    check(
        sender(Variant::Sack, Profile::Rfc, window(4)),
        "0.000 > 1 2 3 4 (cwnd 4 slow start)
         0.100 < ack 3 wnd 3
         0.100 > 5 (cwnd 5 limited)
         0.200 < ack 5 wnd 2
         0.200 > 6 (cwnd 6 limited)",
    );
}

#[test]
fn rfc9937_prr_sends_seven_for_ten_delivered_and_ends_at_ssthresh() {
    // CUBIC: ssthresh = 0.7 of the 10 in flight, the two limited transmissions left out.
    check(
        sender(
            Variant::Cubic,
            Profile::Rfc,
            StackOverrides {
                recovery: Some(crate::config::RecoveryKind::Prr),
                ..window(10)
            },
        ),
        "0.000 > 1 2 3 4 5 6 7 8 9 10 (cwnd 10 slow start)
         0.100 < ack 1 sack 2-2
         0.100 > 11 (cwnd 10 slow start)
         0.101 < ack 1 sack 2-3
         0.101 > 12 (cwnd 10 slow start)
         0.102 < ack 1 sack 2-4
         0.102 > R1 (cwnd 9 recovery)
         0.103 < ack 1 sack 2-5
         0.103 > 13 (cwnd 9 recovery)
         0.104 < ack 1 sack 2-6
         0.104 > 14 (cwnd 9 recovery)
         0.105 < ack 1 sack 2-7
         0.106 < ack 1 sack 2-8
         0.107 < ack 1 sack 2-9
         0.107 > 15 (cwnd 7 recovery)
         0.108 < ack 1 sack 2-10
         0.108 > 16 (cwnd 7 recovery)
         0.200 < ack 1 sack 2-11
         0.200 > 17 (cwnd 7 recovery)
         0.201 < ack 1 sack 2-12
         0.201 > 18 (cwnd 7 recovery)
         0.202 < ack 13
         0.202 > 19 (cwnd 7 avoidance)",
    );
}
