//! What a retransmission means for its sender: its cause, the episode it begins, and whether it is one at all.
//! Read [`crate::cause`] first.

use super::{Sender, Sent};
use crate::cause::{Episode, Situation};
use crate::evidence::{End, Reason};
use crate::history::Copy;
use crate::rows::{Event, EventCause, EventKind, Vantage};
use crate::scoreboard::{Overlap, Range, Transmission};
use crate::verdict::{self, Whose};

impl Sender {
    /// Takes a segment that repeats or fills something. Returns whether it is a retransmission.
    pub(super) fn send_again(
        &mut self,
        sent: &Sent,
        overlap: &Overlap,
        whose: Whose,
        events: &mut Vec<Event>,
    ) -> bool {
        let proven = overlap
            .gap
            .is_some_and(|gap| self.sent_later(&sent.transmission, &gap));
        self.count_payload(sent, overlap.repeated);
        let octets = overlap.repeated + if proven { overlap.filled } else { 0 };
        let (cause, reason) = if octets > 0 {
            self.situation(sent, overlap).cause()
        } else {
            (EventCause::Unknown, Reason::None)
        };
        let copy = Copy {
            transmission: sent.transmission,
            seq_start: sent.start,
            seq_end: sent.end,
            cause,
            reason,
            lead: true,
        };
        let acknowledged = sent.end <= self.board.snd_una();
        let head = sent.start <= self.board.snd_una() && !acknowledged;
        let kept = self.board.send_again(sent.start, sent.end, copy, proven);
        if octets == 0 {
            self.overtaken(sent, overlap, whose, events);
            return false;
        }
        if sent.payload_bytes > 0 {
            self.row.retransmitted_segments += 1;
            self.row.retransmitted_bytes += (octets as u64).min(u64::from(sent.payload_bytes));
        }
        if !kept {
            let needless = cause != EventCause::Probe;
            let proof = if needless {
                Reason::AlreadyAcknowledged
            } else {
                Reason::None
            };
            events.push(verdict::retransmission(&copy, needless, proof, whose));
        }
        if acknowledged {
            return true;
        }
        self.enter(&copy, whose, events);
        if head {
            // RFC 6298 §5.1, §5.5: sending the oldest segment again restarts the timer.
            self.timer_ns = sent.transmission.t_ns;
            self.evidence_ns = None;
        }
        true
    }

    /// A gap was filled by a segment that nothing proves to be a retransmission.
    fn overtaken(&mut self, sent: &Sent, overlap: &Overlap, whose: Whose, events: &mut Vec<Event>) {
        self.row.out_of_order_segments += u64::from(sent.payload_bytes > 0);
        let revealed_by = overlap.gap.map_or(0, |gap| gap.first.record);
        let now = sent.transmission.t_ns;
        events.push(Event {
            record: Some(sent.transmission.record),
            seq_start: Some(sent.start),
            seq_end: Some(sent.end),
            ..whose.event(
                EventKind::Reordering,
                EventCause::Unknown,
                now,
                Reason::Overtaken { revealed_by },
            )
        });
    }

    /// Whether what fills `gap` was sent later than the segment that revealed the gap.
    fn sent_later(&self, segment: &Transmission, gap: &Range) -> bool {
        self.order.later(segment, &gap.first).unwrap_or_else(|| {
            // Without marks of the sender: overtaking lasts less than a round trip, a repair at least one.
            let rtt = self.whole_srtt_ns();
            rtt > 0 && segment.t_ns - gap.first.t_ns >= rtt / 10 * 9
        })
    }

    fn situation(&self, sent: &Sent, overlap: &Overlap) -> Situation {
        let now = sent.transmission.t_ns;
        // What passed here reached the sender, and what it answers came back, this much later.
        let behind = self.behind_ns();
        let beside = self.vantage == Vantage::Sender;
        let (una, nxt) = (self.board.snd_una(), self.board.snd_nxt());
        let before = overlap.range.or(overlap.gap);
        let before = before.map_or(Transmission::default(), |range| self.board.newest(&range));
        let newest = self.newest_delivered.record;
        let sacked = self.board.sacked();
        Situation {
            episode: self.episode,
            disproved_timeout: self.disproved_timeout,
            head: sent.start <= una && sent.end > una,
            tail: sent.end >= nxt,
            repeated_before: overlap.range.is_some_and(|range| range.copies.is_some()),
            tiny: sent.payload_bytes <= 1,
            acknowledged: sent.end <= una,
            zero_window: self.snd_wnd == Some(0),
            dup_acks: self.dup_acks,
            sacked: if sacked.highest().is_some_and(|highest| highest > sent.start) {
                sacked.octets()
            } else {
                0
            },
            later_delivered: (newest > before.record).then_some(newest),
            sack: self.sack_in_use,
            timer_ns: now - self.timer_ns - behind,
            since_sent_ns: now - before.t_ns,
            evidence_ns: self.evidence_ns.map(|since| now - since - behind),
            silence_ns: now - self.last_sent_ns,
            since_ack_ns: if beside {
                now - self.last_ack_ns
            } else {
                i64::MAX
            },
            srtt_ns: self.whole_srtt_ns(),
            rto_ns: self.rtt.rto_ns().saturating_add(behind),
            least_rto_ns: self.rtt.least_rto_ns().saturating_add(behind),
        }
    }

    /// Moves between open, fast recovery and loss on a retransmission.
    fn enter(&mut self, copy: &Copy, whose: Whose, events: &mut Vec<Event>) {
        let recovery_point = self.board.snd_nxt();
        let now = copy.transmission.t_ns;
        match (copy.cause, copy.reason) {
            (EventCause::Rto, Reason::TimerExpired { .. }) => {
                self.leave(now, End::BrokenOff, whose, events);
                self.row.rtos += 1;
                self.episode = Episode::Loss { recovery_point };
                self.episode_ts = copy.transmission.ts_val;
                events.push(Event {
                    record: Some(copy.transmission.record),
                    seq_start: Some(copy.seq_start),
                    seq_end: Some(copy.seq_end),
                    ..whose.event(EventKind::Rto, EventCause::Rto, now, copy.reason)
                });
            }
            (EventCause::Fast, _) if self.episode == Episode::Open => {
                self.row.recoveries += 1;
                self.episode_ts = copy.transmission.ts_val;
                self.episode = Episode::Recovery {
                    start_ns: now,
                    record: copy.transmission.record,
                    seq_start: copy.seq_start,
                    recovery_point,
                    retransmissions: 0,
                };
            }
            _ => {}
        }
        if let Episode::Recovery {
            retransmissions, ..
        } = &mut self.episode
        {
            *retransmissions += 1;
        }
    }

    /// Ends the episode at `now_ns`.
    pub(super) fn leave(&mut self, now_ns: i64, end: End, whose: Whose, events: &mut Vec<Event>) {
        if let Episode::Recovery {
            start_ns,
            record,
            seq_start,
            recovery_point,
            retransmissions,
        } = self.episode
        {
            let reason = Reason::Ended {
                recovery_point,
                retransmissions,
                end,
            };
            events.push(Event {
                end_ns: Some(now_ns),
                record: Some(record),
                seq_start: Some(seq_start),
                seq_end: Some(recovery_point),
                ..whose.event(EventKind::Recovery, EventCause::Fast, start_ns, reason)
            });
        }
        self.episode = Episode::Open;
        self.episode_ts = None;
        self.dup_acked_bytes = 0;
    }
}
