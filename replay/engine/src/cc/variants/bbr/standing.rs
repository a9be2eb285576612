//! What holds from ACK to ACK while the model stays as it is, so that most ACKs need not work it out again.
//!
//! Does not depend on what changes the model: that clears `standing`.

use super::fixed::UNIT;
use super::{Bbr, Mode};
use crate::cc::evidence::AckEvidence;
use crate::sim::time::{NEVER, Nanos};

/// What holds while the model stays as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// The window that it allows.
    pub target: u64,
    /// Until then time alone changes neither mode nor minimum round-trip time.
    pub until: Nanos,
}

impl Bbr {
    /// Whether mode, minimum round-trip time and pace stay as they are with this ACK.
    #[inline(always)]
    pub(super) fn stands(&self, ack: &AckEvidence) -> bool {
        let lasts = self.standing.is_some_and(|now| ack.now <= now.until);
        lasts && !self.round.starts && !self.is_new_min_rtt(ack)
    }

    /// Not where the mode may end with any ACK, or an ACK ends an idle time.
    #[inline(never)]
    pub(super) fn standing(&self) -> Option<Standing> {
        let until = match self.mode {
            Mode::Startup if !self.full_pipe.reached => NEVER,
            Mode::ProbeBw { since, .. } if self.pacing_gain() >= UNIT => {
                since + self.min_rtt.value?
            }
            _ => return None,
        };
        let settled = !self.idle_restart && !self.output.pacer.lacks_rtt();
        settled.then(|| Standing {
            target: self.target(),
            until: until.min(self.min_rtt.seen_at + self.min_rtt_window),
        })
    }
}
