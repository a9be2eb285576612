//! The estimated congestion window, compared with senders whose window is known.

mod support;

use std::collections::VecDeque;
use std::fmt::Write;

use hindflight_decoder::{Segment, flags};
use hindflight_flows::{EventKind, Phase, Sample};
use support::{HANDSHAKE, Outcome, blank, track};

const MSS: u32 = 1000;
const RTT_NS: i64 = 100_000_000;
const WSCALE: u8 = 4;
const RESPONSE_NS: i64 = 20_000;

/// What limits the sender.
#[derive(Clone, Copy)]
enum Pace {
    /// The window.
    Window,
    /// One segment per this time.
    Interval(i64),
}

/// A sender in front of a bottleneck of one segment per `service_ns`. Its window doubles per RTT up to `ssthresh`
/// segments and then grows by one.
struct Link {
    service_ns: i64,
    ssthresh: f64,
    wnd_segments: u32,
    pace: Pace,
}

/// A transfer: its segments, and times and values of the window.
struct Transfer {
    segments: Vec<Segment>,
    truth: Vec<(i64, i64)>,
    wnd_segments: u32,
    sent: u32,
    acknowledged: u32,
}

impl Transfer {
    fn push(&mut self, t_ns: i64, from_a: bool, seq: u32, ack: u32, flag: u16, payload: u32) {
        let mut segment = blank(self.segments.len() as u64 + 1, t_ns, from_a, 5000);
        (
            segment.seq,
            segment.ack,
            segment.flags,
            segment.payload_bytes,
        ) = (seq, ack, flag, payload);
        segment.window = ((self.wnd_segments * MSS) >> WSCALE) as u16;
        if flag & flags::SYN != 0 {
            // RFC 7323 §2.2
            segment.window = (self.wnd_segments * MSS).min(65_535) as u16;
            segment.options.wscale = Some(WSCALE);
            segment.options.mss = Some(MSS as u16);
        }
        self.segments.push(segment);
    }

    fn data(&mut self, t_ns: i64) {
        self.push(t_ns, true, 1 + self.sent * MSS, 1, flags::ACK, MSS);
        self.sent += 1;
    }
}

impl Link {
    fn run(&self, duration_ns: i64) -> Transfer {
        let mut transfer = Transfer {
            segments: Vec::new(),
            truth: Vec::new(),
            wnd_segments: self.wnd_segments,
            sent: 0,
            acknowledged: 0,
        };
        transfer.push(0, true, 0, 0, flags::SYN, 0);
        transfer.push(RTT_NS, false, 0, 1, flags::SYN | flags::ACK, 0);
        transfer.push(RTT_NS + RESPONSE_NS, true, 1, 1, flags::ACK, 0);
        let (mut cwnd, mut acks, mut free_ns) = (10.0_f64, VecDeque::new(), 0);
        let (mut now, mut next_ns) = (RTT_NS + 2 * RESPONSE_NS, RTT_NS + 2 * RESPONSE_NS);
        while now < duration_ns {
            let window = (cwnd as u32).min(self.wnd_segments);
            let outstanding = transfer.sent - transfer.acknowledged;
            let paced = matches!(self.pace, Pace::Interval(_));
            if outstanding < window && (!paced || now >= next_ns) {
                transfer.data(now);
                free_ns = now.max(free_ns) + self.service_ns;
                acks.push_back(free_ns + RTT_NS);
                if let Pace::Interval(interval) = self.pace {
                    next_ns = now + interval;
                }
                now += 1000;
                continue;
            }
            transfer.truth.push((now, i64::from(cwnd as u32 * MSS)));
            let ack_ns = acks.front().copied().unwrap_or(i64::MAX);
            if paced && outstanding < window && next_ns < ack_ns {
                now = next_ns;
                continue;
            }
            acks.pop_front();
            transfer.acknowledged += 1;
            let ack = 1 + transfer.acknowledged * MSS;
            transfer.push(ack_ns, false, 1, ack, flags::ACK, 0);
            cwnd += if cwnd < self.ssthresh {
                1.0
            } else {
                1.0 / cwnd
            };
            now = ack_ns + RESPONSE_NS;
        }
        transfer
    }
}

/// The last row up to `t_ns`.
fn row_at(samples: &[Sample], t_ns: i64) -> Option<&Sample> {
    samples[..samples.partition_point(|sample| sample.t_ns <= t_ns)].last()
}

/// Relative errors of the estimates, one per RTT, and the share of RTTs with an estimate.
fn errors(outcome: &Outcome, truth: &[(i64, i64)]) -> (Vec<f64>, f64) {
    let mut errors = Vec::new();
    let (mut rtts, mut t_ns) = (0, 3 * RTT_NS);
    let end_ns = truth.last().map_or(0, |last| last.0);
    while t_ns < end_ns {
        let known = truth[truth.partition_point(|point| point.0 <= t_ns) - 1].1;
        rtts += 1;
        if let Some(cwnd) = row_at(&outcome.samples, t_ns).and_then(|sample| sample.cwnd_bytes) {
            errors.push((cwnd - known).abs() as f64 / known as f64);
        }
        t_ns += RTT_NS;
    }
    let covered = errors.len() as f64 / f64::from(rtts);
    (errors, covered)
}

#[test]
fn the_window_of_a_window_limited_sender_is_exact() {
    let link = Link {
        service_ns: 1_000_000,
        ssthresh: 40.0,
        wnd_segments: 500,
        pace: Pace::Window,
    };
    let transfer = link.run(4_000_000_000);
    let outcome = track(&transfer.segments);
    let (errors, covered) = errors(&outcome, &transfer.truth);
    assert!(
        errors.len() > 30 && covered > 0.99,
        "{} values, {covered}",
        errors.len()
    );
    let exact = errors.iter().filter(|&&error| error == 0.0).count();
    assert!(
        exact * 10 >= errors.len() * 9,
        "{exact} of {}",
        errors.len()
    );
    assert!(errors.iter().all(|&error| error < 0.03), "{errors:?}");
    let phase = |t_ns| row_at(&outcome.samples, t_ns).map(|sample| sample.phase);
    assert_eq!(phase(250_000_000), Some(Phase::SlowStart));
    assert_eq!(phase(3_000_000_000), Some(Phase::CongestionAvoidance));
    let last = outcome.samples.last().expect("rows");
    assert_eq!(
        (last.smss_bytes, last.min_rtt_ns, last.ssthresh_bytes),
        (1000, Some(RTT_NS), None)
    );
    assert!(
        outcome
            .samples
            .windows(2)
            .all(|pair| pair[0].t_ns <= pair[1].t_ns)
    );
    let per_rtt = outcome.samples.len() as f64 / errors.len() as f64;
    assert!((5.0..=40.0).contains(&per_rtt), "{per_rtt} rows per RTT");
}

#[test]
fn a_paced_sender_has_no_estimate() {
    let link = Link {
        service_ns: 1_000_000,
        ssthresh: 64.0,
        wnd_segments: 500,
        pace: Pace::Interval(4_700_000),
    };
    let transfer = link.run(4_000_000_000);
    let outcome = track(&transfer.segments);
    let (_, covered) = errors(&outcome, &transfer.truth);
    assert!(covered < 0.15, "{covered}");
    let last = outcome.samples.last().expect("rows");
    assert_eq!(
        (last.phase, last.cwnd_bytes, last.app_limited),
        (Phase::Limited, None, None)
    );
}

#[test]
fn a_sender_limited_by_the_receive_window_has_no_estimate() {
    let link = Link {
        service_ns: 1_000_000,
        ssthresh: 1000.0,
        wnd_segments: 30,
        pace: Pace::Window,
    };
    let outcome = track(&link.run(2_000_000_000).segments);
    let last = outcome.samples.last().expect("rows");
    assert_eq!(
        (last.phase, last.cwnd_bytes, last.app_limited),
        (Phase::Limited, None, Some(false))
    );
    assert_eq!(
        outcome
            .samples
            .iter()
            .map(|sample| sample.flight_bytes)
            .max(),
        Some(30_000)
    );
    let changes: Vec<String> = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::PhaseChange)
        .filter_map(|event| event.evidence.map(|evidence| evidence.to_string()))
        .collect();
    assert_eq!(changes, ["unknown to slow_start", "slow_start to limited"]);
}

#[test]
fn estimates_require_a_capture_point_at_the_data_sender_where_nothing_is_lost() {
    let link = Link {
        service_ns: 1_000_000,
        ssthresh: 40.0,
        wnd_segments: 500,
        pace: Pace::Window,
    };
    let mut segments = link.run(2_000_000_000).segments;
    assert!(!track(&segments).samples.is_empty());
    // The same transfer captured at the receiver: data pass half an RTT later, ACKs half an RTT earlier.
    for segment in &mut segments {
        let shift = if segment.src_port == 5000 {
            RTT_NS / 2
        } else {
            -RTT_NS / 2 + 3 * RESPONSE_NS
        };
        segment.t_ns += shift;
    }
    segments.sort_by_key(|segment| segment.t_ns);
    for (number, segment) in (1..).zip(&mut segments) {
        segment.record = number;
    }
    // Without timestamps, only recoveries show the window, and there are none.
    let samples = track(&segments).samples;
    assert!(samples.iter().all(|row| row.cwnd_bytes.is_none()));
}

#[test]
fn in_recovery_the_window_is_the_pipe_and_afterwards_ssthresh() {
    // The window is 20, and segment 21 is lost. The sender sends a segment for every second SACK (RFC 6937).
    let mut ladder = String::from(
        "0 a>b S 0 mss 1000 sackok\n100 b>a SA 0 ack 1 mss 1000 sackok\n100.01 a>b A 1 ack 1\n",
    );
    let data = |ladder: &mut String, t: f64, number: u32| {
        let _ = writeln!(
            ladder,
            "{t} a>b A {}:{} ack 1",
            number * 1000 + 1,
            number * 1000 + 1001
        );
    };
    for number in 0..20 {
        data(&mut ladder, 100.02 + f64::from(number) * 0.001, number);
    }
    for number in 0..20 {
        let t = 201.0 + f64::from(number);
        let _ = writeln!(ladder, "{t} b>a A 1 ack {}", number * 1000 + 1001);
        data(&mut ladder, t + 0.02, number + 20);
    }
    let mut next = 40;
    for number in 1..20 {
        let t = 302.0 + f64::from(number);
        let _ = writeln!(
            ladder,
            "{t} b>a A 1 ack 20001 sack 21001-{}",
            21_001 + number * 1000
        );
        if number == 3 {
            data(&mut ladder, t + 0.02, 20);
        } else if number > 3 && number % 2 == 1 {
            data(&mut ladder, t + 0.02, next);
            next += 1;
        }
    }
    ladder +=
        "405 b>a A 1 ack 40001\n405.02 a>b A 48001:49001 ack 1\n405.03 a>b A 49001:50001 ack 1\n";
    ladder += "406 b>a A 1 ack 41001\n406.02 a>b A 50001:51001 ack 1\n410 b>a A 1 ack 42001\n410.01 a>b A 51001:52001 ack 1\n";
    let outcome = support::run(&ladder);
    assert!(
        outcome.event_log().contains("305.02-405 recovery fast"),
        "{}",
        outcome.event_log()
    );
    let row = |t_ms: f64| *row_at(&outcome.samples, (t_ms * 1e6) as i64).expect("a row");
    assert_eq!(
        (row(302.0).phase, row(302.0).cwnd_bytes),
        (Phase::SlowStart, Some(20_000))
    );
    let during = row(321.9);
    assert_eq!(
        (during.phase, during.ssthresh_bytes),
        (Phase::Recovery, None)
    );
    assert_eq!(
        during.cwnd_bytes,
        Some(9_000),
        "eight new segments and the retransmission"
    );
    let after = row(409.0);
    assert_eq!(
        (after.phase, after.cwnd_bytes, after.ssthresh_bytes),
        (Phase::CongestionAvoidance, Some(10_000), Some(10_000))
    );
}

impl Transfer {
    /// The same transfer with timestamps, captured at the receiver: its segments, and the times when the data arrived
    /// and were sent.
    fn at_receiver(&self) -> (Vec<Segment>, Vec<(i64, i64)>) {
        let ms = |t_ns: i64| (t_ns / 1_000_000) as u32;
        let (handshake, rest) = self.segments.split_at(3);
        let (data, acks): (Vec<&Segment>, Vec<&Segment>) = rest
            .iter()
            .partition(|segment| segment.src == handshake[0].src);
        let mut segments = Vec::new();
        for (segment, t_ns) in handshake
            .iter()
            .zip([RTT_NS / 2, RTT_NS / 2, 3 * RTT_NS / 2])
        {
            segments.push(Segment { t_ns, ..*segment });
            segments.last_mut().expect("just added").options.timestamps = Some((ms(t_ns), 0));
        }
        let mut arrivals = Vec::new();
        for (sent, ack) in data.iter().zip(&acks) {
            let arrived_ns = ack.t_ns - RTT_NS / 2;
            let echoed = acks
                .iter()
                .take_while(|ack| ack.t_ns <= sent.t_ns)
                .last()
                .map_or(0, |ack| ms(ack.t_ns - RTT_NS / 2));
            let (mut arrival, mut answer) = (**sent, **ack);
            (arrival.t_ns, answer.t_ns) = (arrived_ns, arrived_ns + 1000);
            arrival.options.timestamps = Some((ms(sent.t_ns), echoed));
            answer.options.timestamps = Some((ms(arrived_ns), ms(sent.t_ns)));
            segments.extend([arrival, answer]);
            arrivals.push((arrived_ns, sent.t_ns));
        }
        for (record, segment) in (1..).zip(&mut segments) {
            segment.record = record;
        }
        (segments, arrivals)
    }
}

#[test]
fn timestamps_show_the_window_at_the_receiver() {
    let link = Link {
        service_ns: 2_000_000,
        ssthresh: 40.0,
        wnd_segments: 500,
        pace: Pace::Window,
    };
    let transfer = link.run(4_000_000_000);
    let (segments, arrivals) = transfer.at_receiver();
    let outcome = track(&segments);
    let (mut compared, mut within) = (0, 0);
    for &(arrived_ns, sent_ns) in arrivals.iter().skip(20).step_by(10) {
        let truth = &transfer.truth;
        let known = truth[truth.partition_point(|point| point.0 <= sent_ns) - 1].1;
        let row = row_at(&outcome.samples, arrived_ns).expect("a row");
        let limits = row.cwnd_low_bytes.zip(row.cwnd_high_bytes);
        compared += 1;
        within += u32::from(limits.is_some_and(|(low, high)| (low..=high).contains(&known)));
        let cwnd = row.cwnd_bytes.expect("an estimate");
        assert!((cwnd - known).abs() <= known / 10, "{cwnd}, {known}");
    }
    assert!(
        compared > 50 && within * 20 >= compared * 19,
        "{within} of {compared}"
    );
}

/// A transfer captured at the receiver that is silent for ten round trips in the middle: its segments, the start and
/// the length of the silence.
fn with_silence() -> (Vec<Segment>, i64, i64) {
    let link = Link {
        service_ns: 2_000_000,
        ssthresh: 40.0,
        wnd_segments: 500,
        pace: Pace::Window,
    };
    let (mut segments, _) = link.run(4_000_000_000).at_receiver();
    let (last_ns, silence_ns) = (segments[segments.len() / 2].t_ns, 10 * RTT_NS);
    for segment in segments.iter_mut().filter(|segment| segment.t_ns > last_ns) {
        segment.t_ns += silence_ns;
    }
    (segments, last_ns, silence_ns)
}

/// Whether the window is known at `t_ns`.
fn is_known(samples: &[Sample], t_ns: i64) -> bool {
    row_at(samples, t_ns).expect("a row").cwnd_bytes.is_some()
}

#[test]
fn in_a_silence_the_window_at_the_receiver_is_unknown() {
    let (segments, last_ns, silence_ns) = with_silence();
    let samples = track(&segments).samples;
    assert!(is_known(&samples, last_ns) && is_known(&samples, last_ns + RTT_NS));
    let middle_ns = last_ns + silence_ns / 2;
    assert!(!is_known(&samples, middle_ns), "a timer has expired");
    assert!(is_known(&samples, last_ns + silence_ns + RTT_NS));
}

#[test]
fn a_sender_that_sent_nothing_was_idle_and_not_silent() {
    let after_missing = |missing: u16| {
        let (mut segments, last_ns, silence_ns) = with_silence();
        let data = segments
            .iter_mut()
            .filter(|segment| segment.payload_bytes > 0);
        for (id, segment) in (0_u16..).zip(data) {
            let late = segment.t_ns > last_ns;
            segment.ip_id = Some(id + if late { missing } else { 0 });
        }
        is_known(&track(&segments).samples, last_ns + silence_ns / 2)
    };
    assert!(after_missing(0));
    assert!(!after_missing(1), "a timer has expired");
}

#[test]
fn in_a_silence_that_ends_with_a_timeout_the_window_is_one_segment() {
    let (mut segments, last_ns, silence_ns) = with_silence();
    for (id, segment) in (1_u16..).zip(
        segments
            .iter_mut()
            .filter(|segment| segment.payload_bytes > 0),
    ) {
        segment.ip_id = Some(id + if segment.t_ns > last_ns { 4 } else { 0 });
    }
    let last = segments
        .iter()
        .rfind(|segment| segment.t_ns <= last_ns && segment.payload_bytes > 0);
    let mut repeated = *last.expect("data");
    let after = segments.partition_point(|segment| segment.t_ns <= last_ns);
    for segment in &mut segments[after..] {
        segment.t_ns += silence_ns;
    }
    repeated.t_ns = last_ns + 2 * silence_ns;
    // One before it is missing.
    repeated.ip_id = repeated.ip_id.map(|id| id + 2);
    segments.insert(after, repeated);
    for (record, segment) in (1..).zip(&mut segments) {
        segment.record = record;
    }
    let samples = track(&segments).samples;
    assert!(!is_known(&samples, last_ns + 3 * RTT_NS), "too soon");
    let row = row_at(&samples, last_ns + silence_ns).expect("a row");
    assert_eq!(row.cwnd_bytes, Some(row.smss_bytes));
    assert_eq!(row.phase, Phase::Loss);
}

#[test]
fn in_a_silence_at_the_end_the_window_is_unknown() {
    let (mut segments, last_ns, silence_ns) = with_silence();
    segments.retain(|segment| segment.t_ns <= last_ns);
    let ended = |lost: usize| {
        let mut segments = segments.clone();
        // One of the last data segments was lost, and the receiver repeats its ACK at the end.
        let data: Vec<usize> = (0..segments.len())
            .filter(|&index| segments[index].payload_bytes > 0)
            .collect();
        let hole = segments[data[data.len() - 3]].seq;
        for segment in segments.iter_mut().skip(data[data.len() - 3]) {
            if lost > 0 && segment.payload_bytes == 0 {
                segment.ack = hole;
            }
        }
        if lost > 0 {
            segments.remove(data[data.len() - 3]);
        }
        let mut last = *segments.last().expect("segments");
        last.t_ns += silence_ns;
        segments.push(last);
        for (record, segment) in (1..).zip(&mut segments) {
            segment.record = record;
        }
        is_known(&track(&segments).samples, last_ns + silence_ns)
    };
    assert!(!ended(0), "what was sent then may have been lost");
    assert!(!ended(1), "a timer has expired");
}

#[test]
fn the_mean_pipe_counts_lost_and_retransmitted_octets() {
    let outcome = support::run(&format!(
        "{HANDSHAKE}
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1
         110.02 a>b A 2001:3001 ack 1
         110.03 a>b A 3001:4001 ack 1
         210.01 b>a A 1 ack 1 sack 1001-2001
         210.02 b>a A 1 ack 1 sack 1001-3001
         210.03 b>a A 1 ack 1 sack 1001-4001
         210.04 a>b A 1:1001    ack 1
         310.04 b>a A 1 ack 4001
         410.00 a>b A 4001:5001 ack 1
         510.00 b>a A 1 ack 5001"
    ));
    let pipe =
        |t_ms: i64| row_at(&outcome.samples, t_ms * 1_000_000).and_then(|row| row.pipe_bytes);
    assert_eq!(pipe(150), Some(4000));
    assert_eq!(pipe(250), Some(1000), "the retransmission only");
}

#[test]
fn the_interval_is_exact_to_the_segment_outside_recovery() {
    let link = Link {
        service_ns: 2_000_000,
        ssthresh: 10.0,
        wnd_segments: 500,
        pace: Pace::Window,
    };
    let transfer = link.run(4_000_000_000);
    let samples = track(&transfer.segments).samples;
    let (mut compared, mut within) = (0, 0);
    for &(t_ns, known) in transfer.truth.iter().skip(20).step_by(10) {
        let Some(row) = row_at(&samples, t_ns).filter(|row| row.phase != Phase::Recovery) else {
            continue;
        };
        let (low, high) = row.cwnd_low_bytes.zip(row.cwnd_high_bytes).expect("limits");
        assert!((high - low) * 100 <= known * 4, "{low} to {high}: {known}");
        compared += 1;
        let whole = known / row.smss_bytes * row.smss_bytes;
        within += u32::from((low..=high).contains(&whole));
    }
    assert!(
        compared > 50 && within * 20 >= compared * 19,
        "{within} of {compared}"
    );
}

#[test]
fn what_was_retransmitted_before_a_timeout_is_no_longer_in_the_network() {
    let outcome = support::run(&format!(
        "{HANDSHAKE}
         110.00 a>b A 1:1001    ack 1           # lost
         110.01 a>b A 1001:2001 ack 1           # lost
         110.02 a>b A 2001:3001 ack 1
         110.03 a>b A 3001:4001 ack 1
         110.04 a>b A 4001:5001 ack 1
         210.02 b>a A 1 ack 1 sack 2001-3001
         210.03 b>a A 1 ack 1 sack 2001-4001
         210.04 b>a A 1 ack 1 sack 2001-5001
         210.05 a>b A 1:1001    ack 1           # lost
         210.06 a>b A 1001:2001 ack 1           # lost
         620.00 a>b A 1:1001    ack 1           # timer
         720.00 b>a A 1 ack 1001 sack 2001-5001
         720.01 a>b A 1001:2001 ack 1
         820.01 b>a A 1 ack 5001
         920.00 a>b A 5001:6001 ack 1
        1020.00 b>a A 1 ack 6001"
    ));
    let pipe = |t_ms: i64| {
        let row = row_at(&outcome.samples, t_ms * 1_000_000).expect("a row");
        // A mean, rounded down.
        (row.pipe_bytes.expect("a mean") + 500) / 1000
    };
    assert_eq!(pipe(300), 2);
    assert_eq!(pipe(650), 1, "one segment (RFC 5681 §3.1)");
    assert_eq!(pipe(760), 1, "the next one");
}
