//! The retransmissions of each range of sequence space, as linked lists in one vector per direction.

use crate::evidence::Reason;
use crate::rows::{EventCause, Mechanism};
use crate::scoreboard::Transmission;

/// Maximum number of entries. A window of 2^18 segments (see [`crate::scoreboard`]) can be retransmitted twice.
const MAX_ENTRIES: usize = 1 << 19;

/// A retransmission.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Retransmission {
    /// Its transmission.
    pub transmission: Transmission,
    /// First octet of the segment.
    pub seq_start: i64,
    /// One past the last octet of the segment.
    pub seq_end: i64,
    /// Cause.
    pub cause: EventCause,
    /// Evidence for the cause.
    pub reason: Reason,
    /// What made the sender retransmit.
    pub mechanism: Mechanism,
    /// Of the ranges that the segment repeats, this is the one that counts the segment.
    pub primary: bool,
    /// It was lost before the capture point. The transmission is then the one that shows this, at an estimated time.
    pub not_captured: bool,
}

/// Lists of retransmissions, newest first. A list is named by the index of its newest entry. Entries of freed lists are
/// reused, so that the memory depends on the retransmissions outstanding and not on the length of the flow.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Retransmissions {
    entries: Vec<(Retransmission, Option<u32>)>,
    free: Option<u32>,
}

impl Retransmissions {
    /// Adds an entry to a list and returns the list; `None` if there are too many entries.
    pub fn push(&mut self, entry: Retransmission, list: Option<u32>) -> Option<u32> {
        if let Some(index) = self.free {
            let slot = &mut self.entries[index as usize];
            self.free = slot.1;
            *slot = (entry, list);
            return Some(index);
        }
        if self.entries.len() == MAX_ENTRIES {
            return None;
        }
        let index = self.entries.len() as u32;
        self.entries.push((entry, list));
        Some(index)
    }

    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Takes the newest entry off a list. Returns the rest of the list.
    pub fn pop(&mut self, list: u32) -> Option<u32> {
        let slot = &mut self.entries[list as usize];
        let older = std::mem::replace(&mut slot.1, self.free);
        self.free = Some(list);
        older
    }

    /// Takes up to `count` entries off a list that were lost before the capture point, just before the newest one.
    /// Returns their number.
    pub fn take_lost_before_newest(&mut self, list: u32, count: u32) -> u32 {
        let mut taken = 0;
        while taken < count
            && let Some(older) = self.entries[list as usize].1
            && self.newest(older).not_captured
        {
            self.entries[list as usize].1 = self.pop(older);
            taken += 1;
        }
        taken
    }

    /// The newest entry of a list.
    pub fn newest(&self, list: u32) -> &Retransmission {
        &self.entries[list as usize].0
    }

    /// The same, mutable.
    pub fn newest_mut(&mut self, list: u32) -> &mut Retransmission {
        &mut self.entries[list as usize].0
    }

    /// The entries of a list, newest first.
    pub fn iter(&self, list: Option<u32>) -> impl Iterator<Item = &Retransmission> {
        let mut next = list;
        std::iter::from_fn(move || {
            let (entry, older) = self.entries.get(next? as usize)?;
            next = *older;
            Some(entry)
        })
    }

    /// Copies a list for the second part of a split range. The copies are not primary.
    pub fn duplicate(&mut self, list: Option<u32>) -> Option<u32> {
        let entries: Vec<Retransmission> = self.iter(list).copied().collect();
        let mut copy = None;
        for entry in entries.iter().rev() {
            let entry = Retransmission {
                primary: false,
                ..*entry
            };
            copy = self.push(entry, copy).or(copy);
        }
        copy
    }

    /// Frees the entries of a list.
    pub fn free(&mut self, list: Option<u32>) {
        let mut next = list;
        while let Some(index) = next {
            let slot = &mut self.entries[index as usize];
            next = slot.1;
            slot.1 = self.free;
            self.free = Some(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(record: u64) -> Retransmission {
        let transmission = Transmission {
            t_ns: 0,
            record,
            ts_val: None,
            ip_id: None,
        };
        Retransmission {
            transmission,
            seq_start: 0,
            seq_end: 1,
            cause: EventCause::Fast,
            reason: Reason::None,
            mechanism: Mechanism::Fast,
            primary: true,
            not_captured: false,
        }
    }

    #[test]
    fn only_lost_entries_are_taken_from_below_the_newest_one() {
        let mut log = Retransmissions::default();
        let mut list = log.push(entry(1), None);
        for record in 2..5 {
            let not_captured = record < 4;
            list = log.push(
                Retransmission {
                    not_captured,
                    ..entry(record)
                },
                list,
            );
        }
        let list = list.expect("not full");
        assert_eq!(log.take_lost_before_newest(list, 1), 1);
        assert_eq!(log.take_lost_before_newest(list, 5), 1);
        let records = log.iter(Some(list)).map(|entry| entry.transmission.record);
        assert_eq!(records.collect::<Vec<_>>(), [4, 1]);
    }

    #[test]
    fn lists_are_newest_first_and_freed_entries_are_reused() {
        let mut log = Retransmissions::default();
        let first = log.push(entry(1), None);
        let second = log.push(entry(2), first);
        let copy = log.duplicate(second);
        let records = |list| {
            log.iter(list)
                .map(|entry| (entry.transmission.record, entry.primary))
                .collect::<Vec<_>>()
        };
        assert_eq!(records(second), [(2, true), (1, true)]);
        assert_eq!(records(copy), [(2, false), (1, false)]);
        log.free(second);
        log.free(copy);
        for record in 0..4 {
            log.push(entry(record), None);
        }
        assert_eq!(log.entries.len(), 4);
    }
}
