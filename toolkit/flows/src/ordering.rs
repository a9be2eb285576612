//! The order in which a sender sent two segments, from their timestamps (RFC 7323 §3) or IPv4 IDs (RFC 6864 §3).
//!
//! Downstream of a loss, a retransmission looks like a segment that was delayed. The order of sending distinguishes
//! them.

use crate::scoreboard::Transmission;

/// Maximum step between consecutive IPv4 IDs of a sender that increments them.
const MAX_ID_STEP: u16 = 64;

/// Minimum number of such steps before the IDs are used.
const MIN_ID_STEPS: u32 = 8;

/// Minimum number of new segments, for each that follows IDs spent elsewhere, from which the IDs count the packets of
/// the connection.
const MIN_OWN_STEPS: u32 = 8;

/// Determines whether the IPv4 IDs of a direction increment, so that they give the order of sending, and whether the
/// host increments them for this connection alone, so that they count its packets. RFC 6864 leaves both to the host.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct SendOrder {
    last_id: Option<u16>,
    small_steps: u32,
    other_steps: u32,
    /// From the SYN to the packet that completes the handshake, the step was as many packets as the sender sent, so
    /// that the IDs are random in one of 2^16 cases only.
    begins_in_step: bool,
    /// Steps as the sequence numbers have them, from the handshake on, and larger ones where no packet can be missing.
    own_steps: u32,
    foreign_steps: u32,
}

impl SendOrder {
    /// Processes the ID of the packet that completes the handshake, the number `packets` after the SYN, before
    /// [`Self::observe`]. Returns whether the IDs count.
    pub fn observe_handshake(&mut self, ip_id: Option<u16>, packets: u16) -> bool {
        let step = self
            .last_id
            .zip(ip_id)
            .map(|(last, id)| id.wrapping_sub(last));
        self.begins_in_step = step == Some(packets);
        self.own_steps = u32::from(self.begins_in_step);
        self.begins_in_step
    }

    /// Processes the ID of the next segment.
    pub fn observe(&mut self, ip_id: Option<u16>) {
        if let (Some(last), Some(id)) = (self.last_id, ip_id) {
            if (1..=MAX_ID_STEP).contains(&id.wrapping_sub(last)) {
                self.small_steps = self.small_steps.saturating_add(1);
            } else {
                self.other_steps = self.other_steps.saturating_add(1);
            }
        }
        self.last_id = ip_id.or(self.last_id);
    }

    /// Whether the sender increments the IDs.
    pub fn ids_increment(&self) -> bool {
        let begins = self.begins_in_step && self.other_steps == 0;
        begins || (self.small_steps >= MIN_ID_STEPS && self.small_steps / 4 >= self.other_steps)
    }

    /// Processes whether the step before a new segment, before which nothing can be missing but what its sequence
    /// number shows, is as that has it. If not, the host spent IDs on other connections.
    pub fn observe_new(&mut self, own: bool) {
        let steps = if own {
            &mut self.own_steps
        } else {
            &mut self.foreign_steps
        };
        *steps = steps.saturating_add(1);
    }

    /// Whether the IDs count the packets of this connection.
    pub fn ids_count(&self) -> bool {
        self.ids_increment() && self.own_steps / MIN_OWN_STEPS >= self.foreign_steps
    }

    /// Whether `segment` was sent later than `reference`; `None` if neither timestamps nor IDs decide.
    pub fn sent_later(&self, segment: &Transmission, reference: &Transmission) -> Option<bool> {
        if let (Some(val), Some(reference)) = (segment.ts_val, reference.ts_val) {
            let step = val.wrapping_sub(reference) as i32;
            if step != 0 {
                return Some(step > 0);
            }
        }
        if let (Some(id), Some(reference)) = (segment.ip_id, reference.ip_id) {
            if id != reference && self.ids_increment() {
                return Some((id.wrapping_sub(reference) as i16) > 0);
            }
        }
        None
    }
}

/// Whether timestamp `val` is older than `reference` (RFC 7323 §5.2).
pub fn is_older(val: u32, reference: u32) -> bool {
    (val.wrapping_sub(reference) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(ts_val: Option<u32>, ip_id: u16) -> Transmission {
        Transmission {
            t_ns: 0,
            record: 1,
            ts_val,
            ip_id: Some(ip_id),
        }
    }

    #[test]
    fn timestamps_decide_across_their_wrap() {
        let order = SendOrder::default();
        assert_eq!(
            order.sent_later(&sent(Some(3), 0), &sent(Some(u32::MAX), 0)),
            Some(true)
        );
        assert_eq!(
            order.sent_later(&sent(Some(u32::MAX), 0), &sent(Some(3), 0)),
            Some(false)
        );
        assert_eq!(order.sent_later(&sent(Some(3), 9), &sent(Some(3), 8)), None);
    }

    #[test]
    fn incrementing_ids_decide_between_equal_timestamps() {
        let mut order = SendOrder::default();
        (65_530..=65_535)
            .chain(0..10)
            .for_each(|id| order.observe(Some(id)));
        assert_eq!(
            order.sent_later(&sent(Some(3), 2), &sent(Some(3), 65_534)),
            Some(true)
        );
        assert_eq!(
            order.sent_later(&sent(None, 65_534), &sent(None, 2)),
            Some(false)
        );
    }

    #[test]
    fn random_ids_decide_nothing() {
        let mut order = SendOrder::default();
        for id in [7, 40_000, 3, 22_000, 9_999, 64_000, 512, 31_000, 100] {
            order.observe(Some(id));
        }
        assert_eq!(order.sent_later(&sent(None, 2), &sent(None, 1)), None);
    }
}
