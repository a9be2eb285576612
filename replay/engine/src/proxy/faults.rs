//! What befalls a proxy: it restarts, fails, moves to another node, or damages what it stores.
//!
//! Does not depend on windows. Read `docs/proxies.md`, "Faults", first.

use super::Proxy;
use crate::config::{FaultConfig, FaultKind};
use crate::sim::time::{NEVER, Nanos};
use crate::tcp::segment::{Direction, Segment, flags};

impl Proxy {
    /// Whether a segment does not reach the state of its connection: it is lost, or on its way to another node.
    pub(super) fn misses(&mut self, segment: &Segment, now: Nanos) -> bool {
        if let Some(kind) = self.crash {
            self.refuse(segment, kind, now);
            return true;
        }
        let moves = self.moves_until > 0;
        self.counts.dropped += u64::from(moves);
        moves
    }

    /// A fault befalls it. What passes unsplit has no state here.
    pub(super) fn suffer(&mut self, fault: FaultConfig, now: Nanos) {
        if self.crash.is_some() || self.forwarding.is_some() && fault.kind != FaultKind::Failure {
            return;
        }
        match (fault.kind, fault.transfer_ns) {
            (FaultKind::Corruption, _) => {
                let stored = (self.downstream.snd_una(), self.upstream.rcv_nxt());
                if let Some(damage) = &mut self.damage {
                    damage.damage(stored.0, stored.1);
                }
            }
            (FaultKind::Move, Some(time)) => self.moves_until = now + time,
            (kind, _) => self.lose_state(kind, now),
        }
    }

    /// All that is stored is lost, and the state of the connections.
    fn lose_state(&mut self, kind: FaultKind, now: Nanos) {
        if self.forwarding.is_some() {
            // It has no state of such a connection, and still is no end of it.
            self.crash = Some(kind);
            return;
        }
        // Without a handshake a connection is established before its flow starts.
        let begun =
            now >= self.starts_at && (self.upstream.is_readable() || self.downstream.is_opening());
        if !begun {
            if kind == FaultKind::Failure {
                self.crash = Some(kind);
                self.acts_at = NEVER;
            }
            return;
        }
        self.occupancy.note(0, now);
        self.crash = Some(kind);
        self.moves_until = 0;
        self.acts_at = NEVER;
        self.held_syn = None;
        self.request = None;
        self.upstream.forget();
        self.downstream.forget(now);
        self.release_memory();
        if let Some(admission) = &mut self.admission {
            admission.end();
        }
    }

    /// A segment arrives for a connection that is no longer known (RFC 9293 §3.5.2).
    fn refuse(&mut self, segment: &Segment, kind: FaultKind, now: Nanos) {
        if kind == FaultKind::Failure || segment.has(flags::RST) {
            return;
        }
        match segment.direction {
            Direction::Forward => self.upstream.owe_reset(),
            Direction::Reverse => self.downstream.receive(segment, now),
        }
    }
}
