//! When a segment is acknowledged: at once, together with the next one, or after a delay.
//!
//! Does not depend on the content of an ACK. Read RFC 5681 §4.2 first. [`AckRules`] adds the rules of
//! Linux 6.18: a delay that adapts, and acknowledgements of a gap spaced out.

use super::periodic_acks::Periods;
use crate::config::StackParams;
use crate::sim::time::{MILLISECOND, Nanos, SECOND};
use crate::tcp::jiffies;
use crate::tcp::stack_rules::AckRules;
use crate::tcp::timer::Timer;

/// Linux (`TCP_DELACK_MAX`): the longest delay of an ACK.
const LONGEST_DELAY: Nanos = 200 * MILLISECOND;
/// Linux (`TCP_DELACK_MIN`): the minimum of the bound that the round-trip time sets on a delay.
const MIN_BOUND: Nanos = 40 * MILLISECOND;
/// RFC 6298 §2.1: a receiver's own RTO while no handshake has shown it a round trip.
const FIRST_RTO: Nanos = SECOND;
/// Linux (`tcp_comp_sack_delay_ns`): ACKs of a gap are sent together after this time; the timer's slack included.
const GAP_DELAY: Nanos = 1_100_000;
/// Linux (`tcp_comp_sack_nr`): at most so many go into one.
const GAP_ACKS: u32 = 44;
/// Linux (TCP_FASTRETRANS_THRESH): the first of a gap are sent at once.
const GAP_PROMPT_ACKS: u32 = 3;

/// Linux (`tcp_delack_max`): the longest delay of an ACK is a tick short of the minimum RTO.
fn longest_delay(min_rto: Nanos) -> Nanos {
    let min = jiffies::up(min_rto).max(2 * jiffies::TICK);
    LONGEST_DELAY.min(min - jiffies::TICK)
}

/// Linux: the delay where segments follow one another closely.
fn within_train(delay: Nanos, shortest: Nanos) -> Nanos {
    jiffies::down(delay / 2) + shortest / 2
}

/// A delay that stays as it is in a train of segments.
fn steady_delay(shortest: Nanos) -> Nanos {
    let mut delay = shortest;
    loop {
        let next = within_train(delay, shortest);
        if next == delay {
            return delay;
        }
        delay = next;
    }
}

/// A receiver's decisions on when to acknowledge.
#[derive(Clone, Debug)]
pub struct AckPolicy {
    rules: AckRules,
    delays: bool,
    smss_bytes: u64,
    shortest_delay: Nanos,
    /// Linux: no ACK waits longer; once a round trip is known, for that at most.
    longest_delay: Nanos,
    /// How long an ACK waits (Linux: `icsk_ack.ato`). None until a first segment has come in order, or quick ACKs have ended:
    /// the next segment in order is then a first one.
    delay: Option<Nanos>,
    /// See [`steady_delay`].
    steady_delay: Nanos,
    min_rto: Nanos,
    /// Linux: a pause longer than the receiver's own RTO makes its ACKs quick again.
    rto: Nanos,
    /// When the last segment in order came, in whole ticks, or the handshake ended.
    last_data_at: Nanos,
    /// Quick ACKs that a refill gives, and those left.
    refill: u32,
    quick: u32,
    /// ACKs by time; none: by the number of segments.
    periodic: Option<Periods>,
    /// Deadline of the ACK that waits for a second segment.
    delayed: Timer,
    /// The sender pushed what it waits with.
    pushed: bool,
    gap: GapAcks,
}

/// Acknowledgements while a gap is open, as Linux spaces them.
#[derive(Clone, Debug, Default)]
struct GapAcks {
    rcv_nxt: u64,
    prompt: u32,
    held_back: u32,
    due: Timer,
}

/// What arrived, as far as the policy cares.
#[derive(Clone, Copy, Debug)]
pub struct InOrder {
    /// Octets in order that no ACK has covered yet.
    pub unacknowledged: u64,
    /// Next octet expected.
    pub rcv_nxt: u64,
    /// A gap was filled wholly or in part.
    pub fills_gap: bool,
    /// A gap is left.
    pub gap_left: bool,
    /// The right edge of the window would move with an ACK now.
    pub edge_moves: bool,
    /// The sender pushed, or the segment was not full.
    pub pushed: bool,
    /// The application has read all there is.
    pub read: bool,
    /// The sender reports that it is in slow start.
    pub slow_start: bool,
    /// Timestamp of an ACK that the segment echoes, in milliseconds; 0: of none.
    pub echo: u32,
}

impl AckPolicy {
    /// The policy of `params` under these rules.
    pub fn new(params: &StackParams, rules: AckRules) -> Self {
        Self {
            rules,
            delays: params.delayed_ack,
            smss_bytes: u64::from(params.smss_bytes),
            shortest_delay: params.delayed_ack_timeout_ns,
            longest_delay: longest_delay(params.min_rto_ns),
            delay: None,
            steady_delay: steady_delay(params.delayed_ack_timeout_ns),
            min_rto: params.min_rto_ns,
            rto: FIRST_RTO,
            last_data_at: 0,
            refill: params.quickack_segments,
            quick: 0,
            periodic: params.acks_per_round_trip.map(|times| Periods {
                per_round_trip: times,
                min: None,
                shakes_hands: params.handshake,
                // Until the path is known: as of one as long as an ACK may wait.
                period: (params.delayed_ack_timeout_ns as f64 / times) as Nanos,
                began: 0,
                waited: false,
            }),
            delayed: Timer::default(),
            pushed: false,
            gap: GapAcks::default(),
        }
    }

    /// Whether the timestamp of a segment that ends before the last ACK is not echoed.
    pub fn refuses_old_timestamps(&self) -> bool {
        self.rules.refuses_old_timestamps
    }

    /// The handshake has ended, where the pause before the first segment begins (Linux sets `lrcvtime` in
    /// `tcp_create_openreq_child`).
    pub fn note_established(&mut self, now: Nanos) {
        self.last_data_at = jiffies::down(now);
    }

    /// The handshake took `rtt`, which is all that a receiver learns (RFC 6298 §2.2).
    pub fn note_handshake(&mut self, rtt: Nanos) {
        self.rto = jiffies::up(rtt + (2 * rtt).max(self.min_rto));
        let bound = jiffies::up(rtt).max(MIN_BOUND);
        self.longest_delay = longest_delay(self.min_rto).min(bound);
        if let Some(periods) = &mut self.periodic {
            periods.divide(rtt);
        }
    }

    /// Payload came in order; `window_bytes` is the window promised when it did.
    #[inline(always)]
    pub fn note_arrival(&mut self, window_bytes: u64, now: Nanos) {
        if !self.rules.adapts_delay {
            if self.delay.is_none() {
                self.enter_quick_ack_mode(window_bytes);
            }
        } else if self.delay != Some(self.steady_delay) || now - self.last_data_at >= jiffies::TICK
        {
            self.adapt_delay(window_bytes, now);
        }
    }

    /// Deviation: as Linux, the delay follows the spacing of segments (RFC 5681 §4.2 asks for 500 ms at most).
    #[inline(never)]
    fn adapt_delay(&mut self, window_bytes: u64, now: Nanos) {
        let tick = jiffies::down(now);
        let pause = tick - std::mem::replace(&mut self.last_data_at, tick);
        match self.delay {
            None => self.enter_quick_ack_mode(window_bytes),
            Some(delay) if pause <= self.shortest_delay / 2 => {
                self.delay = Some(within_train(delay, self.shortest_delay));
            }
            Some(delay) if pause < delay => {
                self.delay = Some((jiffies::down(delay / 2) + pause).min(self.rto));
            }
            Some(_) if pause > self.rto => self.refill_quick(window_bytes),
            Some(_) => {}
        }
    }

    /// The receive window opened: at least one quick ACK reports it.
    pub fn note_window_update(&mut self) {
        self.quick |= 1;
    }

    /// Whether an ACK waits that is due when a process reads, `unread` octets being left: one that covers more than a segment of
    /// the `unacknowledged` octets, or where it has read all that the sender pushed.
    pub fn is_due_on_read(&self, unacknowledged: u64, unread: u64) -> bool {
        self.delayed.is_set() && (unacknowledged > self.smss_bytes || self.pushed && unread == 0)
    }

    /// Little room is left in the buffer: no more quick ACKs.
    pub fn end_quick(&mut self) {
        self.quick = 0;
    }

    /// Linux (`tcp_enter_quickack_mode`): after a first segment in order, or a duplicate, the sender should know soon.
    pub fn enter_quick_ack_mode(&mut self, window_bytes: u64) {
        self.refill_quick(window_bytes);
        self.delay = Some(self.shortest_delay);
    }

    /// Linux (`tcp_incr_quickack`): as many quick ACKs as half the window has full segments, at least 2, at most the refill.
    fn refill_quick(&mut self, window_bytes: u64) {
        let half = (window_bytes / (2 * self.smss_bytes)).max(2);
        self.quick = self.quick.max(self.refill.min(half as u32));
    }

    /// Whether `in_order` would say so of any segment, with so many octets that no ACK has covered, and do nothing else.
    #[inline]
    pub fn is_prompt(&self, unacknowledged: u64) -> bool {
        self.periodic.is_none() && (!self.delays || self.quick > 0 || self.enough(unacknowledged))
    }

    /// Whether a segment that came in order is acknowledged now; else a timer runs.
    #[inline]
    pub fn in_order(&mut self, arrival: &InOrder, now: Nanos) -> bool {
        if let Some(periods) = &mut self.periodic {
            periods.note_echo(arrival.echo, now);
        }
        if let Some(over) = self.period_is_over(arrival.fills_gap, now) {
            return over;
        }
        // RFC 5681 §4.2: at once when a gap is filled wholly or in part.
        // Deviation: Linux does so when it is filled wholly; one filled in part is spaced as the others are.
        let filled = arrival.fills_gap && (self.rules.acks_partial_fill || !arrival.gap_left);
        // RFC 2760 §3.2.3: the more ACKs, the faster slow start.
        let prompt = !self.delays || self.quick > 0 || arrival.slow_start;
        // Linux: more than a segment is enough where the window's edge moves. Where it does not, because what has come waits
        // to be read, the ACK is delayed; where a gap is open, it counts as one of the gap.
        let enough = self.enough(arrival.unacknowledged)
            && (self.rules.acks_partial_fill || arrival.edge_moves);
        if filled || prompt || enough {
            return true;
        }
        if arrival.gap_left && !self.rules.acks_partial_fill {
            return !self.rules.spaces_gap_acks || self.in_gap(arrival.rcv_nxt, now);
        }
        if self.rules.acks_pushed_data && arrival.pushed {
            // Linux: an application that has read all that was pushed sends nothing that the ACK could wait for.
            if arrival.read {
                return true;
            }
            self.pushed = true;
        }
        self.delay_ack(now)
    }

    /// RFC 5681 §4.2: at least every second full segment. Linux: as soon as there is more than one.
    #[inline]
    fn enough(&self, unacknowledged: u64) -> bool {
        if self.rules.acks_beyond_one_segment {
            unacknowledged > self.smss_bytes
        } else {
            unacknowledged >= 2 * self.smss_bytes
        }
    }

    /// Deviation: RFC 5681 §4.2 asks for an ACK of every second full segment; here few ACKs are sent over a narrow
    /// reverse path. What comes first after a period is acknowledged at once, so that its ACK gives an RTT sample. The
    /// ACK of a segment that none follows is sent after two periods and gives no sample. An `urgent` one is sent at once.
    fn period_is_over(&mut self, urgent: bool, now: Nanos) -> Option<bool> {
        let periods = self.periodic.as_mut()?;
        if urgent {
            return Some(true);
        }
        let due = periods.began + periods.period;
        let over = now >= due;
        if over {
            periods.began = now;
        } else if !self.delayed.is_set() {
            self.delayed.set(due + periods.period);
        }
        Some(over)
    }

    /// Whether a segment that came out of order, and `opens_gap` or not, is acknowledged now.
    pub fn beyond_gap(&mut self, opens_gap: bool, rcv_nxt: u64, now: Nanos) -> bool {
        self.period_is_over(opens_gap, now)
            .unwrap_or_else(|| self.out_of_order(rcv_nxt, now))
    }

    fn delay_ack(&mut self, now: Nanos) -> bool {
        let mut delay = self.delay.unwrap_or(self.shortest_delay);
        let (mut due, mut soon) = (now + delay, now);
        if self.rules.adapts_delay {
            delay = delay.min(self.longest_delay);
            due = jiffies::fires(now, delay);
            soon = jiffies::fires(now, jiffies::down(delay / 4));
        }
        // Linux: a timer that is about to fire is not waited for; one that runs may come closer.
        if self.delayed.is_set() && self.delayed.deadline() <= soon {
            return true;
        }
        self.delayed.set(self.delayed.deadline().min(due));
        false
    }

    /// Whether an out-of-order segment is acknowledged now (RFC 5681 §4.2: always).
    ///
    /// Deviation: as Linux, ACKs of a gap are sent together after a millisecond, but for the first three.
    fn out_of_order(&mut self, rcv_nxt: u64, now: Nanos) -> bool {
        !self.rules.spaces_gap_acks || self.quick > 0 || self.in_gap(rcv_nxt, now)
    }

    fn in_gap(&mut self, rcv_nxt: u64, now: Nanos) -> bool {
        let gap = &mut self.gap;
        if gap.rcv_nxt != rcv_nxt {
            (gap.rcv_nxt, gap.prompt) = (rcv_nxt, 0);
        }
        if gap.held_back >= GAP_ACKS {
            return true;
        }
        if gap.prompt < GAP_PROMPT_ACKS {
            gap.prompt += 1;
            return true;
        }
        gap.held_back += 1;
        if !gap.due.is_set() {
            gap.due.set(now + GAP_DELAY);
        }
        false
    }

    /// An ACK leaves. Whether it has waited for its time.
    #[inline]
    pub fn note_sent(&mut self) -> bool {
        if self.quick == 1 {
            // Linux (`tcp_dec_quickack_mode`); a segment in order that comes after that is not a first one.
            self.delay = Some(self.shortest_delay);
        }
        self.quick = self.quick.saturating_sub(1);
        self.delayed.stop();
        self.pushed = false;
        self.gap.held_back = 0;
        self.gap.due.stop();
        self.periodic
            .as_mut()
            .is_some_and(|periods| std::mem::take(&mut periods.waited))
    }

    /// When it needs to be called.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        self.delayed.armed().min(self.gap.due.armed())
    }

    /// The deadline has passed: returns whether an ACK is due.
    pub fn on_deadline(&mut self, now: Nanos) -> bool {
        let delayed = self.delayed.fires(now);
        if let Some(periods) = self.periodic.as_mut().filter(|_| delayed) {
            (periods.began, periods.waited) = (now, true);
        }
        if delayed && self.rules.adapts_delay {
            // Linux: no second segment came, so the next wait is longer.
            self.delay = self.delay.map(|delay| (2 * delay).min(self.rto));
        }
        self.gap.due.fires(now) || delayed
    }
}

#[cfg(test)]
mod tests;
