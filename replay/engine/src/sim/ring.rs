//! A queue of plain values in a ring that grows by doubling: what `VecDeque` does, without its wrap-around branches.
//!
//! Does not depend on what it holds.

/// The queue. Entries have running numbers; entry `n` sits in slot `n & mask`.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    slots: Vec<T>,
    head: usize,
    tail: usize,
}

impl<T: Copy + Default> Default for Ring<T> {
    fn default() -> Self {
        Self {
            slots: vec![T::default(); 16],
            head: 0,
            tail: 0,
        }
    }
}

impl<T: Copy + Default> Ring<T> {
    #[inline]
    fn place(&self, number: usize) -> usize {
        number & (self.slots.len() - 1)
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.tail - self.head
    }

    /// Whether nothing is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// The oldest entry.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        (self.head != self.tail).then(|| &self.slots[self.place(self.head)])
    }

    /// The newest entry.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        (self.head != self.tail).then(|| &self.slots[self.place(self.tail - 1)])
    }

    /// Entry `index`, counted from the oldest.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        (index < self.len()).then(|| &self.slots[self.place(self.head + index)])
    }

    /// Adds an entry.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let place = self.place(self.tail);
        self.slots[place] = value;
        self.tail += 1;
    }

    /// Removes the oldest entry.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.head += 1;
        Some(value)
    }

    /// Removes the oldest entry, if it meets `condition`.
    #[inline]
    pub fn pop_front_if(&mut self, condition: impl Fn(&T) -> bool) -> Option<T> {
        let value = *self.front()?;
        condition(&value).then(|| {
            self.head += 1;
            value
        })
    }

    /// Removes the newest entry.
    pub fn pop_back(&mut self) -> Option<T> {
        let value = *self.back()?;
        self.tail -= 1;
        Some(value)
    }

    /// Adds `value` before all entries at the end for which `after` holds.
    pub fn insert_before(&mut self, value: T, after: impl Fn(&T) -> bool) {
        self.push_back(value);
        let mut number = self.tail - 1;
        while number > self.head {
            let earlier = self.slots[self.place(number - 1)];
            if !after(&earlier) {
                break;
            }
            let place = self.place(number);
            self.slots[place] = earlier;
            number -= 1;
        }
        let place = self.place(number);
        self.slots[place] = value;
    }

    /// The entries, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        (self.head..self.tail).map(|number| &self.slots[self.place(number)])
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = Vec::with_capacity(self.slots.len() * 2);
        slots.extend(self.iter().copied());
        (self.head, self.tail) = (0, slots.len());
        slots.resize(self.slots.len() * 2, T::default());
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_over_growth_and_wrap_around() {
        let mut ring = Ring::default();
        let mut next = 0;
        for round in 0..200_u32 {
            for _ in 0..=(round % 7) {
                ring.push_back(round);
            }
            if round % 3 == 0 {
                assert!(ring.pop_front() >= Some(next));
                next = ring.front().copied().unwrap_or(next);
            }
        }
        let all: Vec<u32> = ring.iter().copied().collect();
        assert!(all.is_sorted() && all.len() == ring.len());
        let each: Vec<u32> = (0..).map_while(|index| ring.get(index).copied()).collect();
        assert_eq!(each, all);
        assert_eq!(ring.pop_back(), Some(199));
        assert_eq!(
            ring.iter().copied().collect::<Vec<_>>(),
            all[..all.len() - 1]
        );
    }

    #[test]
    fn inserts_before_those_that_come_later() {
        let mut ring = Ring::default();
        for value in [1, 5, 9, 9] {
            ring.push_back(value);
        }
        ring.insert_before(5, |&other| other > 5);
        ring.insert_before(0, |&other| other > 0);
        assert_eq!(ring.iter().copied().collect::<Vec<_>>(), [0, 1, 5, 5, 9, 9]);
    }
}
