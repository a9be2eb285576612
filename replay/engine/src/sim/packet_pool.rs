//! The packet pool: each segment in flight has a slot, so that a hop moves a handle and not a segment.
//!
//! Does not depend on links or nodes. Slots are reused; there is no allocation per packet.

use crate::tcp::segment::{Direction, Segment};

/// A segment on its way, by the number of its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHandle(u32);

/// A segment on its way with the number of that way: two halves of a word, since what moves as one word is moved at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoutedPacket(u64);

impl RoutedPacket {
    /// The segment in a slot, on its way.
    #[inline]
    pub fn new(handle: PacketHandle, route: u32) -> Self {
        Self(u64::from(handle.0) << 32 | u64::from(route))
    }

    /// The slot.
    #[inline]
    pub fn handle(self) -> PacketHandle {
        PacketHandle((self.0 >> 32) as u32)
    }

    /// The number of the way.
    #[inline]
    pub fn route(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
impl PacketHandle {
    /// Number of the slot.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The slots.
#[derive(Debug, Default)]
pub struct PacketPool {
    slots: Vec<Segment>,
    vacant: Vec<PacketHandle>,
}

impl PacketPool {
    /// Takes a slot, whose old contents stand until they are overwritten.
    #[inline]
    pub fn take(&mut self) -> PacketHandle {
        if let Some(handle) = self.vacant.pop() {
            return handle;
        }
        self.slots.push(Segment::new(0, Direction::Forward));
        PacketHandle((self.slots.len() - 1) as u32)
    }

    /// Gives a slot back.
    #[inline]
    pub fn free(&mut self, handle: PacketHandle) {
        self.vacant.push(handle);
    }

    /// The segment in a slot.
    #[inline]
    pub fn segment(&self, handle: PacketHandle) -> &Segment {
        &self.slots[handle.0 as usize]
    }

    /// The slot itself, to be filled.
    #[inline]
    pub fn slot(&mut self, handle: PacketHandle) -> &mut Segment {
        &mut self.slots[handle.0 as usize]
    }
}
