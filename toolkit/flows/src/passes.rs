//! Downstream of a loss: retransmissions that were lost before the capture point.
//!
//! A sender retransmits in the order of sequence numbers (RFC 6675 §5, and after a timeout). A retransmission that
//! arrives while a hole below is still open passes it: what was sent for the hole before was lost as well.

use std::collections::VecDeque;

use crate::ordering::SendOrder;
use crate::scoreboard::Transmission;

/// Maximum number of retransmissions kept.
const MAX_RECENT: usize = 1 << 10;

/// A retransmission that was captured.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Captured {
    start: i64,
    transmission: Transmission,
    /// Time from the segment that revealed the hole to the retransmission that filled it.
    repair_ns: Option<i64>,
}

/// A time without a packet.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[allow(clippy::struct_field_names, reason = "all are times")]
struct Silence {
    begin_ns: i64,
    end_ns: i64,
    /// When the last ACK came that the sender had received by its end, as its timestamps show.
    informed_ns: Option<i64>,
}

/// Retransmissions of a hole that were lost before the capture point.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// Their number.
    pub count: u32,
    /// With SACK, when each of them would have been captured, about.
    pub times_ns: Vec<i64>,
    /// Time between them.
    pub round_ns: i64,
    /// Record and time of the first retransmission that passed the hole.
    pub passed_by: u64,
    pub passed_ns: i64,
}

/// The recent retransmissions above the cumulative acknowledgement.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Passes {
    recent: VecDeque<Captured>,
    /// The last silences.
    silences: VecDeque<Silence>,
}

impl Passes {
    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.recent.shrink_to_fit();
    }

    /// Adds a retransmission. `revealed_ns`: when a segment above the hole that it fills was captured.
    pub fn push(&mut self, start: i64, transmission: Transmission, revealed_ns: Option<i64>) {
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Captured {
            start,
            transmission,
            repair_ns: revealed_ns.map(|revealed| transmission.t_ns - revealed),
        });
    }

    /// A timer may have expired after `begin_ns`, and a retransmission was captured at `end_ns`. In between, what is
    /// lost was sent by timeouts, and no hole but the oldest one was repeated (RFC 6298 §5.4). The sender had received
    /// the ACKs up to `informed_ns`, if its timestamps show that.
    pub fn end_silence(&mut self, begin_ns: i64, end_ns: i64, informed_ns: Option<i64>) {
        if self.silences.len() == MAX_ROUNDS as usize {
            self.silences.pop_front();
        }
        self.silences.push_back(Silence {
            begin_ns,
            end_ns,
            informed_ns,
        });
    }

    /// Forgets the retransmissions below `snd_una`, if all are: no hole is open below the others.
    pub fn acknowledge(&mut self, snd_una: i64) {
        while self
            .recent
            .front()
            .is_some_and(|first| first.start < snd_una)
        {
            self.recent.pop_front();
        }
    }

    /// The retransmissions lost of a hole at `start`, revealed at `revealed_ns` and filled by `filling`. A
    /// retransmission that was sent later than `filling`, as `order` shows, overtook it on the path and passed nothing
    /// that was lost.
    ///
    /// With SACK and the RTT `rtt_ns`, a lost retransmission is repeated after a round trip: the RTT, or the time that
    /// it took to fill the holes which passed; not in a silence. Without SACK, it is repeated after each timeout, with
    /// all that follow.
    pub fn lost_before(
        &self,
        start: i64,
        revealed_ns: i64,
        filling: &Transmission,
        (rtt_ns, order): (Option<i64>, &SendOrder),
    ) -> Option<Lost> {
        let passed = || {
            let passes = move |other: &&Captured| {
                other.start > start
                    && other.transmission.t_ns > revealed_ns
                    && order.sent_later(&other.transmission, filling) != Some(true)
            };
            self.recent.iter().filter(passes)
        };
        let first = passed().min_by_key(|other| other.transmission.t_ns)?;
        let since_ns = filling.t_ns - first.transmission.t_ns;
        let mut times_ns = Vec::new();
        let (rounds, round_ns) = if let Some(rtt_ns) = rtt_ns {
            let repair_ns = passed().filter_map(|other| other.repair_ns).min();
            let round_ns = repair_ns.unwrap_or(0).max(rtt_ns).max(1);
            let rounds = |from_ns: i64, to_ns: i64| (to_ns - from_ns + round_ns / 2) / round_ns;
            let mut add = |from_ns: i64, rounds: i64| {
                let rounds = rounds.clamp(0, i64::from(MAX_ROUNDS));
                times_ns.extend(
                    (0..rounds).map(|round| from_ns.saturating_add(round_ns.saturating_mul(round))),
                );
            };
            let mut from_ns = Some(first.transmission.t_ns);
            for silence in &self.silences {
                let &Silence {
                    begin_ns, end_ns, ..
                } = silence;
                if begin_ns < first.transmission.t_ns || filling.t_ns < end_ns {
                    continue;
                }
                let until_ns = begin_ns.saturating_add(round_ns);
                if let Some(at) = from_ns.filter(|&from_ns| from_ns <= begin_ns) {
                    let count = if silence.informed_ns.is_some_and(|informed| informed >= at) {
                        // The sender had received the ACK of the retransmission above the hole, and repeated the
                        // hole a round trip later.
                        let until_ns = until_ns.min(end_ns.saturating_sub(round_ns / 2));
                        1 + until_ns.saturating_sub(at).max(0) / round_ns
                    } else {
                        rounds(at, until_ns)
                    };
                    add(at, count);
                }
                let times = passed().map(|other| other.transmission.t_ns);
                from_ns = times.filter(|&t_ns| t_ns >= end_ns).min();
            }
            if let Some(at) = from_ns {
                add(at, rounds(at, filling.t_ns).max(1));
            }
            (times_ns.len() as i64, round_ns)
        } else {
            let starts = passed().map(|other| other.start);
            let restarts = starts.clone().zip(starts.skip(1));
            let rounds = 1 + restarts.filter(|(one, next)| next <= one).count() as i64;
            (rounds, since_ns / rounds)
        };
        Some(Lost {
            count: u32::try_from(rounds.max(1)).unwrap_or(1).min(MAX_ROUNDS),
            times_ns,
            round_ns,
            passed_by: first.transmission.record,
            passed_ns: first.transmission.t_ns,
        })
    }
}

/// Maximum number of retransmissions assumed lost of one hole: with backoff, a connection gives up before.
const MAX_ROUNDS: u32 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(t_ns: i64, record: u64) -> Transmission {
        Transmission {
            t_ns,
            record,
            ..Transmission::default()
        }
    }

    #[test]
    fn rounds_are_counted_from_the_first_pass() {
        let mut passes = Passes::default();
        let order = SendOrder::default();
        let lost_before = |passes: &Passes, start, t_ns, rtt_ns| {
            passes.lost_before(start, 50, &sent(t_ns, 0), (rtt_ns, &order))
        };
        passes.push(2000, sent(1100, 7), Some(100));
        passes.push(3000, sent(1200, 8), Some(200));
        assert_eq!(lost_before(&passes, 4000, 2100, Some(1000)), None);
        let lost = |count: u32| {
            Some(Lost {
                count,
                times_ns: (0..count)
                    .map(|round| 1100 + i64::from(round) * 1000)
                    .collect(),
                round_ns: 1000,
                passed_by: 7,
                passed_ns: 1100,
            })
        };
        assert_eq!(lost_before(&passes, 1000, 2080, Some(1000)), lost(1));
        assert_eq!(lost_before(&passes, 1000, 3080, Some(1000)), lost(2));
        passes.push(2000, sent(1900, 9), None);
        let without_sack = lost_before(&passes, 1000, 3080, None);
        assert_eq!(
            without_sack.map(|lost| lost.count),
            Some(2),
            "it starts again"
        );
        passes.acknowledge(2500);
        assert_eq!(passes.recent.len(), 2);
    }

    #[test]
    fn in_a_silence_no_round_trip_is_counted() {
        let order = SendOrder::default();
        let mut passes = Passes::default();
        passes.push(2000, sent(1100, 7), Some(100));
        passes.push(3000, sent(1900, 8), Some(900));
        let lost = |passes: &Passes| {
            let lost = passes.lost_before(1000, 50, &sent(9000, 0), (Some(1000), &order));
            lost.map(|lost| (lost.count, lost.times_ns))
        };
        let count = |passes: &Passes| lost(passes).map(|(count, _)| count);
        assert_eq!(count(&passes), Some(8));
        passes.end_silence(2000, 8000, None);
        assert_eq!(count(&passes), Some(2), "at 1100 and at 2100");
        passes.push(4000, sent(8000, 9), None);
        assert_eq!(
            lost(&passes),
            Some((3, vec![1100, 2100, 8000])),
            "the timeout passed it, too"
        );
        passes.end_silence(8100, 8900, None);
        assert_eq!(count(&passes), Some(3), "no round trip in either");
    }

    #[test]
    fn a_sender_that_knew_of_a_pass_repeated_the_hole_in_a_silence() {
        let order = SendOrder::default();
        let count = |informed_ns| {
            let mut passes = Passes::default();
            passes.push(2000, sent(1100, 7), Some(100));
            passes.end_silence(1100, 8000, informed_ns);
            let lost = passes.lost_before(1000, 50, &sent(8000, 0), (Some(1000), &order));
            lost.map(|lost| lost.count)
        };
        assert_eq!(count(Some(1100)), Some(2));
        assert_eq!(count(Some(1099)), Some(1), "the ACK was lost");
        assert_eq!(count(None), Some(1));
    }
}
