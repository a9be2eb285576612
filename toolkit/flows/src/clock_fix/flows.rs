//! The connections of a capture, as far as the survey of its clocks needs them: memory does not depend on their number.

use std::hash::BuildHasherDefault;

use hashbrown::HashMap;
use hindflight_decoder::{Segment, flags};

use super::exchange::Exchanges;
use crate::key::{Key, KeyHasher};

/// Connections after which those that had no segment since are forgotten. They begin anew.
const GENERATION: usize = 1 << 13;

type Map = HashMap<Key, FlowClocks, BuildHasherDefault<KeyHasher>>;

/// What is known of a connection.
#[derive(Clone, Debug, Default)]
pub struct FlowClocks {
    /// Its exchanges.
    pub exchanges: Exchanges,
    /// By direction, the time of its last segment.
    pub last_ns: [Option<i64>; 2],
    /// Steps of the clocks before its last segment.
    pub steps: u32,
    /// By direction, the timestamps since the last step of its clock.
    pub ticks: [Option<Ticks>; 2],
    /// By direction, the steps of its clock before its last timestamp.
    pub ticks_steps: [u32; 2],
}

/// The first and the last timestamp of a direction, with their times.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    first: (u32, i64),
    last: (u32, i64),
}

/// Ticks from which the rate of a timestamp clock is known to one percent.
const MIN_TICKS: u32 = 100;

impl Ticks {
    /// The ticks with one more value; `None` before.
    pub fn with(ticks: Option<Self>, val: u32, t_ns: i64) -> Self {
        let last = (val, t_ns);
        let first = ticks.map_or(last, |ticks| ticks.first);
        Self { first, last }
    }

    /// Time of the last one.
    pub fn last_ns(&self) -> i64 {
        self.last.1
    }

    /// Time of the value `val` by this clock; `None` if its rate is not known, or it runs back.
    pub fn time_of(&self, val: u32) -> Option<i64> {
        let ticks = self.last.0.wrapping_sub(self.first.0);
        let span_ns = self.last.1.saturating_sub(self.first.1);
        let since = val.wrapping_sub(self.last.0);
        if !(MIN_TICKS..1 << 31).contains(&ticks) || span_ns <= 0 || since >= 1 << 31 {
            return None;
        }
        let since_ns = i128::from(since) * i128::from(span_ns) / i128::from(ticks);
        i64::try_from(since_ns).ok()?.checked_add(self.last.1)
    }
}

/// The connections of the last two generations.
#[derive(Debug, Default)]
pub struct Flows {
    young: Map,
    old: Map,
}

impl Flows {
    /// The connection of `segment`, and the direction in it: 0 from the lower end. `None` if none is known, and
    /// `segment` has neither data nor an answer to a SYN.
    pub fn find(&mut self, segment: &Segment) -> Option<(usize, &mut FlowClocks)> {
        let key = Key::of(segment);
        let index = usize::from(key.ends()[0] != (segment.src, segment.src_port));
        let has = |flag: u16| segment.flags & flag != 0;
        if !self.young.contains_key(&key) {
            let known = self.old.remove(&key);
            let begins = segment.payload_bytes > 0 || has(flags::SYN);
            if known.is_none() && !(begins && has(flags::ACK)) {
                return None;
            }
            if self.young.len() >= GENERATION {
                self.old = std::mem::take(&mut self.young);
            }
            self.young.insert(key, known.unwrap_or_default());
        }
        let flow = self.young.get_mut(&key)?;
        if has(flags::SYN) && !has(flags::ACK) {
            // The ports are used again.
            *flow = FlowClocks::default();
        }
        Some((index, flow))
    }
}
