//! The ACKs that were lost before the capture point, counted by IPv4 IDs that the receiver increments (RFC 6864 §3: it
//! may do so; Linux does, per connection).

/// Minimum number of consecutive IDs, for each larger step, from which the IDs count the packets of the connection.
///
/// Assumed: no RFC gives one. A host that picks its IDs at random uses the next one once in 65,536 packets, and one
/// that spends them on other connections, too, rarely uses eight in a row for this one. A path that drops more than one
/// ACK in nine, as ACK filters do, looks the same; then nothing is concluded from the IDs.
const MIN_CONSECUTIVE: u32 = 8;

/// Maximum number of packets missing between two captured ones. A larger step is another sequence of IDs, a step back
/// is an ACK that was overtaken.
const MAX_MISSING: u16 = 1 << 12;

/// The IPv4 IDs of the ACKs of one direction.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct AckIds {
    last: Option<u16>,
    consecutive: u32,
    others: u32,
    /// Packets that are missing before the last one.
    missing: u16,
    /// IDs that were skipped so far. Those of packets that were overtaken remain counted, so that each gap shows.
    skipped: u32,
    /// Time of the last ACK before which some are missing.
    missed_ns: Option<i64>,
}

impl AckIds {
    /// Processes the ID of the next ACK, captured at `t_ns`.
    #[inline]
    pub(super) fn observe_at(&mut self, ip_id: Option<u16>, t_ns: i64) {
        self.observe(ip_id);
        if self.missing > 0 {
            self.missed_ns = Some(t_ns);
        }
    }

    #[inline]
    fn observe(&mut self, ip_id: Option<u16>) {
        let (Some(id), Some(last)) = (ip_id, self.last) else {
            (self.last, self.missing) = (ip_id, 0);
            return;
        };
        let step = id.wrapping_sub(last);
        self.missing = 0;
        if step == 1 {
            self.consecutive = self.consecutive.saturating_add(1);
        } else if last.wrapping_sub(id) <= MAX_MISSING {
            // Overtaken, or stored twice.
            return;
        } else {
            self.others = self.others.saturating_add(1);
            if step <= MAX_MISSING {
                self.missing = step - 1;
                self.skipped = self.skipped.wrapping_add(u32::from(self.missing));
            }
        }
        self.last = ip_id;
    }

    /// The packets of the receiver that are missing between the last two ACKs. Zero if the IDs do not count them.
    pub(super) fn missing(&self) -> u16 {
        if self.count() { self.missing } else { 0 }
    }

    /// The IDs that were skipped up to the last ACK, if they count the packets of the receiver. It is a number to
    /// compare with an earlier one: equal, if no gap was opened in between.
    pub(super) fn skipped(&self) -> Option<u32> {
        self.count().then_some(self.skipped)
    }

    /// The same, up to the ACK before it.
    pub(super) fn skipped_before(&self) -> Option<u32> {
        let missing = u32::from(self.missing);
        self.skipped().map(|skipped| skipped.wrapping_sub(missing))
    }

    /// Time of the last ACK before which some are missing, if the IDs count the packets of the receiver.
    pub(super) fn missed_ns(&self) -> Option<i64> {
        self.missed_ns.filter(|_| self.count())
    }

    /// Whether the ACK with this ID, the last one observed, was not overtaken, as far as the IDs count the packets.
    pub(super) fn is_newest(&self, ip_id: Option<u16>) -> bool {
        self.count() && ip_id.is_some() && self.last == ip_id
    }

    fn count(&self) -> bool {
        self.consecutive / MIN_CONSECUTIVE >= self.others.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::AckIds;

    fn missing(ids: impl IntoIterator<Item = u16>) -> u16 {
        let mut acks = AckIds::default();
        ids.into_iter().for_each(|id| acks.observe(Some(id)));
        acks.missing()
    }

    #[test]
    fn steps_of_the_id_count_missing_acks() {
        assert_eq!(missing((65_530..=65_535).chain(0..4)), 0);
        assert_eq!(missing((65_530..=65_535).chain(0..4).chain([6])), 2);
        assert_eq!(missing((0..10).chain([12, 13])), 0, "before the last one");
        assert_eq!(missing((0..10).chain([12, 11])), 0, "overtaken");
        assert_eq!(missing((0..10).chain([11, 10, 12])), 0, "the newest counts");
    }

    #[test]
    fn an_ack_that_was_overtaken_hides_no_gap() {
        let mut acks = AckIds::default();
        for id in (0..20).chain([22, 21, 24]) {
            acks.observe(Some(id));
        }
        assert_eq!((acks.skipped(), acks.skipped_before()), (Some(3), Some(2)));
    }

    #[test]
    fn ids_that_a_host_spends_elsewhere_count_nothing() {
        assert_eq!(missing((0..40).map(|id| id * 3)), 0);
        assert_eq!(missing([7, 40_000, 3, 22_000, 9_999, 64_000]), 0);
        assert_eq!(missing([0; 40]), 0, "no IDs");
    }
}
