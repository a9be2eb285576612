//! CoDel: when the sojourn time has been above its target for an interval, packets are dropped as they leave, more and
//! more often until the sojourn time falls below the target.
//!
//! Does not depend on rates: it measures the sojourn time of each packet only. Read RFC 8289 §5 first.

use super::scheduled::{Dropped, Served, Waiting};
use crate::config::CodelConfig;
use crate::net::link::DropCause;
use crate::sim::ring::Ring;
use crate::sim::time::Nanos;

/// RFC 8289 §5.6: intervals after the last drop within which the next dropping state starts at the last drop rate.
const RESUME_INTERVALS: Nanos = 16;

/// CoDel's state.
#[derive(Default)]
pub struct Codel {
    config: CodelConfig,
    packets: Ring<Waiting>,
    bytes: u64,
    /// When the sojourn time will have been above the target for an interval; none while it is below.
    first_above: Option<Nanos>,
    /// Time of the next drop in the dropping state.
    drop_next: Nanos,
    dropping: bool,
    /// Drops of this dropping state, and the count with which the last one started.
    count: u32,
    last_count: u32,
}

/// The head of the queue, and whether it may be dropped.
struct Head {
    packet: Option<Waiting>,
    ok_to_drop: bool,
}

impl Codel {
    /// An empty queue.
    pub fn new(config: &CodelConfig) -> Self {
        Self {
            config: config.clone(),
            ..Self::default()
        }
    }

    /// Adds a packet. Returns it if the queue is full.
    pub fn push(&mut self, packet: Waiting) -> Option<Waiting> {
        if self.packets.len() >= self.config.limit_pkts as usize {
            return Some(packet);
        }
        self.bytes += u64::from(packet.ip_bytes);
        self.packets.push_back(packet);
        None
    }

    /// A packet enters service immediately: its sojourn time is 0.
    pub fn pass_by(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// RFC 8289 §5.5: the next packet to serve, after the drops that are due.
    pub fn pop(&mut self, now: Nanos, dropped: &mut Dropped) -> Option<Served> {
        let mut head = self.take_head(now);
        let mut marked = false;
        if self.dropping {
            self.dropping = head.ok_to_drop;
            while self.dropping && now >= self.drop_next {
                marked = self.drop_or_mark(&mut head, now, dropped);
                self.dropping = marked || head.ok_to_drop;
                if self.dropping {
                    self.count += 1;
                    self.drop_next = self.control_law(self.drop_next);
                }
                if marked {
                    break;
                }
            }
        } else if head.ok_to_drop {
            marked = self.drop_or_mark(&mut head, now, dropped);
            self.begin_dropping(now);
        }
        head.packet.map(|packet| Served { packet, marked })
    }

    /// RFC 8289 §5.6: a dropping state soon after the last one starts with the drop rate at which that one ended.
    fn begin_dropping(&mut self, now: Nanos) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent =
            now.saturating_sub(self.drop_next) < RESUME_INTERVALS * self.config.interval_ns;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
    }

    /// Drops the head and takes the next packet, or marks the head if its transport is ECN-capable (RFC 8289 §1 leaves
    /// this to ECN; as in Linux, a mark counts as a drop). Returns whether the head was marked.
    fn drop_or_mark(&mut self, head: &mut Head, now: Nanos, dropped: &mut Dropped) -> bool {
        if self.config.ecn && head.packet.is_some_and(|packet| packet.ect) {
            return true;
        }
        dropped.extend(head.packet.map(|packet| (packet.handle, DropCause::Aqm)));
        *head = self.take_head(now);
        false
    }

    /// RFC 8289 §5.4: the next packet; it may be dropped if the sojourn time has been above the target for an interval.
    fn take_head(&mut self, now: Nanos) -> Head {
        let Some(packet) = self.packets.pop_front() else {
            self.first_above = None;
            return Head {
                packet: None,
                ok_to_drop: false,
            };
        };
        self.bytes -= u64::from(packet.ip_bytes);
        let sojourn = now - packet.since;
        let mut ok_to_drop = false;
        if sojourn < self.config.target_ns || self.bytes <= u64::from(self.config.mtu_bytes) {
            self.first_above = None;
        } else {
            match self.first_above {
                None => self.first_above = Some(now + self.config.interval_ns),
                Some(first_above) => ok_to_drop = now >= first_above,
            }
        }
        Head {
            packet: Some(packet),
            ok_to_drop,
        }
    }

    /// RFC 8289 §5.3: the interval between drops is inversely proportional to the square root of their number.
    fn control_law(&self, time: Nanos) -> Nanos {
        time + (self.config.interval_ns as f64 / f64::from(self.count).sqrt()) as Nanos
    }

    /// The packets in the queue.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> + '_ {
        self.packets.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::time::MILLISECOND;

    fn packet(since_ms: u64, ect: bool) -> Waiting {
        Waiting {
            since: since_ms * MILLISECOND,
            ip_bytes: 1500,
            ect,
            ..Waiting::default()
        }
    }

    /// Keeps ten packets with a sojourn time of 50 ms in the queue and serves one per millisecond until `until_ms`.
    /// Returns the times of drops or marks, in ms.
    fn signals(codel: &mut Codel, from_ms: u64, until_ms: u64, ect: bool) -> Vec<u64> {
        let mut out = Vec::new();
        for now_ms in from_ms..until_ms {
            while codel.packets.len() < 10 {
                assert!(codel.push(packet(now_ms - 50, ect)).is_none());
            }
            let mut dropped = Vec::new();
            let served = codel.pop(now_ms * MILLISECOND, &mut dropped);
            let marked = served.is_some_and(|served| served.marked);
            out.extend(dropped.iter().map(|_| now_ms));
            out.extend(marked.then_some(now_ms));
            assert!(!ect || dropped.is_empty(), "{dropped:?}");
        }
        out
    }

    /// The first drop is one interval after the sojourn time rose at 1000 ms, each further one 100 / sqrt(n) ms after
    /// the one before, at the first service from then on: 1200, 1270.7, 1328.4, 1378.4, 1423.2, 1464.0, 1501.8.
    const EXPECTED_MS: [u64; 8] = [1100, 1200, 1271, 1329, 1379, 1424, 1464, 1502];

    #[test]
    fn drops_follow_the_control_law() {
        let mut codel = Codel::new(&CodelConfig::default());
        assert_eq!(signals(&mut codel, 1000, 1503, false), EXPECTED_MS);
    }

    #[test]
    fn marks_replace_drops() {
        let mut codel = Codel::new(&CodelConfig::default());
        assert_eq!(signals(&mut codel, 1000, 1503, true), EXPECTED_MS);
        let mut without_ecn = Codel::new(&CodelConfig {
            ecn: false,
            ..CodelConfig::default()
        });
        for now_ms in 1000..1101 {
            while without_ecn.packets.len() < 10 {
                without_ecn.push(packet(now_ms - 50, true));
            }
            let mut dropped = Vec::new();
            without_ecn.pop(now_ms * MILLISECOND, &mut dropped);
            assert_eq!(dropped.len(), usize::from(now_ms == 1100), "{now_ms}");
        }
    }

    #[test]
    fn one_short_sojourn_ends_the_dropping_state_and_the_next_starts_at_its_rate() {
        let mut codel = Codel::new(&CodelConfig::default());
        signals(&mut codel, 1000, 1503, false);
        assert_eq!((codel.count, codel.last_count), (8, 1));
        // A packet below the target ends the dropping state, and the interval starts again.
        while codel.packets.pop_front().is_some() {}
        codel.bytes = 0;
        for _ in 0..10 {
            codel.push(packet(1506, false));
        }
        codel.pop(1510 * MILLISECOND, &mut Vec::new());
        assert!(!codel.dropping && codel.first_above.is_none());
        while codel.packets.pop_front().is_some() {}
        codel.bytes = 0;
        // Above the target again from 1600: the first drop is at 1700 with count 8 - 1 = 7, the next after 100 /
        // sqrt(7) = 37.8 ms, then 100 / sqrt(8) = 35.4.
        assert_eq!(signals(&mut codel, 1600, 1775, false), [1700, 1738, 1774]);
        // After 16 intervals the rate is forgotten.
        codel.dropping = false;
        codel.first_above = None;
        assert_eq!(signals(&mut codel, 3500, 3701, false), [3600, 3700]);
    }

    #[test]
    fn never_drops_below_the_target_or_with_less_than_a_packet_behind() {
        let config = CodelConfig {
            target_ns: 61 * MILLISECOND,
            ..CodelConfig::default()
        };
        assert!(signals(&mut Codel::new(&config), 1000, 2000, false).is_empty());
        let mut codel = Codel::new(&CodelConfig::default());
        for now_ms in 1000..2000 {
            while codel.packets.len() < 2 {
                codel.push(packet(now_ms - 50, false));
            }
            let mut dropped = Vec::new();
            codel.pop(now_ms * MILLISECOND, &mut dropped);
            assert!(dropped.is_empty(), "one full packet may always wait");
        }
    }
}
