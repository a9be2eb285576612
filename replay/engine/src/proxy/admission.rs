//! How many connections a proxy handles at once, what happens to those beyond, and when it ends idle ones.
//!
//! Does not depend on TCP. Read `docs/proxies.md`, "Limits", first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::config::{BeyondLimit, LimitConfig};
use crate::sim::time::{NEVER, Nanos};

/// The connections of a proxy, which all of them count together.
#[derive(Debug)]
pub struct Gate {
    max_connections: u32,
    resume_connections: u32,
    open: AtomicU32,
    /// The limit has been reached, and not enough connections have ended since.
    is_shut: AtomicBool,
}

impl Gate {
    /// A gate without connections.
    pub fn new(limit: &LimitConfig) -> Arc<Self> {
        let max_connections = limit.max_connections;
        Arc::new(Self {
            max_connections,
            resume_connections: limit.resume_connections.unwrap_or(max_connections - 1),
            open: AtomicU32::new(0),
            is_shut: AtomicBool::new(false),
        })
    }

    fn enter(&self) -> bool {
        if self.is_shut.load(Relaxed) {
            return false;
        }
        let open = self.open.fetch_add(1, Relaxed) + 1;
        if open >= self.max_connections {
            self.is_shut.store(true, Relaxed);
        }
        true
    }

    fn leave(&self) {
        let open = self.open.fetch_sub(1, Relaxed) - 1;
        if open <= self.resume_connections {
            self.is_shut.store(false, Relaxed);
        }
    }
}

/// What a proxy does with a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It splits the connection.
    Split,
    /// It answers with a reset.
    Refuse,
    /// It passes the SYN and all that follows on, unsplit.
    Pass,
}

/// One connection at the gate of a proxy, and how long it may be idle or pending.
#[derive(Debug)]
pub struct Admission {
    gate: Option<(Arc<Gate>, BeyondLimit)>,
    /// What the first SYN decided.
    decision: Option<Decision>,
    idle_timeout: Nanos,
    pending_timeout: Nanos,
    /// It counts as one of the gate's.
    is_counted: bool,
    /// It has begun, and not ended.
    is_open: bool,
    /// The connection onward is not established.
    is_pending: bool,
    began: Nanos,
    latest: Nanos,
    /// 1 if the proxy ended it because it was idle or pending for too long.
    pub timeouts: u64,
}

impl Admission {
    /// A connection that has not begun. `[idle, pending]` are the times that it may be that.
    pub fn new(
        gate: Option<(Arc<Gate>, BeyondLimit)>,
        [idle, pending]: [Option<Nanos>; 2],
    ) -> Self {
        Self {
            gate,
            decision: None,
            idle_timeout: idle.unwrap_or(NEVER),
            pending_timeout: pending.unwrap_or(NEVER),
            is_counted: false,
            is_open: false,
            is_pending: true,
            began: 0,
            latest: 0,
            timeouts: 0,
        }
    }

    /// A SYN arrives: whether there is a place for its connection. What the first one decides holds for those that come again.
    pub fn decide(&mut self) -> Decision {
        let decision = self.decision.unwrap_or_else(|| self.enter());
        self.decision = Some(decision);
        decision
    }

    fn enter(&mut self) -> Decision {
        let Some((gate, beyond)) = &self.gate else {
            return Decision::Split;
        };
        self.is_counted = gate.enter();
        match beyond {
            _ if self.is_counted => Decision::Split,
            BeyondLimit::Refuse => Decision::Refuse,
            BeyondLimit::Pass => Decision::Pass,
        }
    }

    /// A segment of the connection arrived.
    pub fn note_segment(&mut self, now: Nanos) {
        if !self.is_open {
            (self.is_open, self.began) = (true, now);
        }
        self.latest = now;
    }

    /// Whether the connection onward is established, and whether both have ended.
    pub fn note_state(&mut self, is_established: bool, has_ended: bool) {
        self.is_pending &= !is_established;
        if has_ended {
            self.end();
        }
    }

    /// The connection is over.
    pub fn end(&mut self) {
        self.is_open = false;
        // Nothing of what still arrives begins it again.
        (self.idle_timeout, self.pending_timeout) = (NEVER, NEVER);
        if std::mem::take(&mut self.is_counted)
            && let Some((gate, _)) = self.gate.take()
        {
            gate.leave();
        }
    }

    /// When it has been idle or pending for too long.
    pub fn deadline(&self) -> Nanos {
        if !self.is_open {
            return NEVER;
        }
        let pending = if self.is_pending {
            self.began.saturating_add(self.pending_timeout)
        } else {
            NEVER
        };
        pending.min(self.latest.saturating_add(self.idle_timeout))
    }

    /// Whether its time is over.
    pub fn expires(&mut self, now: Nanos) -> bool {
        let expires = self.deadline() <= now;
        self.timeouts += u64::from(expires);
        expires
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(max_connections: u32, resume_connections: Option<u32>) -> LimitConfig {
        LimitConfig {
            name: "gateway".into(),
            max_connections,
            resume_connections,
            beyond: BeyondLimit::Refuse,
        }
    }

    #[test]
    fn a_full_gate_opens_again_when_few_enough_connections_are_left() {
        let gate = Gate::new(&limit(4, Some(2)));
        let mut all: Vec<Admission> = (0..7)
            .map(|_| Admission::new(Some((Arc::clone(&gate), BeyondLimit::Refuse)), [None; 2]))
            .collect();
        let decisions: Vec<Decision> = all[..6].iter_mut().map(Admission::decide).collect();
        assert_eq!(decisions[..4], [Decision::Split; 4]);
        assert_eq!(decisions[4..], [Decision::Refuse; 2]);
        // A SYN that comes again counts once.
        assert_eq!(all[0].decide(), Decision::Split);
        all[0].note_state(true, true);
        assert_eq!(all[4].decide(), Decision::Refuse);
        all[1].note_state(true, true);
        // What has been decided stays so.
        assert_eq!(all[4].decide(), Decision::Refuse);
        assert_eq!(all[6].decide(), Decision::Split);
    }

    #[test]
    fn a_connection_expires_when_it_is_idle_or_when_nobody_answers_onward() {
        let mut admission = Admission::new(None, [Some(100), Some(30)]);
        assert_eq!(admission.deadline(), NEVER);
        admission.note_segment(10);
        admission.note_segment(20);
        assert_eq!(admission.deadline(), 40);
        admission.note_state(true, false);
        assert_eq!(admission.deadline(), 120);
        assert!(!admission.expires(119) && admission.expires(120));
        admission.end();
        admission.note_segment(200);
        assert_eq!(admission.deadline(), NEVER);
    }
}
