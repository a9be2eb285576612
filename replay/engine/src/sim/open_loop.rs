//! Open-loop replay: a sender is driven by a recorded flow. The record decides which segments leave, which ACKs arrive and when
//! the retransmission timer fires; scoreboard, recovery and window are computed by the code of an ordinary run. Where the
//! window then differs from the recorded sender's, a rule is wrong, not the path.
//!
//! Does not depend on captures or tables. Read `tcp/sender/open_loop.rs` next.

use hindflight_kernels::{Purpose, StreamKey, StreamRng};

use super::time::Nanos;
use crate::config::{Config, ConfigErrorKind, ConfigErrors, KeyPath, StackParams, known_variant};
use crate::tcp::segment::{Direction, Segment, flags};
use crate::tcp::sender::{BoardCounts, Sender};

/// One thing that the recorded sender did or met.
#[derive(Clone, Copy, Debug)]
pub enum Recorded {
    /// It sent its SYN.
    Syn,
    /// It sent octets.
    Departure {
        /// First octet, as an offset of the stream (1: the first of all).
        seq: u64,
        /// Their number.
        payload_bytes: u16,
    },
    /// Its retransmission timer fired.
    Timeout,
    /// A segment with the SYN flag came.
    SynAck(Segment),
    /// An acknowledgement came; the time that it echoes is one of this sender's clock, in milliseconds.
    Ack(Segment),
}

impl Recorded {
    /// An acknowledgement of everything before `ack` that opens a window of `wnd_bytes`, echoes `ts_ecr` and reports
    /// `sack`.
    pub fn ack(ack: u64, wnd_bytes: u32, ts_ecr: u32, sack: &[(u64, u64)]) -> Self {
        Self::Ack(segment(flags::ACK, ack, wnd_bytes, ts_ecr, sack))
    }

    /// The SYN's answer.
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

/// Our sender after one thing that the recorded sender did or met, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenLoopState {
    /// Window that governs transmission.
    pub cwnd_pkts: f64,
    /// Slow start threshold; none while it is not set.
    pub ssthresh_pkts: Option<f64>,
    /// In fast recovery, or repairing after a timeout.
    pub repairing: bool,
    /// Its scoreboard.
    pub board: BoardCounts,
}

/// Why a record cannot be followed.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayMismatch {
    /// The flow's configuration makes no sense.
    Config(ConfigErrors),
    /// Thing number `index` comes before the one before it.
    Backwards {
        /// From 0.
        index: usize,
    },
    /// Thing number `index` left octets out: it begins at `seq` where `snd_nxt` would be the next.
    Gap {
        /// From 0.
        index: usize,
        /// First octet that left.
        seq: u64,
        /// First octet that had not.
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

/// Leads a sender of flow number `flow` of `config` through `record`, in the order of time; returns its state after
/// each thing.
///
/// # Errors
/// [`ReplayMismatch`].
pub fn replay_open_loop(
    config: &Config,
    flow: usize,
    record: &[(Nanos, Recorded)],
) -> Result<Vec<OpenLoopState>, ReplayMismatch> {
    let mut sender = sender(config, flow).map_err(ReplayMismatch::Config)?;
    let mut states = Vec::with_capacity(record.len());
    let mut latest = 0;
    for (index, &(now, thing)) in record.iter().enumerate() {
        if now < latest {
            return Err(ReplayMismatch::Backwards { index });
        }
        latest = now;
        match thing {
            Recorded::Syn => sender.record_syn(now),
            Recorded::Departure { seq, payload_bytes } => {
                let snd_nxt = sender.snd_nxt();
                if !sender.record_departure(seq, payload_bytes, now) {
                    return Err(ReplayMismatch::Gap {
                        index,
                        seq,
                        snd_nxt,
                    });
                }
            }
            Recorded::Timeout => sender.record_timeout(now),
            Recorded::SynAck(segment) | Recorded::Ack(segment) => sender.record_ack(&segment, now),
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
    let draws = StreamRng::new(StreamKey {
        seed: 0,
        owner: 0,
        direction: 0,
        purpose: Purpose::Controller,
    });
    let controller = variant.controller(&params, &flow.params, draws);
    Ok(Sender::new(0, &params, controller))
}

fn state(sender: &Sender) -> OpenLoopState {
    let (cwnd_pkts, ssthresh) = sender.recorded_window();
    OpenLoopState {
        cwnd_pkts,
        ssthresh_pkts: ssthresh.is_finite().then_some(ssthresh),
        repairing: sender.is_repairing(),
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
        // What bbr would leave to chance.
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

    fn data(segment: u64) -> Recorded {
        Recorded::Departure {
            seq: octet(segment),
            payload_bytes: SMSS as u16,
        }
    }

    fn ack(segment: u64, sack: &[(u64, u64)]) -> Recorded {
        let blocks: Vec<_> = sack.iter().map(|&(a, b)| (octet(a), octet(b))).collect();
        Recorded::ack(octet(segment), 1 << 20, 0, &blocks)
    }

    /// Ten segments left at 1.1 s.
    fn begun() -> Vec<(Nanos, Recorded)> {
        let at = |ms| ms * MILLISECOND;
        let mut record = vec![
            (at(1000), Recorded::Syn),
            (at(1100), Recorded::syn_ack(65535)),
        ];
        record.extend((1..=10).map(|n| (at(1100), data(n))));
        record
    }

    fn followed(rest: &[(u64, Recorded)]) -> Result<Vec<OpenLoopState>, ReplayMismatch> {
        let mut record = begun();
        record.extend(rest.iter().map(|&(ms, thing)| (ms * MILLISECOND, thing)));
        replay_open_loop(&config("linux-reno", r#"{"kind": "none"}"#), 0, &record)
    }

    #[test]
    fn the_window_grows_by_the_records_acks_and_falls_by_its_losses() {
        let states = followed(&[
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
        assert_eq!((lost.ssthresh_pkts, lost.repairing), (Some(7.0), true));
        let board = |lost: &OpenLoopState| {
            let b = lost.board;
            (b.outstanding, b.sacked, b.lost, b.retransmitted)
        };
        assert_eq!(board(&lost), (7, 3, 1, 0));
        assert_eq!(board(&states[15]), (7, 3, 1, 1));
    }

    #[test]
    fn a_timeout_is_the_records_and_no_other_strikes() {
        let idle = followed(&[(60_000, ack(2, &[]))]).expect("fits");
        assert!(!idle[12].repairing);
        let struck = followed(&[(1400, Recorded::Timeout), (1400, data(1))]).expect("fits");
        assert_eq!(
            (struck[12].cwnd_pkts, struck[12].ssthresh_pkts),
            (1.0, Some(5.0))
        );
        assert!(struck[12].repairing);
    }

    #[test]
    fn octets_that_never_left_before_are_a_gap() {
        let gap = ReplayMismatch::Gap {
            index: 12,
            seq: octet(12),
            snd_nxt: octet(11),
        };
        assert_eq!(followed(&[(1200, data(12))]), Err(gap));
    }

    #[test]
    fn time_does_not_run_backwards() {
        let back = followed(&[(1099, ack(2, &[]))]);
        assert_eq!(back, Err(ReplayMismatch::Backwards { index: 12 }));
    }

    /// What a run's sender did and met, and its window after that.
    #[derive(Default)]
    struct Scribe {
        record: Vec<(Nanos, Recorded)>,
        windows: Vec<(usize, SenderSample)>,
    }

    impl Tap for Scribe {
        fn event(&mut self, now: Nanos, event: Event<'_>) {
            let thing = match event {
                Event::Sent(s) if s.direction == Direction::Forward => {
                    if s.payload_bytes > 0 {
                        Recorded::Departure {
                            seq: s.seq,
                            payload_bytes: s.payload_bytes,
                        }
                    } else if s.has(flags::SYN) {
                        Recorded::Syn
                    } else {
                        return;
                    }
                }
                Event::Arrived(s) if s.direction == Direction::Reverse => {
                    if s.has(flags::SYN) {
                        Recorded::SynAck(*s)
                    } else {
                        Recorded::Ack(*s)
                    }
                }
                Event::State { sample, .. } => {
                    self.windows.push((self.record.len() - 1, *sample));
                    return;
                }
                _ => return,
            };
            self.record.push((now, thing));
        }
    }

    #[test]
    fn led_through_a_run_of_its_own_a_sender_has_its_own_window_all_along() {
        for variant in ["linux-reno", "cubic", "bbr"] {
            let config = config(variant, r#"{"kind": "bernoulli", "per": 0.002}"#);
            let mut scribe = Scribe::default();
            let mut world = World::new(&config, 1, &mut scribe).expect("valid");
            let summary = world.run(&AtomicBool::new(false)).expect("runs");
            let sent = summary.flows[0].sender;
            assert!(
                sent.rtos == 0 && sent.recoveries > 10,
                "{variant}: {sent:?}"
            );
            let states = replay_open_loop(&config, 0, &scribe.record).expect("fits");
            // A record per change: with the timeout in whole ticks many ACKs make none.
            assert!(scribe.windows.len() > 500, "{variant}");
            for (index, sample) in scribe.windows {
                let own = (states[index].cwnd_pkts * SMSS as f64) as i64;
                let at = scribe.record[index].0;
                assert_eq!(own, sample.cwnd_bytes, "{variant} at {at} ns");
            }
        }
    }
}
