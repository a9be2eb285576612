//! The retransmissions of each range, newest first, in one arena per direction. Knows nothing of ranges.
//! Read [`crate::scoreboard`] first.

use crate::evidence::Reason;
use crate::rows::EventCause;
use crate::scoreboard::Transmission;

/// Retransmissions kept at most: a window that was lost as a whole, and then some.
const MAX_ENTRIES: usize = 1 << 19;

/// One retransmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copy {
    /// When and as which record it passed.
    pub transmission: Transmission,
    /// First octet of the segment that carried it.
    pub seq_start: i64,
    /// One past its last octet.
    pub seq_end: i64,
    /// What triggered it.
    pub cause: EventCause,
    /// Why we think so.
    pub reason: Reason,
    /// The first of the ranges that the segment repeats: this one speaks for the segment.
    pub lead: bool,
}

/// Chains of retransmissions. Entries of finished chains are used again, so a long flow allocates no more than its
/// worst moment needs.
#[derive(Debug, Default)]
pub struct History {
    entries: Vec<(Copy, Option<u32>)>,
    free: Option<u32>,
}

impl History {
    /// Puts `copy` before the chain `older` and returns the new chain; none if there is no room for more.
    pub fn push(&mut self, copy: Copy, older: Option<u32>) -> Option<u32> {
        if let Some(at) = self.free {
            let entry = &mut self.entries[at as usize];
            self.free = entry.1;
            *entry = (copy, older);
            return Some(at);
        }
        if self.entries.len() == MAX_ENTRIES {
            return None;
        }
        let at = self.entries.len() as u32;
        self.entries.push((copy, older));
        Some(at)
    }

    /// The newest entry of a chain.
    pub fn at(&self, chain: u32) -> &Copy {
        &self.entries[chain as usize].0
    }

    /// The entries of a chain, newest first.
    pub fn chain(&self, chain: Option<u32>) -> impl Iterator<Item = &Copy> {
        let mut next = chain;
        std::iter::from_fn(move || {
            let (copy, older) = self.entries.get(next? as usize)?;
            next = *older;
            Some(copy)
        })
    }

    /// Copies a chain for the second half of a range that is split; it speaks for no segment.
    pub fn duplicate(&mut self, chain: Option<u32>) -> Option<u32> {
        let copies: Vec<Copy> = self.chain(chain).copied().collect();
        let mut twin = None;
        for copy in copies.iter().rev() {
            twin = self
                .push(
                    Copy {
                        lead: false,
                        ..*copy
                    },
                    twin,
                )
                .or(twin);
        }
        twin
    }

    /// Gives the entries of a chain back.
    pub fn free(&mut self, chain: Option<u32>) {
        let mut next = chain;
        while let Some(at) = next {
            let entry = &mut self.entries[at as usize];
            next = entry.1;
            entry.1 = self.free;
            self.free = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(record: u64) -> Copy {
        let transmission = Transmission {
            t_ns: 0,
            record,
            ts_val: None,
            ip_id: None,
        };
        Copy {
            transmission,
            seq_start: 0,
            seq_end: 1,
            cause: EventCause::Fast,
            reason: Reason::None,
            lead: true,
        }
    }

    #[test]
    fn chains_are_newest_first_and_entries_return() {
        let mut history = History::default();
        let first = history.push(copy(1), None);
        let second = history.push(copy(2), first);
        let twin = history.duplicate(second);
        let records = |chain| {
            history
                .chain(chain)
                .map(|c| (c.transmission.record, c.lead))
                .collect::<Vec<_>>()
        };
        assert_eq!(records(second), [(2, true), (1, true)]);
        assert_eq!(records(twin), [(2, false), (1, false)]);
        history.free(second);
        history.free(twin);
        for record in 0..4 {
            history.push(copy(record), None);
        }
        assert_eq!(history.entries.len(), 4);
    }
}
