//! Offload: records that stand for several segments, because the interface cuts or joins them (TSO, GSO, GRO, LRO), and
//! checksums that the interface fills in.

use hindflight_decoder::{Checksum, Segment};

use crate::rows::{Direction, Event, EventKind};

/// Segments that the record of `segment` stands for; `mss_bytes` is the MSS option of its receiver.
///
/// RFC 6691 §2: the sender deducts the options of IP and TCP from the MSS.
#[inline]
pub fn segments_n(segment: &Segment, mss_bytes: i64) -> u16 {
    let payload_bytes = i64::from(segment.payload_bytes);
    if payload_bytes <= mss_bytes {
        return 1;
    }
    u16::try_from(
        payload_bytes
            .unsigned_abs()
            .div_ceil(piece_bytes(segment, mss_bytes)),
    )
    .unwrap_or(u16::MAX)
}

/// Payload of each of the segments.
pub fn piece_bytes(segment: &Segment, mss_bytes: i64) -> u64 {
    let fixed_bytes = if segment.src.is_ipv4() { 40 } else { 60 };
    let header_bytes = i64::from(segment.ip_bytes) - i64::from(segment.payload_bytes);
    let options_bytes = (header_bytes - fixed_bytes).max(0);
    (mss_bytes - options_bytes).max(1).unsigned_abs()
}

/// Whether the segments of one direction arrive with right checksums.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Integrity {
    good: u32,
    bad: u32,
}

/// What the checksums of a segment show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing wrong.
    Sound,
    /// Wrong, but so are those before: an offload that leaves other values in the field.
    Unusual,
    /// Damaged on the way: the receiver drops it (RFC 9293 §3.10.7.4).
    Corrupted,
}

impl Integrity {
    /// Judges a segment.
    #[inline]
    pub fn judge(&mut self, segment: &Segment) -> Verdict {
        let checksums = [segment.ip_checksum, segment.tcp_checksum];
        if !checksums.contains(&Checksum::Bad) {
            let good = checksums.contains(&Checksum::Good);
            self.good = self.good.saturating_add(u32::from(good));
            return Verdict::Sound;
        }
        self.bad = self.bad.saturating_add(1);
        if self.good >= self.bad {
            Verdict::Corrupted
        } else {
            Verdict::Unusual
        }
    }
}

/// Replaces each loss of more than `size_bytes` among `events` from index `from`, of `direction`, by one per segment.
/// One of more segments than a record can stand for is no loss of a record.
pub fn split_losses(events: &mut Vec<Event>, from: usize, direction: Direction, size_bytes: i64) {
    let pieces = size_bytes + 2..=size_bytes.saturating_mul(i64::from(u16::MAX));
    let long = |event: &Event| {
        let octets = event.seq_start.zip(event.seq_end);
        event.direction == direction
            && event.copy.is_some()
            && matches!(event.kind, EventKind::Loss | EventKind::Undecided)
            && octets.is_some_and(|(start, end)| pieces.contains(&(end - start)))
    };
    if size_bytes <= 0 || !events.iter().skip(from).any(long) {
        return;
    }
    let found: Vec<Event> = events.drain(from..).collect();
    for event in found {
        let (Some(mut start), Some(end), true) = (event.seq_start, event.seq_end, long(&event))
        else {
            events.push(event);
            continue;
        };
        while start < end {
            // A SYN or FIN belongs to the segment beside it.
            let next = if end - start <= size_bytes + 1 {
                end
            } else {
                start + size_bytes
            };
            events.push(Event {
                seq_start: Some(start),
                seq_end: Some(next),
                ..event
            });
            start = next;
        }
    }
}
