//! The analysis of one segment within its conversation, rule after rule in Wireshark's order.
//!
//! The rules are those of the section "TCP Analysis" of Wireshark's User's Guide; 4.0 is the version that is compared.

use hindflight_decoder::{Segment, flags};

use super::flow::{Flow, MAX_UNACKED, Scale, Unacked, before};
use super::verdict::{Verdict, flag};

/// Bits of the completeness of a conversation.
mod completeness {
    pub const SYN: u8 = 1;
    pub const SYN_ACK: u8 = 2;
    pub const ACK: u8 = 4;
    pub const DATA: u8 = 8;
    pub const FIN: u8 = 16;
    pub const RST: u8 = 32;
}

/// Longest time from a duplicate acknowledgement to a fast retransmission.
const MAX_FAST_NS: u64 = 20_000_000;
/// Longest time that a segment comes late where the initial round-trip time is not known.
const MAX_LATE_NS: u64 = 3_000_000;

const SYN_FIN: u16 = flags::SYN | flags::FIN;
const SYN_FIN_RST: u16 = SYN_FIN | flags::RST;

/// A conversation.
#[derive(Debug)]
pub struct Conversation {
    stream: u32,
    seen: u8,
    /// The direction of the first segment, and the other one.
    flows: [Flow; 2],
    /// Time of the last SYN; initial round-trip time, 0 before it is known.
    syn_ns: Option<i64>,
    initial_rtt_ns: i64,
}

/// A segment under analysis.
struct Step<'a> {
    segment: &'a Segment,
    sender: &'a mut Flow,
    receiver: &'a mut Flow,
    verdict: Verdict,
}

impl Conversation {
    /// A conversation without segments.
    pub fn new(stream: u32) -> Self {
        Self {
            stream,
            seen: 0,
            flows: [Flow::new(), Flow::new()],
            syn_ns: None,
            initial_rtt_ns: 0,
        }
    }

    /// A conversation that begins with a SYN between ends that had another one.
    pub fn after_another(stream: u32) -> Self {
        Self {
            seen: completeness::SYN,
            ..Self::new(stream)
        }
    }

    /// Whether a SYN without ACK begins another conversation.
    pub fn is_followed_by(&self, segment: &Segment, forward: bool) -> bool {
        let sender = &self.flows[usize::from(!forward)];
        has(segment, flags::SYN)
            && !has(segment, flags::ACK)
            && sender.base.is_some_and(|base| base != segment.seq)
    }

    /// Analyses a segment; `new` if it is the first one, and `reused` if the conversation follows another one.
    pub fn push(&mut self, segment: &Segment, forward: bool, new: bool, reused: bool) -> Verdict {
        let mut verdict = Verdict {
            record: segment.record,
            stream: self.stream,
            completeness: self.seen,
            ..Verdict::default()
        };
        if reused {
            verdict.flags |= flag::REUSED_PORTS;
        }
        let [first, second] = &mut self.flows;
        let (sender, receiver) = if forward {
            (first, second)
        } else {
            (second, first)
        };
        begin(segment, sender, receiver, &mut verdict);
        let mut step = Step {
            segment,
            sender,
            receiver,
            verdict,
        };
        step.analyse(self.initial_rtt_ns);
        verdict = step.verdict;
        let [first, second] = &mut self.flows;
        let (sender, receiver) = if forward {
            (first, second)
        } else {
            (second, first)
        };
        verdict.scale_factor = scale_factor(segment, sender);
        self.seen |= progress(segment, new);
        if has(segment, flags::SYN) {
            if !has(segment, flags::ACK) {
                self.syn_ns = Some(segment.t_ns);
            }
            sender.awaits_first_ack = true;
        } else if has(segment, flags::ACK) {
            if let Some(syn_ns) = self.syn_ns
                && self.initial_rtt_ns == 0
            {
                self.initial_rtt_ns = segment.t_ns - syn_ns;
            }
            sender.awaits_first_ack = false;
        }
        verdict.initial_rtt_ns = self.initial_rtt_ns;
        take_options(segment, sender, receiver);
        verdict
    }
}

fn has(segment: &Segment, mask: u16) -> bool {
    segment.flags & mask != 0
}

/// Sets the initial sequence numbers that were not known, and handles repeated SYNs.
fn begin(segment: &Segment, sender: &mut Flow, receiver: &mut Flow, verdict: &mut Verdict) {
    let syn = has(segment, flags::SYN);
    let ack = has(segment, flags::ACK);
    sender.sacked_bytes = 0;
    if let Some(base) = sender.base {
        if syn && ack && base != segment.seq {
            sender.base = Some(segment.seq);
            verdict.flags |= flag::REUSED_PORTS;
        }
    }
    let first = segment.seq.wrapping_sub(u32::from(!syn));
    sender.base.get_or_insert(first);
    if ack {
        receiver.base.get_or_insert(segment.ack.wrapping_sub(1));
    }
}

/// The bits of the completeness that a segment adds.
fn progress(segment: &Segment, new: bool) -> u8 {
    let data = segment.payload_bytes > 0;
    let syn_ack = segment.flags & (flags::SYN | flags::ACK);
    if new {
        // A SYN with ECN bits does not count.
        return match (segment.flags == flags::SYN, data) {
            (true, true) => completeness::SYN | completeness::DATA,
            (true, false) => completeness::SYN,
            _ => 0,
        };
    }
    let mut bits = 0;
    if syn_ack == flags::SYN | flags::ACK {
        bits |= completeness::SYN_ACK;
    }
    if syn_ack == flags::ACK {
        bits |= if data {
            completeness::DATA
        } else {
            completeness::ACK
        };
    }
    if segment.flags & (flags::FIN | flags::ACK) == flags::FIN | flags::ACK {
        bits |= completeness::FIN;
    }
    if has(segment, flags::RST) {
        bits |= completeness::RST;
    }
    bits
}

fn scale_factor(segment: &Segment, sender: &Flow) -> Option<i64> {
    (!has(segment, flags::SYN)).then(|| match sender.scale {
        Scale::Unknown => -1,
        Scale::Unused => -2,
        Scale::Shift(shift) => i64::from(1_i32.wrapping_shl(u32::from(shift))),
    })
}

/// Takes the options, and after a SYN decides whether windows are scaled.
fn take_options(segment: &Segment, sender: &mut Flow, receiver: &mut Flow) {
    let options = &segment.options;
    if let Some(shift) = options.wscale {
        sender.scale = Scale::Shift(shift);
    }
    let blocks = options.sack.as_slice().iter().take(3);
    sender.sacked_bytes = blocks.fold(0, |sum: u32, (left, right)| {
        sum.wrapping_add(right.wrapping_sub(*left))
    });
    if !has(segment, flags::SYN) {
        return;
    }
    if sender.scale == Scale::Unknown {
        (sender.scale, receiver.scale) = (Scale::Unused, Scale::Unused);
    } else if has(segment, flags::ACK) && receiver.scale == Scale::Unused {
        sender.scale = Scale::Unused;
    }
}

impl Step<'_> {
    fn set(&mut self, bit: u32) {
        self.verdict.flags |= bit;
    }

    fn has(&self, mask: u16) -> bool {
        has(self.segment, mask)
    }

    fn analyse(&mut self, initial_rtt_ns: i64) {
        if self.has(flags::ACK) {
            self.receiver.counts_flight = true;
        }
        self.compare_with_window();
        if self.segment.ack != self.sender.last_ack {
            self.sender.first_ack_record = self.segment.record;
            self.sender.dupacks = 0;
        }
        self.find_unseen();
        if self.segment.payload_bytes > 0 || self.has(SYN_FIN) {
            self.find_retransmission(initial_rtt_ns);
        }
        self.remember();
        self.take_ack();
        if self.segment.payload_bytes > 0 {
            self.count_flight();
        }
    }

    /// Zero windows, gaps, keep-alives, window updates, full windows and duplicate acknowledgements.
    fn compare_with_window(&mut self) {
        let Segment {
            seq,
            ack,
            window,
            payload_bytes: length,
            ..
        } = *self.segment;
        let plain = !self.has(SYN_FIN_RST);
        let next = self.sender.next;
        if length == 1 && seq == next && self.receiver.window == Some(0) {
            self.set(flag::ZERO_WINDOW_PROBE);
            return;
        }
        if window == 0 && plain {
            self.set(flag::ZERO_WINDOW);
        }
        if next != 0 && before(next, seq) && !self.has(flags::RST) {
            self.set(flag::LOST_SEGMENT);
            self.sender.counts_flight = false;
        }
        if length <= 1 && seq == next.wrapping_sub(1) && plain {
            self.set(flag::KEEP_ALIVE);
        }
        let repeats = length == 0 && seq == next && ack == self.sender.last_ack && plain;
        let same_window = self.sender.window == Some(window);
        if repeats && window != 0 && !same_window {
            self.set(flag::WINDOW_UPDATE);
        }
        let edge = self
            .receiver
            .last_ack
            .wrapping_add(self.receiver.scaled_window());
        if length > 0
            && self.receiver.scale != Scale::Unknown
            && seq.wrapping_add(length) == edge
            && plain
        {
            self.set(flag::WINDOW_FULL);
        }
        if repeats && same_window && window != 0 && self.receiver.kept_alive() {
            self.set(flag::KEEP_ALIVE_ACK);
        } else if repeats
            && same_window
            && window == 0
            && self.receiver.had(flag::ZERO_WINDOW_PROBE)
        {
            self.set(flag::ZERO_WINDOW_PROBE_ACK);
        } else if repeats && same_window && window != 0 {
            self.sender.dupacks = self.sender.dupacks.max(0) + 1;
            self.set(flag::DUPLICATE_ACK);
            self.verdict.dupack = Some((self.sender.dupacks, self.sender.first_ack_record));
        }
    }

    /// Acknowledgements of what was not captured.
    fn find_unseen(&mut self) {
        let expected = self.receiver.max_to_be_acked;
        if expected == 0 || !before(expected, self.segment.ack) || !self.has(flags::ACK) {
            return;
        }
        if before(expected, self.receiver.next) {
            self.receiver.max_to_be_acked = self.receiver.next;
            self.set(flag::ACK_LOST_SEGMENT);
        } else {
            if self.receiver.dupacks == 0 {
                self.set(flag::ACK_LOST_SEGMENT);
            }
            self.receiver.dupacks = -1;
        }
    }

    /// Retransmissions and late segments.
    fn find_retransmission(&mut self, initial_rtt_ns: i64) {
        let Segment {
            seq,
            t_ns,
            payload_bytes: length,
            ..
        } = *self.segment;
        if self.verdict.flags & flag::KEEP_ALIVE != 0 {
            return;
        }
        let next = self.sender.next;
        let mut old = next != 0 && before(seq, next);
        if length > 1 && next.wrapping_sub(1) == seq {
            old = false;
        }
        let end = seq.wrapping_add(length);
        let acked = self.receiver.last_ack;
        if length > 0 && acked != 0 && !before(acked, end) {
            self.set(flag::SPURIOUS_RETRANSMISSION | flag::RETRANSMISSION);
            return;
        }
        if !old {
            return;
        }
        // Time that runs backwards is a long time.
        let since_ack = t_ns.wrapping_sub(self.receiver.last_ns) as u64;
        // Wireshark compares -1 as an unsigned number.
        if self.receiver.dupacks as u32 >= 2 && acked == seq && since_ack < MAX_FAST_NS {
            self.set(flag::FAST_RETRANSMISSION | flag::RETRANSMISSION);
            return;
        }
        let late_ns = match initial_rtt_ns {
            0 => MAX_LATE_NS,
            rtt => rtt as u64,
        };
        let since_next = t_ns.wrapping_sub(self.sender.next_ns) as u64;
        let ends_at_next = next == end.wrapping_add(u32::from(self.has(SYN_FIN)));
        if since_next < late_ns && !ends_at_next {
            self.set(flag::OUT_OF_ORDER);
            return;
        }
        self.set(flag::RETRANSMISSION);
        let oldest = self.sender.unacked.first();
        let (from_ns, record) = oldest
            .map_or((self.sender.next_ns, self.sender.next_record), |sent| {
                (sent.t_ns, sent.record)
            });
        self.verdict.rto = Some((t_ns - from_ns, record)).filter(|rto| rto.0 != 0);
    }

    /// Remembers the segment.
    fn remember(&mut self) {
        let Segment {
            record,
            seq,
            ack,
            t_ns,
            window,
            payload_bytes: length,
            ..
        } = *self.segment;
        let flags = self.verdict.flags;
        let control = self.has(SYN_FIN);
        let sender = &mut *self.sender;
        let mut next = seq.wrapping_add(length);
        if (length > 0 || control) && sender.unacked.len() < MAX_UNACKED {
            next = next.wrapping_add(u32::from(control));
            sender.unacked.push(Unacked {
                record,
                seq,
                next,
                t_ns,
            });
        }
        let probe = flags & flag::ZERO_WINDOW_PROBE != 0;
        if (sender.next == 0 || before(sender.next, next)) && !probe {
            (sender.next, sender.next_record, sender.next_ns) = (next, record, t_ns);
        }
        if (sender.max_to_be_acked == 0 || seq == sender.max_to_be_acked) && !probe {
            sender.max_to_be_acked = sender.next;
        }
        sender.window = Some(window);
        (sender.last_ack, sender.last_ns) = (ack, t_ns);
        sender.last_flags = flags;
    }

    /// Forgets the segments that the acknowledgement covers; the last one found is the one that it acknowledges.
    fn take_ack(&mut self) {
        let ack = self.segment.ack;
        let t_ns = self.segment.t_ns;
        let mut oldest_exact = None;
        self.receiver.unacked.retain_mut(|sent| {
            if ack == sent.next {
                oldest_exact.get_or_insert((sent.record, t_ns - sent.t_ns));
                return false;
            }
            if !before(sent.next, ack) {
                if before(sent.seq, ack) {
                    sent.seq = ack;
                }
                return true;
            }
            false
        });
        self.verdict.acks = oldest_exact;
        self.verdict.analysed = oldest_exact.is_some() || self.verdict.flags != 0;
    }

    /// Octets in flight, and since the last PSH.
    fn count_flight(&mut self) {
        let base = self.sender.base.unwrap_or(0);
        let ends = self.sender.unacked.iter();
        let range = ends.map(|sent| (sent.seq.wrapping_sub(base), sent.next.wrapping_sub(base)));
        let Some((first, last)) = range.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
            return;
        };
        if !self.sender.counts_flight {
            return;
        }
        self.verdict.analysed = true;
        let in_flight = (last - first.min(last)).wrapping_sub(self.receiver.sacked_bytes);
        if (1..2_000_000_000).contains(&in_flight) {
            self.verdict.bytes_in_flight = in_flight - u32::from(self.has(SYN_FIN));
        }
        let (push, length) = (self.has(flags::PSH), self.segment.payload_bytes);
        let sender = &mut *self.sender;
        sender.push_bytes = if sender.pushed {
            length
        } else {
            sender.push_bytes.wrapping_add(length)
        };
        sender.pushed = push;
        if self.verdict.bytes_in_flight > 0 {
            self.verdict.push_bytes_sent = self.sender.push_bytes;
        }
    }
}
