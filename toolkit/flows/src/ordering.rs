//! Which of two segments of one direction was sent later, by what the sender wrote into them. Knows no scoreboard.
//!
//! At a capture behind the point of loss a retransmission looks like a late segment; only the sender's own marks tell
//! them apart. Read RFC 7323 §3 (timestamp clock) and RFC 6864 §3 (IPv4 ID) first.

use crate::scoreboard::Transmission;

/// A sender's IPv4 IDs count up if steps of at most this many segments make up nearly all of them.
const MAX_ID_STEP: u16 = 64;

/// Steps to be seen before IPv4 IDs are trusted.
const MIN_ID_STEPS: u32 = 8;

/// Whether a direction's IPv4 IDs count up, so that they give the order of sending.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendOrder {
    last_id: Option<u16>,
    small_steps: u32,
    other_steps: u32,
}

impl SendOrder {
    /// Takes note of the ID of the next captured segment.
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

    fn ids_count_up(&self) -> bool {
        self.small_steps >= MIN_ID_STEPS && self.small_steps / 4 >= self.other_steps
    }

    /// Whether `segment` was sent later than `reference`; none if neither timestamps nor IDs tell.
    pub fn later(&self, segment: &Transmission, reference: &Transmission) -> Option<bool> {
        if let (Some(val), Some(reference)) = (segment.ts_val, reference.ts_val) {
            let step = val.wrapping_sub(reference) as i32;
            if step != 0 {
                return Some(step > 0);
            }
        }
        if let (Some(id), Some(reference)) = (segment.ip_id, reference.ip_id) {
            if id != reference && self.ids_count_up() {
                return Some((id.wrapping_sub(reference) as i16) > 0);
            }
        }
        None
    }
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
            order.later(&sent(Some(3), 0), &sent(Some(u32::MAX), 0)),
            Some(true)
        );
        assert_eq!(
            order.later(&sent(Some(u32::MAX), 0), &sent(Some(3), 0)),
            Some(false)
        );
        assert_eq!(order.later(&sent(Some(3), 9), &sent(Some(3), 8)), None);
    }

    #[test]
    fn counting_ids_decide_between_equal_timestamps() {
        let mut order = SendOrder::default();
        (65_530..=65_535)
            .chain(0..10)
            .for_each(|id| order.observe(Some(id)));
        assert_eq!(
            order.later(&sent(Some(3), 2), &sent(Some(3), 65_534)),
            Some(true)
        );
        assert_eq!(
            order.later(&sent(None, 65_534), &sent(None, 2)),
            Some(false)
        );
    }

    #[test]
    fn random_ids_decide_nothing() {
        let mut order = SendOrder::default();
        for id in [7, 40_000, 3, 22_000, 9_999, 64_000, 512, 31_000, 100] {
            order.observe(Some(id));
        }
        assert_eq!(order.later(&sent(None, 2), &sent(None, 1)), None);
    }
}
