//! Packets lost before the capture point, counted by IPv4 IDs that the sender increments (RFC 6864 §3: a sender may do
//! so; Linux does, per connection).

use std::collections::VecDeque;

/// Maximum number of packets missing between two captured ones. A larger step is another sequence of IDs.
const MAX_MISSING: u16 = 1 << 12;

/// Maximum number of places at which packets are missing.
const MAX_PLACES: usize = 1 << 12;

/// Packets missing between two captured ones, and the time and the ID of the second.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Place {
    shown_ns: i64,
    shown_id: u16,
    /// Their number, and that of those which nothing explains.
    ids_n: u16,
    count: u32,
}

/// The packets that are missing, less those that other evidence explains.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct MissingPackets {
    last_id: Option<u16>,
    places: VecDeque<Place>,
    /// Those between the last two packets, or at the end of a flight that is being repeated.
    recent: u32,
}

impl MissingPackets {
    /// Processes the ID of the next packet, captured at `t_ns`.
    pub fn observe(&mut self, ip_id: Option<u16>, t_ns: i64) {
        let (Some(id), Some(last)) = (ip_id, self.last_id) else {
            self.last_id = ip_id;
            return;
        };
        let step = id.wrapping_sub(last);
        if (1..=MAX_MISSING).contains(&step) {
            self.recent = u32::from(step - 1);
            self.last_id = ip_id;
            if step > 1 {
                if self.places.len() == MAX_PLACES {
                    self.places.pop_front();
                }
                self.places.push_back(Place {
                    shown_ns: t_ns,
                    shown_id: id,
                    ids_n: step - 1,
                    count: self.recent,
                });
            }
        } else if last.wrapping_sub(id) <= MAX_MISSING {
            // Reordered: it was counted as missing.
            if id != last {
                self.find_reordered(id);
                self.recent = 0;
            }
        } else {
            self.clear();
            (self.last_id, self.recent) = (ip_id, 0);
        }
    }

    /// The packet of `id` is not missing. If all are explained where it was, it is one that a gap explains.
    fn find_reordered(&mut self, id: u16) {
        let is_there = |place: &Place| (1..=place.ids_n).contains(&place.shown_id.wrapping_sub(id));
        if let Some(index) = self.places.iter().rposition(is_there) {
            self.take_one(index);
        }
    }

    /// Takes one off the place at `index`.
    fn take_one(&mut self, index: usize) {
        self.places[index].count -= 1;
        if self.places[index].count == 0 {
            self.places.remove(index);
        }
    }

    /// Number of packets that are missing and not explained.
    pub fn unexplained(&self) -> u32 {
        self.places.iter().map(|place| place.count).sum()
    }

    /// Number of those that a packet captured at `t_ns` or later showed.
    pub fn unexplained_since(&self, t_ns: i64) -> u32 {
        let since = self
            .places
            .iter()
            .rev()
            .take_while(|place| place.shown_ns >= t_ns);
        since.map(|place| place.count).sum()
    }

    /// Number of packets that are missing between the last two.
    pub fn recent(&self) -> u32 {
        self.recent.min(self.unexplained())
    }

    /// What explained one of them, which a packet of `ip_id` captured at `t_ns` showed, was not true.
    pub fn reopen(&mut self, ip_id: Option<u16>, t_ns: i64) {
        let index = self.places.partition_point(|place| place.shown_ns < t_ns);
        if let Some(place) = self
            .places
            .get_mut(index)
            .filter(|place| place.shown_ns == t_ns)
        {
            place.count += 1;
        } else if self.places.len() < MAX_PLACES {
            let place = Place {
                shown_ns: t_ns,
                shown_id: ip_id.unwrap_or(0),
                ids_n: 1,
                count: 1,
            };
            self.places.insert(index, place);
        }
    }

    /// Explains `count` of them, the last ones first.
    pub fn explain(&mut self, count: u32) {
        self.remove(count);
        self.recent = self.recent.saturating_sub(count);
    }

    /// Explains one of them that a packet captured from `earliest_ns` to `latest_ns` showed, the last of these.
    /// Returns whether there is one.
    pub fn explain_shown_in(&mut self, earliest_ns: i64, latest_ns: i64) -> bool {
        let shown = |place: &Place| (earliest_ns..=latest_ns).contains(&place.shown_ns);
        let Some(index) = self.places.iter().rposition(shown) else {
            return false;
        };
        let is_last = index + 1 == self.places.len();
        self.take_one(index);
        if is_last {
            self.recent = self.recent.saturating_sub(1);
        }
        true
    }

    /// Explains one of them that was sent at about `t_ns`, and not before `earliest_ns`: a packet captured after it
    /// showed it, at most `within_ns` from then. Returns whether there is one.
    pub fn explain_sent_at(&mut self, earliest_ns: i64, t_ns: i64, within_ns: i64) -> bool {
        let distance = |place: &Place| place.shown_ns.abs_diff(t_ns);
        let after = self
            .places
            .partition_point(|place| place.shown_ns < t_ns.max(earliest_ns));
        let places = [after.checked_sub(1), Some(after)];
        let places = places
            .into_iter()
            .filter_map(|index| self.places.get(index?));
        let near = places.filter(|place| {
            place.shown_ns >= earliest_ns && distance(place) <= within_ns.unsigned_abs()
        });
        let Some(shown_ns) = near
            .min_by_key(|place| distance(place))
            .map(|place| place.shown_ns)
        else {
            return false;
        };
        self.explain_shown_in(shown_ns, shown_ns)
    }

    /// Removes `count` of them, the last ones first.
    fn remove(&mut self, mut count: u32) {
        while let Some(last) = self.places.back_mut().filter(|_| count > 0) {
            let removed = count.min(last.count);
            last.count -= removed;
            count -= removed;
            if last.count == 0 {
                self.places.pop_back();
            }
        }
    }

    /// All are explained: new data arrive in order.
    pub fn clear(&mut self) {
        self.places.clear();
    }

    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.places.shrink_to_fit();
    }
}

/// The number of timeouts after `waited_ns` of silence, with backoff (RFC 6298 §5.5): they come after one RTO, three,
/// seven, and so on.
pub fn timeouts(waited_ns: i64, rto_ns: i64) -> u32 {
    (waited_ns / rto_ns.max(1) + 1).max(1).ilog2()
}

/// The same where the RTO is an estimate: of the numbers from one on, that whose RTO is nearest to it by ratio.
pub fn nearest_timeouts(waited_ns: i64, rto_ns: i64) -> u32 {
    let ratio = waited_ns.max(0) as f64 / rto_ns.max(1) as f64;
    let more = |count: &u32| {
        let rtos = |count: u32| f64::from((1_u32 << count) - 1);
        ratio * ratio >= rtos(*count) * rtos(*count + 1)
    };
    1 + (1..MAX_TIMEOUTS).take_while(more).count() as u32
}

/// Maximum number of timeouts in a silence: Linux gives up after 15 (`tcp_retries2`).
const MAX_TIMEOUTS: u32 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_timeouts_is_that_whose_rto_is_nearest() {
        let counts = [0, 10, 17, 18, 30, 45, 46, 70, i64::MAX];
        let counts = counts.map(|ns| nearest_timeouts(ns, 10));
        assert_eq!(counts, [1, 1, 1, 2, 2, 2, 3, 3, 15]);
    }

    #[test]
    fn steps_of_the_id_count_missing_packets() {
        let mut missing = MissingPackets::default();
        for id in [65_534, 65_535, 0, 3, 4, 2] {
            missing.observe(Some(id), 0);
        }
        assert_eq!(missing.unexplained(), 1, "1 is missing, 2 was reordered");
        assert_eq!(missing.recent(), 0, "none just before the reordered one");
        missing.explain(1);
        missing.observe(Some(30_000), 1);
        missing.observe(Some(30_002), 2);
        assert_eq!(missing.unexplained(), 1);
        assert_eq!(missing.unexplained_since(2), 1);
        assert_eq!(missing.unexplained_since(3), 0);
        missing.observe(Some(30_005), 4);
        assert_eq!(missing.unexplained(), 3);
        assert_eq!(missing.unexplained_since(3), 2, "not those before");
        missing.explain(2);
        assert_eq!(missing.unexplained_since(3), 0, "the last ones first");
        missing.observe(Some(30_008), 5);
        assert!(!missing.explain_shown_in(3, 4), "too early");
        assert!(missing.explain_shown_in(2, 4), "not the last ones");
        assert_eq!((missing.unexplained(), missing.recent()), (2, 2));
        assert!(!missing.explain_shown_in(2, 4), "none is left");
        assert!(missing.explain_shown_in(5, 5));
        assert_eq!((missing.unexplained(), missing.recent()), (1, 1));
    }

    #[test]
    fn a_reordered_packet_was_missing_where_its_id_is() {
        let mut missing = MissingPackets::default();
        for (id, t_ns) in [(1, 0), (4, 10)] {
            missing.observe(Some(id), t_ns);
        }
        missing.explain(2);
        missing.observe(Some(6), 20);
        missing.observe(Some(3), 30);
        assert_eq!(
            missing.unexplained(),
            1,
            "a gap explains 3, and 5 is missing"
        );
        missing.observe(Some(5), 40);
        assert_eq!(missing.unexplained(), 0);
        missing.reopen(Some(4), 10);
        missing.reopen(Some(4), 10);
        assert_eq!(
            missing.unexplained_since(10),
            2,
            "2 and 3 were missing after all"
        );
        assert_eq!(missing.unexplained_since(11), 0);
    }

    #[test]
    fn a_packet_sent_at_a_time_is_missing_at_the_nearest_place() {
        let mut missing = MissingPackets::default();
        for (id, t_ns) in [(1, 0), (3, 10), (5, 20), (8, 90)] {
            missing.observe(Some(id), t_ns);
        }
        assert!(missing.explain_sent_at(0, 17, 100));
        assert_eq!(missing.unexplained_since(20), 2, "that at 20");
        assert!(!missing.explain_sent_at(15, 17, 72), "not before 15");
        assert!(missing.explain_sent_at(15, 17, 73));
        assert_eq!(missing.unexplained_since(20), 1, "that at 90");
        assert!(!missing.explain_sent_at(0, 17, 6), "too far");
        assert!(missing.explain_sent_at(0, 17, 7));
        assert_eq!(missing.unexplained(), 1, "that at 10");
        assert!(!missing.explain_sent_at(91, 17, 100), "none");
    }

    #[test]
    fn backoff_doubles_the_time_between_timeouts() {
        let counts: Vec<u32> = [0, 9, 10, 29, 30, 70].map(|ns| timeouts(ns, 10)).to_vec();
        assert_eq!(counts, [0, 0, 1, 1, 2, 3]);
    }
}
