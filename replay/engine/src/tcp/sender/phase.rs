//! The phase of the sender, an enum that owns its data, and the record of what stopped transmission.
//!
//! Does not depend on how a phase is entered or left: `tcp/recovery` and `timeout` do that.

use crate::tcp::recovery::window::RecoveryWindow;

/// Phase of a sender; with a separate tag, as [`Controller`](crate::cc::Controller) has one.
#[derive(Clone, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Nothing is known to be lost.
    Open {
        /// Duplicate ACKs since `snd_una` last moved.
        dup_acks: u32,
    },
    /// Fast recovery.
    Recovery(FastRecovery),
    /// Retransmitting after a timeout.
    Loss {
        /// Octet after the last one sent when the timer expired.
        recovery_point: u64,
        /// Duplicate ACKs since `snd_una` last moved, where limited transmit goes on meanwhile (ns-2).
        dup_acks: u32,
    },
}

impl Phase {
    /// Retransmitting after a timeout, up to `recovery_point`.
    pub fn after_timeout(recovery_point: u64) -> Self {
        Self::Loss {
            recovery_point,
            dup_acks: 0,
        }
    }
}

/// Fast recovery's data.
#[derive(Clone, Debug)]
pub struct FastRecovery {
    /// Octet after the last one sent when it began.
    pub recovery_point: u64,
    /// What governs transmission meanwhile.
    pub window: RecoveryWindow,
    /// RFC 6675 §4, NextSeg (3) and (4): where to look next for speculative retransmissions, and whether the one rescue
    /// retransmission has been spent.
    pub speculative_from: u64,
    /// See `speculative_from`.
    pub rescued: bool,
}

/// Whether the window was used, remembered over a round trip as Linux does.
#[derive(Clone, Copy, Debug, Default)]
pub struct CwndUsage {
    limited: bool,
    max_outstanding: u32,
    round_end: u64,
    stopped_otherwise: bool,
}

impl CwndUsage {
    /// Called when transmission stops: `limited` if cwnd stopped it.
    #[inline]
    pub fn note(&mut self, limited: bool, outstanding: u32, snd_una: u64, snd_nxt: u64) {
        self.stopped_otherwise = !limited;
        if limited
            || snd_una >= self.round_end
            || (!self.limited && outstanding > self.max_outstanding)
        {
            self.limited = limited;
            self.max_outstanding = outstanding;
            self.round_end = snd_nxt;
        }
    }

    /// Whether cwnd counts as used: in slow start half of it is enough.
    #[inline(always)]
    pub fn is_limited(&self, cwnd: f64, in_slow_start: impl FnOnce() -> bool) -> bool {
        self.limited || cwnd < 2.0 * f64::from(self.max_outstanding) && in_slow_start()
    }

    /// Something other than cwnd stopped transmission last.
    pub fn stopped_otherwise(&self) -> bool {
        self.stopped_otherwise
    }
}
