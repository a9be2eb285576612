//! Unwrapping of sequence numbers (RFC 9293 §3.4): from 32 bits to 64-bit positions relative to the initial sequence
//! number.

/// Maximum distance of a sequence number from the newest one.
///
/// The maximum window is 2^30 octets (RFC 7323 §2.3), so a number that is farther away is damaged or forged.
pub const MAX_STEP: i64 = 1 << 30;

/// The sequence space of one direction. Each number is unwrapped to the position nearest to the newest one.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct SequenceSpace {
    /// Sequence number of position 0; `None` until a number of this direction was seen.
    isn: Option<u32>,
    /// Newest position.
    newest: i64,
}

impl SequenceSpace {
    /// Sets the initial sequence number, unless it is known.
    pub fn set_isn(&mut self, isn: u32) {
        self.isn.get_or_insert(isn);
    }

    /// The initial sequence number, if known.
    pub fn isn(&self) -> Option<u32> {
        self.isn
    }

    /// Position of `raw`. If the initial sequence number is unknown, the position is 1.
    pub fn position(&mut self, raw: u32) -> i64 {
        self.isn.get_or_insert(raw.wrapping_sub(1));
        self.near(raw, self.newest)
    }

    /// Position of `raw`, without an effect on the initial sequence number; 1 if that is unknown.
    pub fn near_newest(&self, raw: u32) -> i64 {
        if self.isn.is_some() {
            self.near(raw, self.newest)
        } else {
            1
        }
    }

    /// Position of `raw` nearest to `reference`; `reference` if the initial sequence number is unknown.
    pub fn near(&self, raw: u32, reference: i64) -> i64 {
        let Some(isn) = self.isn else {
            return reference;
        };
        let expected = isn.wrapping_add(reference as u32);
        reference + i64::from(raw.wrapping_sub(expected) as i32)
    }

    /// Makes `position` the newest if it is ahead by at most [`MAX_STEP`].
    pub fn advance(&mut self, position: i64) {
        if position > self.newest && position - self.newest <= MAX_STEP {
            self.newest = position;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_increase_across_wraps() {
        let mut space = SequenceSpace::default();
        space.set_isn(u32::MAX - 10);
        let mut raw = u32::MAX - 10;
        for step in 0..20_i64 {
            let position = space.position(raw);
            assert_eq!(position, step * 1_000_000_000);
            space.advance(position);
            raw = raw.wrapping_add(1_000_000_000);
        }
    }

    #[test]
    fn an_old_number_has_a_lower_position() {
        let mut space = SequenceSpace::default();
        assert_eq!(space.position(5), 1);
        space.advance(1);
        assert_eq!(space.position(4_294_967_295), -5);
        assert_eq!(space.position(105), 101);
    }

    #[test]
    fn a_distant_number_does_not_become_the_newest() {
        let mut space = SequenceSpace::default();
        space.set_isn(0);
        let distant = space.position(1 << 31);
        space.advance(distant);
        assert_eq!(space.position(7), 7);
    }
}
