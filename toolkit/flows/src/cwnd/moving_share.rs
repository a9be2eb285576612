//! A share of the last events, as a moving average.

/// Moving average of the share of events that hit, in 1/1024 x 1/256 to preserve small steps.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct MovingShare(i64);

impl MovingShare {
    /// All events hit.
    pub(super) const ALL: Self = Self(1024 << 8);
    /// No event hits.
    pub(super) const NONE: Self = Self(0);

    /// Adds an event with weight 1/`divisor`.
    pub(super) fn add(&mut self, hit: bool, divisor: i64) {
        let Self(value) = if hit { Self::ALL } else { Self::NONE };
        self.0 += (value - self.0) / divisor;
    }

    /// Whether it is below `share`, in 1/1024.
    pub(super) fn is_below(&self, share: i64) -> bool {
        self.0 < share << 8
    }

    /// Whether it is above `share`, in 1/1024.
    pub(super) fn is_above(&self, share: i64) -> bool {
        self.0 > share << 8
    }
}
