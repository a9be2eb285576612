//! What a proxy does at its limits: with a SYN for which there is no place, and with a connection whose time is over.
//!
//! Does not depend on windows. Read `docs/proxies.md`, "Limits", first.

use super::Proxy;
use super::admission::Decision;
use super::forwarding::Forwarding;
use crate::sim::time::{NEVER, Nanos};
use crate::tcp::segment::Segment;

impl Proxy {
    /// Whether a SYN is not to be answered now: it has no place, or it waits.
    pub(super) fn diverts_syn(&mut self, syn: &Segment, now: Nanos) -> bool {
        let Some(admission) = &mut self.admission else {
            return self.holds_syn(syn, now);
        };
        let decision = admission.decide();
        if decision != Decision::Split {
            // What it does not handle it does not end, either.
            admission.end();
        }
        match decision {
            Decision::Split => self.holds_syn(syn, now),
            Decision::Refuse => {
                self.counts.refused = 1;
                self.upstream.owe_reset();
                // Deviation: it stays refused, whoever ends before its next SYN.
                self.downstream.forget(now);
                true
            }
            Decision::Pass => {
                self.counts.unsplit = 1;
                self.release_memory();
                let mut forwarding = Forwarding::new([syn.leg, self.downstream.leg()]);
                forwarding.push(syn);
                self.forwarding = Some(Box::new(forwarding));
                true
            }
        }
    }

    /// The connection has been idle or pending for too long: both its parts are reset.
    pub(super) fn time_out(&mut self, now: Nanos) {
        self.occupancy.note(0, now);
        self.acts_at = NEVER;
        self.held_syn = None;
        self.upstream.abort();
        if self.downstream.is_opening() && !self.downstream.has_ended() {
            self.downstream.abort(now);
        } else {
            self.downstream.forget(now);
        }
        self.release_memory();
        if let Some(admission) = &mut self.admission {
            admission.end();
        }
    }
}
