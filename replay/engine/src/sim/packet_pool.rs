//! Where segments live while they travel: a slot each, so that a hop moves a number and not a segment.
//!
//! Must not know links or nodes. No allocation per packet: slots are used again.

use crate::tcp::segment::{Direction, Segment};

/// A segment on its way, by the number of its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket(u32);

/// A segment on its way with the number of that way: two halves of a word, since what moves as one word is moved at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parcel(u64);

impl Parcel {
    /// The segment in a slot, on its way.
    #[inline]
    pub fn new(ticket: Ticket, route: u32) -> Self {
        Self(u64::from(ticket.0) << 32 | u64::from(route))
    }

    /// The slot.
    #[inline]
    pub fn ticket(self) -> Ticket {
        Ticket((self.0 >> 32) as u32)
    }

    /// The number of the way.
    #[inline]
    pub fn route(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
impl Ticket {
    /// Number of the slot.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The slots.
#[derive(Debug, Default)]
pub struct Arena {
    slots: Vec<Segment>,
    vacant: Vec<Ticket>,
}

impl Arena {
    /// Takes a slot, whose old contents stand until they are overwritten.
    #[inline]
    pub fn take(&mut self) -> Ticket {
        if let Some(ticket) = self.vacant.pop() {
            return ticket;
        }
        self.slots.push(Segment::new(0, Direction::Forward));
        Ticket((self.slots.len() - 1) as u32)
    }

    /// Gives a slot back.
    #[inline]
    pub fn free(&mut self, ticket: Ticket) {
        self.vacant.push(ticket);
    }

    /// The segment in a slot.
    #[inline]
    pub fn segment(&self, ticket: Ticket) -> &Segment {
        &self.slots[ticket.0 as usize]
    }

    /// The slot itself, to be filled.
    #[inline]
    pub fn slot(&mut self, ticket: Ticket) -> &mut Segment {
        &mut self.slots[ticket.0 as usize]
    }
}
