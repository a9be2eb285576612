//! Memory that the connections through a proxy share, and what each of them may promise of it.
//!
//! Does not depend on the rule of a window. Read `docs/proxies.md`, "Shared memory", first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::tcp::receiver::window_scale;

/// Memory of a proxy for several connections.
#[derive(Debug)]
pub struct Pool {
    capacity_bytes: u64,
    spare_bytes: u64,
    /// What the connections store.
    stored_bytes: AtomicU64,
    /// What they store and may still receive within the windows that they have promised; the least promise of each at least.
    reserved_bytes: AtomicU64,
    open: AtomicU32,
}

/// What a connection may always promise of a pool: a full segment, in whole units of the window scale that a buffer of
/// `buffer_bytes` calls for (less would not be a segment on the wire).
pub fn min_promise(smss_bytes: u64, buffer_bytes: u64) -> u64 {
    smss_bytes.next_multiple_of(1 << window_scale(buffer_bytes))
}

impl Pool {
    /// `capacity_bytes` for as many connections as take a [`Share`]; what there is beyond the least promises of all of them
    /// gives each `spare_bytes`.
    pub fn new(capacity_bytes: u64, spare_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            capacity_bytes,
            spare_bytes,
            stored_bytes: AtomicU64::new(0),
            reserved_bytes: AtomicU64::new(0),
            open: AtomicU32::new(0),
        })
    }

    /// What a connection that may always promise `least_bytes` may promise before any is open. One with a handshake promises
    /// more when its SYN arrives: until then others may take what is spare.
    pub fn first_part(&self, least_bytes: u64, handshake: bool) -> Part {
        let own = least_bytes + if handshake { 0 } else { self.spare_bytes };
        Part {
            whole: own,
            free: own,
            room: own,
        }
    }
}

/// A connection's part in a pool.
#[derive(Debug)]
pub struct Share {
    pool: Arc<Pool>,
    least_bytes: u64,
    stored_bytes: u64,
    reserved_bytes: u64,
    open: bool,
}

/// What a connection may make of the pool at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Octets of the pool for each open connection, if all have the same.
    pub whole: u64,
    /// The same of what is free in it.
    pub free: u64,
    /// Octets that the others have not reserved.
    pub room: u64,
}

impl Share {
    /// A share of a connection that may always promise `least_bytes`.
    pub fn new(pool: Arc<Pool>, least_bytes: u64) -> Self {
        pool.reserved_bytes.fetch_add(least_bytes, Relaxed);
        Self {
            pool,
            least_bytes,
            stored_bytes: 0,
            reserved_bytes: least_bytes,
            open: false,
        }
    }

    /// The connection has opened or ended.
    pub fn note_open(&mut self, open: bool) {
        if open == std::mem::replace(&mut self.open, open) {
            return;
        }
        if open {
            self.pool.open.fetch_add(1, Relaxed);
        } else {
            self.pool.open.fetch_sub(1, Relaxed);
        }
    }

    /// The connection stores so many octets now.
    pub fn store(&mut self, stored_bytes: u64) {
        let before = std::mem::replace(&mut self.stored_bytes, stored_bytes);
        change(&self.pool.stored_bytes, before, stored_bytes);
        debug_assert!(
            self.pool.stored_bytes.load(Relaxed) <= self.pool.capacity_bytes,
            "the pool overflows"
        );
    }

    /// It stores, or may receive within the window that it has promised, so many octets.
    pub fn reserve(&mut self, reserved_bytes: u64) {
        let reserved = reserved_bytes.max(self.least_bytes);
        let before = std::mem::replace(&mut self.reserved_bytes, reserved);
        change(&self.pool.reserved_bytes, before, reserved);
    }

    /// What the connection may make of the pool.
    pub fn part(&self) -> Part {
        let open = u64::from(self.pool.open.load(Relaxed).max(1));
        let capacity = self.pool.capacity_bytes;
        let others = self.pool.reserved_bytes.load(Relaxed) - self.reserved_bytes;
        Part {
            whole: capacity / open,
            free: capacity.saturating_sub(self.pool.stored_bytes.load(Relaxed)) / open,
            room: capacity.saturating_sub(others),
        }
    }
}

fn change(total: &AtomicU64, before: u64, after: u64) {
    if after >= before {
        total.fetch_add(after - before, Relaxed);
    } else {
        total.fetch_sub(before - after, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connection_without_a_handshake_promises_what_is_spare_before_its_first_segment() {
        let pool = Pool::new(10_000, 3000);
        assert_eq!(pool.first_part(1000, true).whole, 1000);
        assert_eq!(pool.first_part(1000, false).whole, 4000);
    }

    #[test]
    fn a_part_is_equal_for_all_that_are_open_and_leaves_each_other_one_a_packet() {
        let pool = Pool::new(10_000, 0);
        let mut shares: Vec<Share> = (0..3)
            .map(|_| Share::new(Arc::clone(&pool), 1000))
            .collect();
        let part = |share: &Share| {
            let Part { whole, free, room } = share.part();
            [whole, free, room]
        };
        assert_eq!(part(&shares[0]), [10_000, 10_000, 8000]);
        for share in &mut shares[..2] {
            share.note_open(true);
            share.note_open(true);
        }
        shares[0].store(4000);
        shares[0].reserve(7000);
        assert_eq!(part(&shares[1]), [5000, 3000, 2000]);
        assert_eq!(part(&shares[0]), [5000, 3000, 8000]);
        shares[0].note_open(false);
        shares[0].store(0);
        shares[0].reserve(0);
        assert_eq!(part(&shares[1]), [10_000, 10_000, 8000]);
    }
}
