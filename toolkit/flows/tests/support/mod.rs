//! Packet ladders: segments and events as text.
//!
//! A ladder has one segment per line, with relative sequence numbers (SYN = 0, first octet = 1):
//!
//! ```text
//! time_ms  from>to[:port]  flags  seq[:end]  [ack N] [win N] [sack L-R …] [ts VAL/ECR] [id N] [mss N] [ws N] [sackok]
//!    0.0   a>b             S      0          mss 1000 ws 0 sackok
//!  100.0   b>a             SA     0          ack 1
//!  100.1   a>b             PA     1:1001     ack 1
//! ```
//!
//! Lines are numbered from 1; the number is the record. `#` starts a comment.

#![allow(dead_code, reason = "not all test files use all functions")]

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use hindflight_decoder::{Checksum, SackBlocks, Segment, TcpOptions, flags};
use hindflight_flows::{Event, EventKind, FlowRow, Note, Sample, Tracker};

/// Initial sequence numbers of both ends.
pub const ISN: [u32; 2] = [1_000, 2_000_000];

/// A handshake with SACK and timestamps, captured at `a`: the round trip takes 100 ms.
pub const HANDSHAKE: &str = "
      0.00 a>b S  0 mss 1000 ws 0 sackok ts 1/0
    100.00 b>a SA 0 ack 1 mss 1000 ws 0 sackok ts 501/1
    100.01 a>b A  1 ack 1 ts 101/501
";

/// The same without SACK and timestamps.
pub const HANDSHAKE_WITHOUT_SACK: &str = "
      0.00 a>b S  0 mss 1000
    100.00 b>a SA 0 ack 1 mss 1000
    100.01 a>b A  1 ack 1
";

/// A ladder after [`HANDSHAKE`].
pub fn after_handshake(ladder: &str) -> String {
    format!("{HANDSHAKE}{ladder}")
}

/// The output of the tracker.
pub struct Outcome {
    pub notes: Vec<Note>,
    pub events: Vec<Event>,
    pub samples: Vec<Sample>,
    pub flows: Vec<FlowRow>,
}

/// Passes a ladder through the tracker.
pub fn run(ladder: &str) -> Outcome {
    track(&segments(ladder, ISN))
}

/// Passes segments through the tracker.
pub fn track(segments: &[Segment]) -> Outcome {
    track_with(Tracker::new(1), segments)
}

/// Passes segments through this tracker.
pub fn track_with(mut tracker: Tracker, segments: &[Segment]) -> Outcome {
    let notes = segments
        .iter()
        .map(|segment| tracker.push(segment))
        .collect();
    tracker.finish();
    Outcome {
        notes,
        events: tracker.take_events(),
        samples: tracker.take_samples(),
        flows: tracker.take_finished_flows(),
    }
}

/// Parses a ladder, with the given initial sequence numbers.
pub fn segments(ladder: &str, isn: [u32; 2]) -> Vec<Segment> {
    let lines = ladder
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim());
    (1..)
        .zip(lines.filter(|line| !line.is_empty()))
        .map(|(record, line)| parse(record, line, isn))
        .collect()
}

fn number<T: std::str::FromStr>(word: Option<&str>, line: &str) -> T {
    word.and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("number expected in: {line}"))
}

fn pair(word: &str, by: char, line: &str) -> (i64, i64) {
    let (left, right) = word
        .split_once(by)
        .unwrap_or_else(|| panic!("pair expected in: {line}"));
    (number(Some(left), line), number(Some(right), line))
}

fn parse(record: u64, line: &str, isn: [u32; 2]) -> Segment {
    let mut words = line.split_whitespace().peekable();
    let t_ms: f64 = number(words.next(), line);
    let (ends, port) = words.next().map_or(("", ""), |word| {
        word.split_once(':').unwrap_or((word, "5000"))
    });
    let sender = usize::from(ends == "b>a");
    let mut segment = blank(
        record,
        (t_ms * 1e6).round() as i64,
        sender == 0,
        number(Some(port), line),
    );
    for letter in words.next().unwrap_or("").chars() {
        segment.flags |= match letter {
            'S' => flags::SYN,
            'F' => flags::FIN,
            'R' => flags::RST,
            'P' => flags::PSH,
            'A' => flags::ACK,
            '.' => 0,
            other => panic!("flag {other} in: {line}"),
        };
    }
    let range = words.next().unwrap_or("");
    let (start, end) = if range.contains(':') {
        pair(range, ':', line)
    } else {
        (number(Some(range), line), 0)
    };
    segment.seq = isn[sender].wrapping_add(start as u32);
    segment.payload_bytes = (end - start).max(0) as u32;
    segment.ip_bytes = segment.payload_bytes + 40;
    while let Some(word) = words.next() {
        match word {
            "ack" => {
                segment.flags |= flags::ACK;
                segment.ack =
                    isn[1 - sender].wrapping_add(number::<i64>(words.next(), line) as u32);
            }
            "win" => segment.window = number(words.next(), line),
            "ts" => {
                let (val, ecr) = pair(words.next().unwrap_or(""), '/', line);
                segment.options.timestamps = Some((val as u32, ecr as u32));
            }
            "id" => segment.ip_id = Some(number(words.next(), line)),
            "mss" => segment.options.mss = Some(number(words.next(), line)),
            "ws" => segment.options.wscale = Some(number(words.next(), line)),
            "sackok" => segment.options.sack_permitted = true,
            "sack" => {
                let mut blocks = SackBlocks::default();
                while let Some(block) = words.next_if(|word| word.contains('-')) {
                    let (left, right) = pair(block, '-', line);
                    let raw = |edge: i64| isn[1 - sender].wrapping_add(edge as u32);
                    assert!(
                        blocks.push(raw(left), raw(right)),
                        "too many blocks in: {line}"
                    );
                }
                segment.options.sack = blocks;
            }
            other => panic!("unknown word {other} in: {line}"),
        }
    }
    segment
}

/// A segment without flags, payload or options.
pub fn blank(record: u64, t_ns: i64, from_a: bool, port: u16) -> Segment {
    let a = (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), port);
    let b = (IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 80);
    let (src, dst) = if from_a { (a, b) } else { (b, a) };
    Segment {
        record,
        t_ns,
        frame_bytes: 54,
        captured_bytes: 54,
        src: src.0,
        dst: dst.0,
        src_port: src.1,
        dst_port: dst.1,
        ip_id: None,
        ttl: 64,
        dscp_ecn: 0,
        ip_bytes: 40,
        seq: 0,
        ack: 0,
        flags: 0,
        window: 60_000,
        urgent: 0,
        payload_bytes: 0,
        missing_bytes: 0,
        ip_checksum: Checksum::NotChecked,
        tcp_checksum: Checksum::NotChecked,
        options: TcpOptions::default(),
    }
}

impl Outcome {
    /// Events as text in the order of time, `time_ms[-end_ms] kind cause #record start:end`, without changes of phase.
    pub fn event_log(&self) -> String {
        let mut events: Vec<&Event> = self
            .events
            .iter()
            .filter(|event| event.kind != EventKind::PhaseChange)
            .collect();
        events.sort_by_key(|event| (event.t_ns, event.record, event.kind as u8));
        let mut log = String::new();
        for event in events {
            let record = event
                .record
                .map_or("#-".into(), |record| format!("#{record}"));
            let until = event
                .end_ns
                .map_or(String::new(), |end| format!("-{}", ms(end)));
            let range = event
                .seq_start
                .zip(event.seq_end)
                .map_or(String::new(), |(s, e)| format!(" {s}:{e}"));
            let (kind, cause) = (event.kind.name(), event.cause.name());
            writeln!(
                log,
                "{}{until} {kind} {cause} {record}{range}",
                ms(event.t_ns)
            )
            .expect("writing to a String does not fail");
        }
        log
    }

    /// Compares the event log with `expected`, ignoring indentation.
    #[track_caller]
    pub fn assert_events(&self, expected: &str) {
        let lines = |text: &str| {
            text.lines()
                .map(|l| l.trim().to_owned())
                .filter(|l| !l.is_empty())
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(&self.event_log()), lines(expected));
    }

    /// The note of record `number`.
    pub fn note(&self, number: usize) -> &Note {
        &self.notes[number - 1]
    }

    /// The evidence of the event of `kind` for `record`.
    #[track_caller]
    pub fn evidence(&self, kind: EventKind, record: u64) -> String {
        let event = self
            .events
            .iter()
            .find(|event| event.kind == kind && event.record == Some(record));
        event
            .and_then(|event| event.evidence)
            .map(|evidence| evidence.to_string())
            .expect("no such event")
    }
}

fn ms(t_ns: i64) -> String {
    format!("{}", t_ns as f64 / 1e6)
}

/// Sequence number, copy and record of each loss.
pub fn losses(outcome: &Outcome) -> Vec<(Option<i64>, Option<u32>, Option<u64>)> {
    let mut rows: Vec<_> = outcome
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Loss)
        .map(|event| (event.seq_start, event.copy, event.record))
        .collect();
    rows.sort_unstable();
    rows
}

/// Ten segments with increasing IDs, from the handshake at the receiver on.
pub fn ten_segments() -> String {
    let mut ladder = String::from(
        "  0.00 a>b S  0 mss 1000 sackok id 1
           0.05 b>a SA 0 ack 1 mss 1000 sackok
         100.00 a>b A  1 ack 1 id 2
        ",
    );
    for number in 0..10 {
        let (t_ms, start) = (110 + number, 1 + number * 1000);
        let (end, id) = (start + 1000, 3 + number);
        writeln!(ladder, "{t_ms}.0 a>b A {start}:{end} ack 1 id {id}").expect("text");
        writeln!(ladder, "{t_ms}.1 b>a A 1 ack {end}").expect("text");
    }
    ladder
}

/// Twelve segments without SACK with increasing IDs, from the handshake at the receiver on, up to 121 ms. The second
/// one, 1001:2001, was lost, and so were those with the numbers `also`, counted from 0.
pub fn second_of_twelve_lost(also: &[u32]) -> String {
    let mut ladder = String::from(
        "  0.00 a>b S  0 mss 1000 id 1
           0.05 b>a SA 0 ack 1 mss 1000
         100.00 a>b A  1 ack 1 id 2
         110.00 a>b A 1:1001 ack 1 id 3
         110.01 b>a A 1 ack 1001
        ",
    );
    for number in (2..12).filter(|number| !also.contains(number)) {
        let (t_ms, start, id) = (110 + number, 1 + number * 1000, 3 + number);
        let end = start + 1000;
        writeln!(ladder, "{t_ms}.0 a>b A {start}:{end} ack 1 id {id}").expect("text");
        writeln!(ladder, "{t_ms}.1 b>a A 1 ack 1001").expect("text");
    }
    ladder
}
