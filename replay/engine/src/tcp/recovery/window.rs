//! What governs transmission in fast recovery: the state that an algorithm keeps while it recovers, and how much it lets
//! be in flight.
//!
//! Does not depend on how a recovery begins or ends.

use super::prr::Prr;
use crate::tcp::scoreboard::Scoreboard;

/// What governs transmission in fast recovery.
#[derive(Clone, Debug)]
pub enum RecoveryWindow {
    /// cwnd inflated by duplicate ACKs, against all outstanding (RFC 5681 §3.2, RFC 6582 §3.2).
    Inflated {
        /// Segments on top of cwnd; below zero after large partial ACKs.
        extra: f64,
        /// Segments that partial ACKs took from cwnd for good, under ns-2's rules.
        deflation: f64,
        /// The first partial ACK has been seen.
        partial_seen: bool,
    },
    /// cwnd against the pipe (RFC 6675 §5).
    Pipe,
    /// The window of a controller that models the path, against the pipe.
    Model,
    /// The proportional rate reduction's window against the pipe.
    Prr(Prr),
    /// cwnd and what a rampdown leaves above it, against the pipe, as FACK counts it.
    Forward {
        /// Number of the segment after the forward-most one that SACK has reported.
        edge: u64,
        /// Of each segment that leaves the network, the part that is not replaced.
        share: f64,
        /// Segments above cwnd.
        trim: f64,
    },
    /// cwnd, or while it halves the rate what remains of the window before the loss, against the pipe, as ns-2's
    /// TCP/Linux does.
    Halving {
        /// Segments that may be in flight until cwnd is reached.
        limit: u32,
    },
    /// cwnd against a separate count of what is in flight, as ns-2 and AeroTCP keep it.
    Counted {
        /// Segments; below zero after many partial ACKs.
        pipe: i64,
    },
    /// The same, with the width that Super TCP assumes for the gap.
    Gap {
        /// Segments.
        pipe: i64,
        /// Duplicate ACKs until the first partial ACK: segments that have arrived beyond the hole; none after it.
        arrived: Option<u32>,
    },
}

impl RecoveryWindow {
    /// cwnd inflated by the three duplicate ACKs that started recovery (RFC 5681 §3.2 step 3).
    pub const INFLATED: Self = Self::Inflated {
        extra: 3.0,
        deflation: 0.0,
        partial_seen: false,
    };

    /// Segments that count against the window.
    pub fn in_flight(&self, board: &Scoreboard) -> u32 {
        match self {
            // RFC 5681 §3.2 and RFC 6582 know no pipe: all that is outstanding counts, duplicate ACKs inflate cwnd.
            Self::Inflated { .. } => board.outstanding(),
            Self::Counted { pipe } | Self::Gap { pipe, .. } => u32::try_from(*pipe).unwrap_or(0),
            Self::Pipe
            | Self::Model
            | Self::Prr(_)
            | Self::Forward { .. }
            | Self::Halving { .. } => board.pipe(),
        }
    }

    /// The window against which they count, in segments.
    pub fn window(&self, cwnd: f64) -> f64 {
        match self {
            Self::Inflated {
                extra, deflation, ..
            } => (cwnd + extra - deflation).max(1.0),
            Self::Pipe | Self::Model | Self::Counted { .. } | Self::Gap { .. } => cwnd,
            Self::Forward { trim, .. } => cwnd + trim,
            Self::Halving { limit } => cwnd.max(f64::from(*limit)),
            Self::Prr(prr) => prr.window(),
        }
    }

    /// A segment left.
    pub fn on_send(&mut self) {
        match self {
            Self::Prr(prr) => prr.on_send(),
            Self::Counted { pipe } | Self::Gap { pipe, .. } => *pipe += 1,
            Self::Inflated { .. }
            | Self::Pipe
            | Self::Model
            | Self::Forward { .. }
            | Self::Halving { .. } => {}
        }
    }
}
