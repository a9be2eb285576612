//! Segments far ahead of all others: forged, damaged, or of another incarnation of the connection.

/// What a window may be exceeded by. A capture that lost ACKs shows less of the window than was open.
const MARGIN_BYTES: i64 = 1 << 20;

/// Distance that counts as far if no window is known.
const FAR_BYTES: i64 = 1 << 26;

/// Recognises such segments of one direction.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Stray {
    /// Largest window of the receiver.
    max_wnd_bytes: i64,
    /// End of the last segment that was far ahead.
    last_end: Option<i64>,
}

impl Stray {
    /// Takes a window that the receiver advertised.
    #[inline]
    pub fn window(&mut self, wnd_bytes: Option<i64>) {
        self.max_wnd_bytes = self.max_wnd_bytes.max(wnd_bytes.unwrap_or(0));
    }

    /// Whether the segment `start..end` is far ahead of `snd_nxt`. If the next one follows it, the capture lost what
    /// is between, and neither is.
    #[inline]
    pub fn is_stray(&mut self, (start, end): (i64, i64), snd_nxt: i64) -> bool {
        let far_bytes = match self.max_wnd_bytes {
            0 => FAR_BYTES,
            known => 2 * known + MARGIN_BYTES,
        };
        if start - snd_nxt <= far_bytes {
            return false;
        }
        let follows = self
            .last_end
            .is_some_and(|last| (start - last).abs() <= far_bytes);
        self.last_end = Some(end);
        !follows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_far_ahead_is_stray_and_the_next_beside_it_is_not() {
        let mut stray = Stray::default();
        stray.window(Some(65_535));
        assert!(!stray.is_stray((1000, 2000), 0));
        assert!(!stray.is_stray((MARGIN_BYTES + 131_070, MARGIN_BYTES + 131_071), 0));
        assert!(stray.is_stray((1 << 29, (1 << 29) + 1000), 2000));
        assert!(stray.is_stray((1 << 28, (1 << 28) + 1000), 2000));
        assert!(!stray.is_stray(((1 << 28) + 1000, (1 << 28) + 2000), 2000));
    }
}
