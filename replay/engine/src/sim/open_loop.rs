//! Open-loop replay of a controller: a sender repeats a recorded flow. Departures, ACKs and timeouts come from the
//! record; the code of a run computes scoreboard, recovery and window from them. If the window then differs from that of
//! the recorded sender, a rule is wrong and not the path.
//!
//! Does not depend on captures or tables. Read `tcp/sender/open_loop.rs` next.

use hindflight_kernels::{Purpose, StreamKey, StreamRng};

use super::time::Nanos;
use crate::config::{Config, ConfigErrorKind, ConfigErrors, KeyPath, StackParams, known_variant};
use crate::tcp::segment::{Direction, Segment, flags};
use crate::tcp::sender::{BoardCounts, Sender};

/// An event of a recorded sender.
#[derive(Clone, Copy, Debug)]
pub enum RecordedEvent {
    /// It sent its SYN.
    Syn,
    /// It sent octets.
    Departure {
        /// Stream offset of the first octet (1: the first of the stream).
        seq: u64,
        /// Their number.
        payload_bytes: u16,
    },
    /// Its application wrote, after it had nothing more to send.
    Write,
    /// Its retransmission timer fired.
    Timeout,
    /// A segment with the SYN flag arrived.
    SynAck(Segment),
    /// An ACK arrived; the timestamp that it echoes is in milliseconds of this sender's clock.
    Ack(Segment),
}

impl RecordedEvent {
    /// An ACK of everything before `ack` with window `wnd_bytes`, echoed timestamp `ts_ecr` and SACK blocks `sack`.
    pub fn ack(ack: u64, wnd_bytes: u32, ts_ecr: u32, sack: &[(u64, u64)]) -> Self {
        Self::Ack(segment(flags::ACK, ack, wnd_bytes, ts_ecr, sack))
    }

    /// A SYN-ACK.
    pub fn syn_ack(wnd_bytes: u32) -> Self {
        Self::SynAck(segment(flags::SYN | flags::ACK, 1, wnd_bytes, 0, &[]))
    }
}

fn segment(flags: u8, ack: u64, wnd_bytes: u32, ts_ecr: u32, sack: &[(u64, u64)]) -> Segment {
    let mut segment = Segment {
        ack,
        wnd_bytes,
        ts_ecr,
        flags,
        ..Segment::new(0, Direction::Reverse)
    };
    let offset = |octet: u64| octet.wrapping_sub(ack) as i32;
    for (slot, &(left, right)) in segment.sack.iter_mut().zip(sack) {
        *slot = (offset(left), offset(right));
        segment.sack_len += 1;
    }
    segment
}

/// State of the replaying sender after an event, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenLoopState {
    /// Congestion window that governs transmission.
    pub cwnd_pkts: f64,
    /// Slow start threshold; none while it is infinite.
    pub ssthresh_pkts: Option<f64>,
    /// Whether it is in fast recovery or in loss recovery after a timeout.
    pub in_recovery: bool,
    /// Its scoreboard.
    pub board: BoardCounts,
}

/// Why a record cannot be replayed.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayMismatch {
    /// The configuration is invalid.
    Config(ConfigErrors),
    /// Event number `index` is earlier than the one before it.
    Backwards {
        /// From 0.
        index: usize,
    },
    /// Event number `index` sends from octet `seq` on, and the octets from `snd_nxt` on have not been sent.
    Gap {
        /// From 0.
        index: usize,
        /// First octet of the event.
        seq: u64,
        /// First octet that has not been sent.
        snd_nxt: u64,
    },
}

impl std::fmt::Display for ReplayMismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Backwards { index } => {
                write!(
                    f,
                    "event {index} of the record comes before the one before it"
                )
            }
            Self::Gap {
                index,
                seq,
                snd_nxt,
            } => write!(
                f,
                "event {index} of the record sends octet {seq}, but nothing sent octet {snd_nxt} before"
            ),
        }
    }
}

impl std::error::Error for ReplayMismatch {}

/// Replays `record`, in ascending order of time, with a sender of flow number `flow` of `config`. Returns its state after
/// each event.
///
/// # Errors
/// [`ReplayMismatch`].
pub fn replay_open_loop(
    config: &Config,
    flow: usize,
    record: &[(Nanos, RecordedEvent)],
) -> Result<Vec<OpenLoopState>, ReplayMismatch> {
    let mut sender = sender(config, flow).map_err(ReplayMismatch::Config)?;
    let mut states = Vec::with_capacity(record.len());
    let mut latest = 0;
    for (index, &(now, event)) in record.iter().enumerate() {
        if now < latest {
            return Err(ReplayMismatch::Backwards { index });
        }
        latest = now;
        match event {
            RecordedEvent::Syn => sender.record_syn(now),
            RecordedEvent::Departure { seq, payload_bytes } => {
                let snd_nxt = sender.snd_nxt();
                if !sender.record_departure(seq, payload_bytes, now) {
                    return Err(ReplayMismatch::Gap {
                        index,
                        seq,
                        snd_nxt,
                    });
                }
            }
            RecordedEvent::Write => sender.record_write(now),
            RecordedEvent::Timeout => sender.record_timeout(now),
            RecordedEvent::SynAck(segment) | RecordedEvent::Ack(segment) => {
                sender.record_ack(&segment, now);
            }
        }
        states.push(state(&sender));
    }
    Ok(states)
}

fn sender(config: &Config, flow: usize) -> Result<Sender, ConfigErrors> {
    config.validate()?;
    let Some(flow) = config.flows.get(flow) else {
        let kind = ConfigErrorKind::UnknownFlow { number: flow };
        return Err(ConfigErrors::one(KeyPath::root("flows"), kind));
    };
    let variant = known_variant("variant", &flow.variant)?;
    let params = variant.fix(
        &StackParams::resolve(flow.profile, &flow.stack),
        &flow.params,
    );
    let draws = StreamRng::new(StreamKey::new(0, 0, Purpose::Controller));
    let controller = variant.controller(&params, &flow.params, draws);
    Ok(Sender::new(0, &params, controller))
}

fn state(sender: &Sender) -> OpenLoopState {
    let (cwnd_pkts, ssthresh) = sender.recorded_window();
    OpenLoopState {
        cwnd_pkts,
        ssthresh_pkts: ssthresh.is_finite().then_some(ssthresh),
        in_recovery: sender.in_loss_recovery(),
        board: sender.board_counts(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::sim::time::MILLISECOND;
    use crate::sim::trace::{Event, Tap};
    use crate::sim::world::World;
    use crate::tcp::sender::SenderSample;

    const SMSS: u64 = 1000;

    fn config(variant: &str, loss: &str) -> Config {
        // Without it, bbr chooses a phase at random.
        let params = match variant {
            "bbr" => r#"{"first_phases": 358}"#,
            _ => "{}",
        };
        let text = format!(
            r#"{{"duration_ns": 20000000000, "path": {{"nodes": ["a", "b"], "links": [{{"name": "l",
            "forward": {{"rate_bps": 8e6, "delay_ns": 25000000, "loss": {loss},
            "queue": {{"kind": "drop_tail", "limit_pkts": 40}}}}, "reverse": {{"delay_ns": 25000000}}}}]}},
            "flows": [{{"name": "f", "variant": "{variant}", "profile": "linux", "params": {params},
            "stack": {{"smss_bytes": 1000}}}}]}}"#
        );
        serde_json::from_str(&text).expect("well-formed")
    }

    fn octet(segment: u64) -> u64 {
        1 + (segment - 1) * SMSS
    }

    fn data(segment: u64) -> RecordedEvent {
        RecordedEvent::Departure {
            seq: octet(segment),
            payload_bytes: SMSS as u16,
        }
    }

    fn ack(segment: u64, sack: &[(u64, u64)]) -> RecordedEvent {
        let blocks: Vec<_> = sack.iter().map(|&(a, b)| (octet(a), octet(b))).collect();
        RecordedEvent::ack(octet(segment), 1 << 20, 0, &blocks)
    }

    /// A connection whose first ten segments left at 1.1 s.
    fn opening() -> Vec<(Nanos, RecordedEvent)> {
        let at = |ms| ms * MILLISECOND;
        let mut record = vec![
            (at(1000), RecordedEvent::Syn),
            (at(1100), RecordedEvent::syn_ack(65535)),
        ];
        record.extend((1..=10).map(|n| (at(1100), data(n))));
        record
    }

    fn replayed(rest: &[(u64, RecordedEvent)]) -> Result<Vec<OpenLoopState>, ReplayMismatch> {
        let mut record = opening();
        record.extend(rest.iter().map(|&(ms, event)| (ms * MILLISECOND, event)));
        replay_open_loop(&config("linux-reno", r#"{"kind": "none"}"#), 0, &record)
    }

    #[test]
    fn the_recorded_acks_increase_the_window_and_the_recorded_losses_decrease_it() {
        let states = replayed(&[
            (1200, ack(5, &[])),
            (1201, data(11)),
            (1301, ack(5, &[(6, 9)])),
            (1301, data(5)),
        ])
        .expect("fits");
        assert_eq!(
            (states[11].cwnd_pkts, states[11].ssthresh_pkts),
            (10.0, None)
        );
        assert_eq!(states[12].cwnd_pkts, 14.0);
        let lost = states[14];
        assert_eq!((lost.ssthresh_pkts, lost.in_recovery), (Some(7.0), true));
        let board = |lost: &OpenLoopState| {
            let b = lost.board;
            (b.outstanding, b.sacked, b.lost, b.retransmitted)
        };
        assert_eq!(board(&lost), (7, 3, 1, 0));
        assert_eq!(board(&states[15]), (7, 3, 1, 1));
    }

    #[test]
    fn the_timer_fires_only_when_the_record_says_so() {
        let idle = replayed(&[(60_000, ack(2, &[]))]).expect("fits");
        assert!(!idle[12].in_recovery);
        let expired = replayed(&[(1400, RecordedEvent::Timeout), (1400, data(1))]).expect("fits");
        assert_eq!(
            (expired[12].cwnd_pkts, expired[12].ssthresh_pkts),
            (1.0, Some(5.0))
        );
        assert!(expired[12].in_recovery);
    }

    #[test]
    fn an_idle_time_halves_the_window_for_each_rto() {
        let cwnd_after_pause_until = |ms| {
            let mut record = vec![(1200, ack(11, &[]))];
            record.extend((11..=30).map(|n| (1200, data(n))));
            record.push((1300, ack(31, &[])));
            record.push((ms, data(31)));
            replayed(&record)
                .expect("fits")
                .last()
                .expect("states")
                .cwnd_pkts
        };
        // The RTO is 300 ms: a round trip of 100 ms and Linux's 200 ms at least.
        assert_eq!(cwnd_after_pause_until(1400), 40.0);
        assert_eq!(cwnd_after_pause_until(1650), 20.0);
        assert_eq!(cwnd_after_pause_until(1950), 10.0);
        assert_eq!(cwnd_after_pause_until(9000), 10.0);
    }

    #[test]
    fn writes_show_that_the_application_limited_the_rate() {
        // 20 segments in a round trip, then one in each: a low rate, unless the application wrote no more.
        let cwnd_after = |writes: bool| {
            let at = |ms| ms * MILLISECOND;
            let mut record = opening();
            record.push((at(1200), ack(11, &[])));
            record.extend((11..=30).map(|n| (at(1200), data(n))));
            record.push((at(1300), ack(31, &[])));
            for n in 31..=60 {
                let ms = 1300 + (n - 31) * 100;
                record.extend(writes.then_some((at(ms), RecordedEvent::Write)));
                record.push((at(ms), data(n)));
                record.push((at(ms + 100), ack(n + 1, &[])));
            }
            let config = config("bbr", r#"{"kind": "none"}"#);
            let states = replay_open_loop(&config, 0, &record).expect("fits");
            states.last().expect("states").cwnd_pkts
        };
        assert!(cwnd_after(true) > 2.0 * cwnd_after(false));
    }

    #[test]
    fn octets_that_were_not_sent_before_are_a_gap() {
        let gap = ReplayMismatch::Gap {
            index: 12,
            seq: octet(12),
            snd_nxt: octet(11),
        };
        assert_eq!(replayed(&[(1200, data(12))]), Err(gap));
    }

    #[test]
    fn time_does_not_run_backwards() {
        let back = replayed(&[(1099, ack(2, &[]))]);
        assert_eq!(back, Err(ReplayMismatch::Backwards { index: 12 }));
    }

    /// Records the events of a sender in a run, and its window after them.
    #[derive(Default)]
    struct Recorder {
        record: Vec<(Nanos, RecordedEvent)>,
        windows: Vec<(usize, SenderSample)>,
    }

    impl Tap for Recorder {
        fn event(&mut self, now: Nanos, event: Event<'_>) {
            let recorded = match event {
                Event::Sent(s) if s.direction == Direction::Forward => {
                    if s.payload_bytes > 0 {
                        RecordedEvent::Departure {
                            seq: s.seq,
                            payload_bytes: s.payload_bytes,
                        }
                    } else if s.has(flags::SYN) {
                        RecordedEvent::Syn
                    } else {
                        return;
                    }
                }
                Event::Arrived(s) if s.direction == Direction::Reverse => {
                    if s.has(flags::SYN) {
                        RecordedEvent::SynAck(*s)
                    } else {
                        RecordedEvent::Ack(*s)
                    }
                }
                Event::State { sample, .. } => {
                    self.windows.push((self.record.len() - 1, *sample));
                    return;
                }
                _ => return,
            };
            self.record.push((now, recorded));
        }
    }

    #[test]
    fn a_replay_of_a_run_has_the_windows_of_the_run() {
        for variant in ["linux-reno", "cubic", "bbr"] {
            let config = config(variant, r#"{"kind": "bernoulli", "per": 0.002}"#);
            let mut recorder = Recorder::default();
            let mut world = World::new(&config, 1, &mut recorder).expect("valid");
            let summary = world.run(&AtomicBool::new(false)).expect("runs");
            let sent = summary.flows[0].sender;
            assert!(
                sent.rtos == 0 && sent.recoveries > 10,
                "{variant}: {sent:?}"
            );
            let states = replay_open_loop(&config, 0, &recorder.record).expect("fits");
            // One sample per change: with an RTO in whole ticks, many ACKs change nothing.
            assert!(recorder.windows.len() > 500, "{variant}");
            for (index, sample) in recorder.windows {
                let replayed = (states[index].cwnd_pkts * SMSS as f64) as i64;
                let at = recorder.record[index].0;
                assert_eq!(replayed, sample.cwnd_bytes, "{variant} at {at} ns");
            }
        }
    }
}
