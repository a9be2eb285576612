//! 32-bit sequence numbers into 64-bit positions relative to a direction's first. Knows nothing of segments.
//! Read RFC 9293 §3.4 first.

/// Greatest step that is taken for progress rather than for a damaged or forged number.
///
/// No window can be larger (RFC 7323 §2.3: 2^30 octets), so a number farther away belongs to no live segment.
pub const MAX_STEP: i64 = 1 << 30;

/// Unwraps one direction's sequence numbers, each to the position nearest to the newest one known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// Raw number of position 0; none until a number of this direction was seen.
    isn: Option<u32>,
    /// Newest position known.
    newest: i64,
}

impl Origin {
    /// Sets position 0 to `isn`, if nothing is known yet.
    pub fn anchor(&mut self, isn: u32) {
        self.isn.get_or_insert(isn);
    }

    /// The raw number of position 0.
    pub fn isn(&self) -> Option<u32> {
        self.isn
    }

    /// Position of `raw`. The first number seen without an anchor becomes position 1.
    pub fn position(&mut self, raw: u32) -> i64 {
        self.isn.get_or_insert(raw.wrapping_sub(1));
        self.near(raw, self.newest)
    }

    /// Position of `raw` nearest to `reference`; `reference` itself where nothing is known.
    pub fn near(&self, raw: u32, reference: i64) -> i64 {
        let Some(isn) = self.isn else {
            return reference;
        };
        let expected = isn.wrapping_add(reference as u32);
        reference + i64::from(raw.wrapping_sub(expected) as i32)
    }

    /// Takes `position` for the newest if it is ahead by no more than a window can be.
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
    fn counts_on_through_many_wraps() {
        let mut origin = Origin::default();
        origin.anchor(u32::MAX - 10);
        let mut raw = u32::MAX - 10;
        for step in 0..20_i64 {
            let position = origin.position(raw);
            assert_eq!(position, step * 1_000_000_000);
            origin.advance(position);
            raw = raw.wrapping_add(1_000_000_000);
        }
    }

    #[test]
    fn an_old_segment_lies_behind() {
        let mut origin = Origin::default();
        assert_eq!(origin.position(5), 1);
        origin.advance(1);
        assert_eq!(origin.position(4_294_967_295), -5);
        assert_eq!(origin.position(105), 101);
    }

    #[test]
    fn a_number_out_of_reach_moves_nothing() {
        let mut origin = Origin::default();
        origin.anchor(0);
        let wild = origin.position(1 << 31);
        origin.advance(wild);
        assert_eq!(origin.position(7), 7);
    }
}
