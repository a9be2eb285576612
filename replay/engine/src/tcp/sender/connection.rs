//! The start and the end of a connection at its sending half: the handshake, FIN both ways, giving up, resets.
//!
//! A FIN takes one sequence number after the last octet written (RFC 9293 §3.4): the window, the scoreboard and the timers
//! treat it like data. The states that RFC 9293 §3.3.2 tells apart while a FIN is under way
//! (FIN-WAIT-1, FIN-WAIT-2) differ in what `snd_una` has passed, so they are not separate states here.
//!
//! Does not depend on windows' arithmetic. Read RFC 9293 §3.3.2, §3.5 and §3.6 first.
//!
//! Deviation: TIME-WAIT keeps no time: it answers a FIN that comes again for as long as the run lasts.

use super::Sender;
use super::phase::Phase;
use crate::cc::{Adjustment, ConnectionEvent, LOSS_WINDOW, Window};
use crate::sim::time::{Nanos, since_timestamp, timestamp};
use crate::tcp::segment::{Direction, Purpose, Segment, flags};

/// The state of the connection; with a separate tag, as [`Controller`](crate::cc::Controller) has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::tcp) enum ConnectionState {
    /// Nothing sent yet.
    Closed,
    /// A SYN is due.
    SynDue,
    /// Waiting for the SYN-ACK.
    SynSent,
    /// The handshake's ACK is due.
    AckDue,
    /// Open; and when its FIN has left, until the other end's comes.
    Established,
    /// Both ends have sent their FIN.
    TimeWait {
        /// The other end's is to be acknowledged.
        ack_due: bool,
    },
    /// Given up, or reset by the other end.
    Reset {
        /// Sequence number of the RST that is due.
        rst: Option<u64>,
    },
}

/// How long the sender waits for an answer, and what it waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct GiveUpPolicy {
    /// The first timeout in a row, or the first probe of a window that has been closed since.
    since: Nanos,
    /// Unanswered window probes.
    pub probes: u32,
}

impl Sender {
    /// Opens the connection. Without a handshake it is established at once, with the `window_bytes` that the receiver
    /// promises.
    pub fn open(&mut self, now: Nanos, window_bytes: u64) {
        if self.params.handshake {
            self.state = ConnectionState::SynDue;
        } else {
            self.state = ConnectionState::Established;
            self.established_at = Some(now);
            self.edge = 1 + window_bytes;
            self.last_wnd_bytes = window_bytes as u32;
            self.notify_established(now);
        }
    }

    /// Whether `open` has been called.
    pub fn is_opening(&self) -> bool {
        self.state != ConnectionState::Closed
    }

    /// Whether it begins with a handshake.
    pub fn shakes_hands(&self) -> bool {
        self.params.handshake
    }

    /// Whether pacing may hold back what the windows let leave.
    pub fn is_paced(&self) -> bool {
        self.pacer.is_some()
    }

    /// When the connection was established.
    pub fn established_at(&self) -> Option<Nanos> {
        self.established_at
    }

    /// Whether it is over: closed by both ends, given up, or reset.
    #[inline]
    pub fn has_ended(&self) -> bool {
        matches!(
            self.state,
            ConnectionState::TimeWait { .. } | ConnectionState::Reset { .. }
        )
    }

    /// When it was given up or reset.
    pub fn reset_at(&self) -> Option<Nanos> {
        self.reset_at
    }

    /// The next octet expected from the other end, of which data reach up to `data_end`: behind its FIN once that came.
    #[inline]
    pub fn ack_for(&self, data_end: u64) -> u64 {
        data_end + u64::from(matches!(self.state, ConnectionState::TimeWait { .. }))
    }

    /// The application writes no more: where connections are to close, a FIN follows what it has written.
    pub fn close(&mut self) {
        if self.params.close && self.fin_seq.is_none() {
            self.fin_seq = Some(self.write_end);
            self.finished = true;
            self.window_use.called_early_at = None;
            self.write_end += 1;
        }
    }

    /// The next segment while no data may leave.
    pub(in crate::tcp) fn poll_control(&mut self, now: Nanos) -> Option<Segment> {
        match &mut self.state {
            ConnectionState::SynDue => {
                let octets = self.syn_payload();
                self.state = ConnectionState::SynSent;
                self.rto_timer.set(now + self.rtt.rto());
                self.last_sent_at = now;
                let mut segment = self.bare(now, flags::SYN | self.marks.offer());
                if self.timeouts_in_a_row == 0 {
                    self.syn_ts_val = segment.ts_val;
                }
                // As for data, the offset is that of the first octet.
                (segment.seq, segment.ack) = (u64::from(octets > 0), 0);
                segment.payload_bytes = octets;
                segment.ip_bytes = self.params.syn_header_bytes() as u16 + octets;
                self.counters.segments_out += u64::from(octets > 0);
                Some(segment)
            }
            ConnectionState::AckDue => {
                self.state = ConnectionState::Established;
                Some(self.bare(now, flags::ACK))
            }
            ConnectionState::TimeWait { ack_due } => {
                std::mem::take(ack_due).then(|| self.bare(now, flags::ACK))
            }
            ConnectionState::Reset { rst } => {
                let seq = rst.take()?;
                Some(Segment {
                    seq,
                    ts_val: timestamp(now),
                    ts_ecr: self.ts_recent,
                    ip_bytes: self.params.header_bytes as u16,
                    ip_id: self.next_ip_id(),
                    flags: flags::RST,
                    purpose: Purpose::Control,
                    ..Segment::new(self.leg, Direction::Forward)
                })
            }
            ConnectionState::Closed | ConnectionState::SynSent | ConnectionState::Established => {
                None
            }
        }
    }

    /// Whether the application may write: data leave when the connection is established, or with the SYN.
    pub fn takes_data(&self) -> bool {
        self.established_at.is_some() || self.opens_with_data()
    }

    /// Whether the SYN that is due carries what has been written.
    pub fn opens_with_data(&self) -> bool {
        self.params.fast_open && self.state == ConnectionState::SynDue
    }

    /// Octets that the SYN carries: RFC 7413 §4.2.1, no more than fill a packet, and none when it is sent again (Linux,
    /// `tcp_retransmit_skb`).
    ///
    /// Deviation: every SYN may carry data, without a request for a cookie and without the option that holds it (RFC 7413
    /// §4.1.1).
    fn syn_payload(&self) -> u16 {
        if !self.opens_with_data() || self.timeouts_in_a_row > 0 {
            return 0;
        }
        let room = (self.params.packet_bytes()).saturating_sub(self.params.syn_header_bytes());
        let written = self.fin_seq.unwrap_or(self.write_end) - 1;
        written.min(room.into()) as u16
    }

    /// A segment while the connection is not established, or no longer.
    pub(in crate::tcp) fn receive_outside(&mut self, segment: &Segment, now: Nanos) {
        match &mut self.state {
            ConnectionState::SynSent if segment.has(flags::SYN | flags::ACK) => {
                self.take_syn_ack(segment, now);
            }
            // RFC 9293 §3.10.7.3: the other end refuses the connection.
            ConnectionState::SynSent if segment.has(flags::RST) => self.end_by_reset(None, now),
            ConnectionState::TimeWait { ack_due } => *ack_due |= segment.has(flags::FIN),
            // RFC 9293 §3.5.2: where no connection is, what comes is answered with a reset it will believe.
            ConnectionState::Reset { rst } if !segment.has(flags::RST) => *rst = Some(segment.ack),
            _ => {}
        }
    }

    /// A SYN, FIN or RST while it is established. Returns whether the segment acknowledges like any other.
    pub(in crate::tcp) fn take_control(&mut self, segment: &Segment, now: Nanos) -> bool {
        if segment.has(flags::SYN) {
            // RFC 9293 §3.10.7.4: the SYN-ACK came again, so its answer got lost.
            self.state = ConnectionState::AckDue;
            return false;
        }
        if segment.has(flags::RST) {
            self.end_by_reset(None, now);
            return false;
        }
        // The other end closes when it has our FIN.
        if self.fin_seq.is_some_and(|seq| segment.ack > seq) {
            self.state = ConnectionState::TimeWait { ack_due: true };
        }
        true
    }

    fn take_syn_ack(&mut self, segment: &Segment, now: Nanos) {
        self.state = ConnectionState::AckDue;
        self.marks.take_answer(segment);
        self.established_at = Some(now);
        self.rto_timer.stop();
        if segment.ack > self.snd_una {
            // The data of the SYN; what it does not acknowledge is sent like other data (RFC 7413 §4.2.1).
            (self.snd_una, self.snd_nxt) = (segment.ack, segment.ack);
            self.drop_sent_pieces();
        }
        self.edge = segment.ack + u64::from(segment.wnd_bytes);
        self.last_wnd_bytes = segment.wnd_bytes;
        // RFC 6298 §3 (Karn): no sample from a SYN that was sent twice.
        if self.timeouts_in_a_row == 0 {
            self.rtt.sample(now - self.last_sent_at, 0, 1);
            self.begin_quick_start(now - self.last_sent_at);
        } else if self.rules.timestamp_measures_rtt
            && let Some(rtt) = since_timestamp(segment.ts_ecr, now)
        {
            self.rtt.sample(rtt, 0, 1);
        } else {
            self.rtt.begin_after_syn_timeout();
        }
        let syns_lost = std::mem::take(&mut self.timeouts_in_a_row);
        if syns_lost > 0 && self.rules.counts_dup_acks {
            // Linux: the SYN's timeout is over with an ACK beyond it; with SACK its own is enough.
            self.phase = Phase::after_timeout(self.snd_una);
        }
        self.notify_established(now);
        // The answer to the first one shows that it was late and not lost (Linux, `tcp_try_undo_spurious_syn`).
        // Deviation: RFC 5681 §3.1 also begins with one segment after a lost SYN/ACK, which echoes the first one too.
        let late = self.params.timestamps && segment.ts_ecr == self.syn_ts_val;
        if syns_lost > self.rules.forgiven_syns && !late {
            self.controller.adjust(Adjustment::Validate(Window {
                cwnd: LOSS_WINDOW,
                ..self.controller.window()
            }));
        }
    }

    fn notify_established(&mut self, now: Nanos) {
        let delivered = self.rates.as_ref().map_or(0, |rates| rates.delivered());
        self.controller.on_event(&ConnectionEvent::Established {
            now,
            rtt: self.rtt.min_rtt(),
            delivered,
        });
        self.update_pacing();
    }

    /// The timeout of a SYN: it is sent again, or the connection attempt is given up.
    pub(in crate::tcp) fn on_syn_timeout(&mut self, now: Nanos) {
        let linear = self.rules.linear_syn_timeouts;
        let limit = self.params.syn_retry_limit;
        if limit.is_some_and(|retries| self.timeouts_in_a_row >= retries + linear) {
            self.end_by_reset(None, now);
            return;
        }
        if self.timeouts_in_a_row >= linear {
            // RFC 6298 §5.5.
            self.rtt.back_off();
        }
        self.state = ConnectionState::SynDue;
        self.timeouts_in_a_row += 1;
    }

    /// Whether a retransmission timeout finds that nothing has been acknowledged for too long; then the connection is
    /// reset.
    ///
    /// Deviation: as Linux, the time counts from the first timeout; in RFC 5482 §1 from when the data left.
    pub(in crate::tcp) fn gives_up_data(&mut self, now: Nanos) -> bool {
        if self.timeouts_in_a_row == 0 {
            self.give_up.since = now;
            return false;
        }
        let limit = self
            .params
            .user_timeout_ns
            .or_else(|| self.params.retry_limit.map(|retries| self.time_of(retries)));
        self.abort_after(limit, now)
    }

    /// The same of a window that stays closed, before a probe leaves.
    ///
    /// RFC 9293 §3.8.6.1: not while probes are answered; but a user timeout holds all the same, as in Linux.
    pub(in crate::tcp) fn gives_up_window(&mut self, now: Nanos) -> bool {
        if self.persist_backoff == 0 {
            self.give_up = GiveUpPolicy {
                since: now,
                probes: 0,
            };
        }
        let unanswered = self.give_up.probes;
        let limit = match (self.params.user_timeout_ns, self.params.retry_limit) {
            (None, Some(retries)) => (unanswered >= retries).then_some(0),
            (user_timeout, _) => user_timeout,
        };
        self.give_up.probes += 1;
        self.abort_after(limit, now)
    }

    fn abort_after(&mut self, limit: Option<Nanos>, now: Nanos) -> bool {
        let gives_up = limit.is_some_and(|limit| now - self.give_up.since >= limit);
        if gives_up {
            // Deviation: RFC 9293 §3.10.8 and Linux give up in silence; here a RST reports it to the other end.
            self.abort(now);
        }
        gives_up
    }

    /// The user has no use for the connection any more (RFC 9293 §3.10.5).
    pub fn abort(&mut self, now: Nanos) {
        self.fast_path_until = None;
        self.end_by_reset(Some(self.snd_nxt), now);
    }

    /// It no longer knows the connection: nothing leaves, and what comes is answered with a reset.
    pub fn forget(&mut self, now: Nanos) {
        self.fast_path_until = None;
        self.end_by_reset(None, now);
    }

    /// The application writes no more: `end` is the end of the stream, which nothing sent reaches beyond.
    pub fn stop_at(&mut self, end: u64) {
        self.fast_path_until = None;
        self.write_end = end;
        self.finished = true;
        self.close();
    }

    /// Octets of the application's stream that the other end has acknowledged.
    pub fn acknowledged_octets(&self) -> u64 {
        self.snd_una.min(self.fin_seq.unwrap_or(u64::MAX)) - 1
    }

    /// Linux (`tcp_model_timeout`): `retries` timeouts in a row as long as they take on a path without delay, whatever they
    /// take on this one.
    fn time_of(&self, retries: u32) -> Nanos {
        let (min, max) = (self.params.min_rto_ns.max(1), self.params.max_rto_ns);
        let doublings = (max / min).max(1).ilog2().min(retries);
        let doubled = ((2 << doublings) - 1) * min;
        doubled.saturating_add(u64::from(retries - doublings).saturating_mul(max))
    }

    /// When the retransmission timer that is set now expires: after a timeout no later than the user timeout.
    pub(in crate::tcp) fn next_timeout(&self, now: Nanos) -> Nanos {
        self.while_patient(self.timeouts_in_a_row, now + self.rtt.rto(), now)
    }

    /// The same of a probe that is due at `due`: after a probe no later than the user timeout, as in Linux.
    pub(in crate::tcp) fn next_probe(&self, due: Nanos, now: Nanos) -> Nanos {
        self.while_patient(self.persist_backoff, due, now)
    }

    fn while_patient(&self, expiries: u32, due: Nanos, now: Nanos) -> Nanos {
        match self.params.user_timeout_ns {
            Some(max) if expiries > 0 => due.min((self.give_up.since + max).max(now + 1)),
            _ => due,
        }
    }

    fn end_by_reset(&mut self, rst: Option<u64>, now: Nanos) {
        self.state = ConnectionState::Reset { rst };
        self.reset_at = Some(now);
        self.rto_timer.stop();
        self.persist_timer.stop();
        self.rack.stop_timers();
        self.rack.probe_due = false;
        self.persist_due = false;
        self.forced = None;
        if let Some(pacer) = &mut self.pacer {
            pacer.timer.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cc::catalogue::Variant;
    use crate::config::Profile;
    use crate::sim::time::{MILLISECOND, SECOND};
    use crate::tcp::ladder::{sender, window};

    #[test]
    fn fifteen_retries_of_linux_are_924_seconds() {
        let linux = sender(Variant::LinuxReno, Profile::Linux, window(4));
        // Documentation/networking/ip-sysctl: 924.6 s with the default limits of the timeout.
        assert_eq!(linux.time_of(15), 924_600 * MILLISECOND);
        // Nine doublings of 200 ms stay below two minutes: 0.2 + 0.4 + … + 102.4 s.
        assert_eq!(linux.time_of(9), 204_600 * MILLISECOND);
        assert_eq!(linux.time_of(1), 600 * MILLISECOND);
        let rfc = sender(Variant::Reno, Profile::Rfc, window(4));
        assert_eq!(rfc.time_of(3), 15 * SECOND);
        assert_eq!(rfc.time_of(6), (63 + 60) * SECOND);
    }
}
