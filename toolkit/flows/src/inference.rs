//! The congestion window of a sender, read off its flight at a capture beside it.
//!
//! A sender with data to send fills its window, so the largest pipe over the trailing round trip is the window. In
//! fast recovery the window follows the pipe. Where the application or the receiver holds the sender back the window
//! does not show, and no number is given. Knows no segments. Read RFC 5681 §3.1, RFC 6675 §5 and RFC 6937 first.

use std::collections::VecDeque;

use crate::cause::Episode;
use crate::evidence::Reason;
use crate::rows::{Event, EventCause, EventKind, Phase, Sample};
use crate::verdict::Whose;

/// Rows per smoothed round-trip time while the window is steady.
const ROWS_PER_RTT: i64 = 32;

/// A window that has changed by more than its size over this is worth a row of its own.
const ROW_STEP_DIVISOR: i64 = 64;

/// Rows kept back until it is clear that this direction carries the data.
const MAX_HELD: usize = 64;

/// A window that grows by less than this share per round trip is in congestion avoidance: slow start doubles it, or
/// with delayed acknowledgements counted (RFC 3465, L = 1) grows it by half.
const SLOW_START_GROWTH_PERCENT: i64 = 125;

/// A sender that waits for its window answers an acknowledgement within this time, or within this share of the time to
/// the next one. (Measured on Linux: half within 20 us, 99 % within 50 us.)
const ANSWER_NS: i64 = 250_000;
const ANSWER_DIVISOR: i64 = 16;

/// Share of acknowledgements answered at once below which the sender is held by something else than its window, and
/// above which it is held by its window again, in 1/1024. One average forgets with 1/8 per acknowledgement; another with
/// 1/128, as a sender on its own clock answers a few in a row by chance.
const HELD_BELOW: i64 = 410;
const FREE_ABOVE: i64 = 819;

/// What a sender's scoreboard and timers show at one time.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Time.
    pub t_ns: i64,
    /// Between loss and repair.
    pub episode: Episode,
    /// Octets in the network: neither SACKed nor lost, retransmissions counted (RFC 6675 §4).
    pub pipe_bytes: i64,
    /// Octets between the oldest unacknowledged and the next to be sent.
    pub outstanding_bytes: i64,
    /// Payload of a full segment.
    pub smss_bytes: i64,
    /// Smoothed round-trip time, 0 where none is known.
    pub srtt_ns: i64,
    /// Window that the receiver advertised.
    pub snd_wnd_bytes: Option<i64>,
}

/// What the reconstruction makes of a state.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Time.
    pub t_ns: i64,
    /// Phase.
    pub phase: Phase,
    /// Congestion window, where it shows.
    pub cwnd_bytes: Option<i64>,
    /// Slow start threshold, where it is known.
    pub ssthresh_bytes: Option<i64>,
    /// The application holds the sender back.
    pub app_limited: Option<bool>,
    /// Least time between rows.
    interval_ns: i64,
}

/// Whether acknowledgements, that is the window, set the pace of the sender.
#[derive(Debug)]
struct Clock {
    /// Time of the newest acknowledgement that moved, and of the first segment sent since.
    ack_ns: Option<i64>,
    answer_ns: Option<i64>,
    /// Average share of acknowledgements answered at once, in 1/1024 x 1/256.
    answered: i64,
    /// The same over a longer time.
    answered_long: i64,
    held: bool,
    short: bool,
}

impl Clock {
    fn new() -> Self {
        Self {
            ack_ns: None,
            answer_ns: None,
            answered: 1024 << 8,
            answered_long: 1024 << 8,
            held: false,
            short: false,
        }
    }

    fn ack(&mut self, now_ns: i64) {
        if let Some(ack_ns) = self.ack_ns {
            let patience = ANSWER_NS.max((now_ns - ack_ns) / ANSWER_DIVISOR);
            let prompt = self
                .answer_ns
                .is_some_and(|answer| answer - ack_ns <= patience);
            // Scaled by 256, so that small steps are not lost.
            let share = if prompt { 1024 << 8 } else { 0 };
            self.answered += (share - self.answered) / 8;
            self.answered_long += (share - self.answered_long) / 128;
            let needed = if self.held { FREE_ABOVE } else { HELD_BELOW };
            self.held = self.answered < needed << 8 || self.answered_long < HELD_BELOW << 8;
        }
        self.ack_ns = Some(now_ns);
        self.answer_ns = None;
    }
}

/// The reconstruction for one direction.
#[derive(Debug)]
pub struct Inference {
    /// Pipe maxima, decreasing, each newer than the one before.
    maxima: VecDeque<(i64, i64)>,
    phase: Phase,
    ssthresh_bytes: Option<i64>,
    /// Fast recovery has just ended: the sender fills a window of ssthresh (RFC 6675 §5, RFC 6582 §3.2).
    reduced: bool,
    /// Where the growth over a round trip is measured from.
    mark: (i64, i64),
    clock: Clock,
    entered_ns: i64,
    /// In recovery, once the window has come down: the largest pipe, and whether it has fallen since. The window does
    /// not fall any more then (RFC 6937 §3), so the sender has run out of data that it may send.
    reached_bytes: i64,
    drained: bool,
    pending: Option<View>,
    last_row: Option<View>,
    held: Vec<Sample>,
    /// Phase of the last row handed over.
    released: Phase,
}

impl Inference {
    /// Nothing known yet but the phase.
    pub fn new(phase: Phase) -> Self {
        Self {
            maxima: VecDeque::new(),
            phase,
            ssthresh_bytes: None,
            reduced: false,
            mark: (i64::MIN, 0),
            clock: Clock::new(),
            entered_ns: i64::MIN,
            reached_bytes: 0,
            drained: false,
            pending: None,
            last_row: None,
            held: Vec::new(),
            released: Phase::Unknown,
        }
    }

    /// The next acknowledgement comes, before it is taken; `moves` where it acknowledges something. What the sender
    /// made of the last one stands: the view is due as a row, unless it comes too soon.
    pub fn next_ack(&mut self, now_ns: i64, moves: bool) -> Option<View> {
        if self.reduced {
            self.reduced = false;
            self.ssthresh_bytes = self.pending.and_then(|view| view.cwnd_bytes);
            self.pending = self.pending.map(|view| View {
                ssthresh_bytes: self.ssthresh_bytes,
                ..view
            });
        }
        if moves {
            self.clock.ack(now_ns);
        }
        self.settle()
    }

    /// The sender is about to send a segment. After a silence the last view stands.
    pub fn next_segment(&mut self, now_ns: i64, short: bool) -> Option<View> {
        self.clock.answer_ns.get_or_insert(now_ns);
        self.clock.short = short;
        let silent = self
            .pending
            .is_some_and(|view| now_ns - view.t_ns > view.interval_ns);
        if silent { self.settle() } else { None }
    }

    /// The last view, if it is due.
    pub fn settle(&mut self) -> Option<View> {
        let view = self.pending.take()?;
        let due = self.last_row.is_none_or(|last| {
            let step = (view.cwnd_bytes.unwrap_or(0) - last.cwnd_bytes.unwrap_or(0)).abs();
            last.phase != view.phase
                || view.t_ns - last.t_ns >= view.interval_ns
                || step * ROW_STEP_DIVISOR > last.cwnd_bytes.unwrap_or(0)
        });
        if due {
            self.last_row = Some(view);
        }
        due.then_some(view)
    }

    /// Keeps the row of a view that was due.
    pub fn keep(&mut self, row: Sample) {
        self.held.push(row);
    }

    /// Hands over the rows so far, and a change of phase as an event, if this direction `carries` the data.
    pub fn release(
        &mut self,
        carries: bool,
        whose: Whose,
        samples: &mut Vec<Sample>,
        events: &mut Vec<Event>,
    ) {
        if carries {
            for row in &self.held {
                if row.phase != self.released {
                    let reason = Reason::Phase {
                        from: self.released,
                        to: row.phase,
                    };
                    events.push(whose.event(
                        EventKind::PhaseChange,
                        EventCause::Unknown,
                        row.t_ns,
                        reason,
                    ));
                    self.released = row.phase;
                }
            }
            samples.append(&mut self.held);
        }
        self.held.clear();
    }

    /// Whether enough rows are held to ask for their release.
    pub fn full(&self) -> bool {
        self.held.len() >= MAX_HELD
    }

    /// Takes the state after a segment or an acknowledgement.
    pub fn observe(&mut self, state: &State) {
        let (now, pipe) = (state.t_ns, state.pipe_bytes);
        self.follow(state);
        while self.maxima.back().is_some_and(|last| last.1 <= pipe) {
            self.maxima.pop_back();
        }
        self.maxima.push_back((now, pipe));
        let from = now - state.srtt_ns;
        while self.maxima.len() > 1 && self.maxima.front().is_some_and(|first| first.0 < from) {
            self.maxima.pop_front();
        }
        let largest = self.maxima.front().map_or(0, |first| first.1);
        let cwnd = match self.phase {
            Phase::Recovery | Phase::Loss => pipe,
            _ => largest,
        };
        self.measure_growth(now, state.srtt_ns, cwnd);
        if self.phase == Phase::Recovery && now - self.entered_ns > 2 * state.srtt_ns {
            self.reached_bytes = self.reached_bytes.max(largest);
            self.drained = largest + 2 * state.smss_bytes < self.reached_bytes;
        }
        self.pending = Some(self.view(state, cwnd, largest));
    }

    fn view(&self, state: &State, cwnd: i64, largest: i64) -> View {
        let reach = largest.max(state.outstanding_bytes) + state.smss_bytes;
        let full = state.snd_wnd_bytes.is_some_and(|wnd| reach > wnd);
        let held = self.clock.held || full || self.drained;
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        View {
            t_ns: state.t_ns,
            phase: if held && !repairing {
                Phase::Limited
            } else {
                self.phase
            },
            cwnd_bytes: (!held).then_some(cwnd),
            ssthresh_bytes: self.ssthresh_bytes,
            // A sender that paces itself and one that waits for its application look alike, but for short segments.
            app_limited: if full || !held {
                Some(false)
            } else {
                self.clock.short.then_some(true)
            },
            interval_ns: state.srtt_ns / ROWS_PER_RTT,
        }
    }

    /// Follows the episodes of the scoreboard.
    fn follow(&mut self, state: &State) {
        let next = match (state.episode, self.phase) {
            (Episode::Recovery { .. }, _) => Phase::Recovery,
            (Episode::Loss { .. }, _) => Phase::Loss,
            (Episode::Open, Phase::Recovery) => Phase::CongestionAvoidance,
            (Episode::Open, Phase::Loss) => Phase::SlowStart,
            (Episode::Open, phase) => phase,
        };
        if next != self.phase {
            if matches!(next, Phase::Recovery | Phase::Loss) {
                // It changes now (RFC 5681 §3.1 (4)) and shows once the repair has ended.
                self.ssthresh_bytes = None;
            }
            self.reduced = self.phase == Phase::Recovery && next == Phase::CongestionAvoidance;
            self.enter(next, state);
        }
    }

    fn enter(&mut self, phase: Phase, state: &State) {
        self.phase = phase;
        self.maxima.clear();
        self.entered_ns = state.t_ns;
        self.reached_bytes = 0;
        self.drained = false;
        self.mark = (state.t_ns, 0);
    }

    /// Slow start ends where the window stops growing by half in a round trip.
    fn measure_growth(&mut self, now_ns: i64, srtt_ns: i64, cwnd: i64) {
        if self.mark.1 == 0 {
            self.mark = (now_ns, cwnd);
        } else if srtt_ns > 0 && now_ns - self.mark.0 >= srtt_ns {
            let doubling = cwnd * 100 >= self.mark.1 * SLOW_START_GROWTH_PERCENT;
            self.phase = match self.phase {
                Phase::Unknown if doubling => Phase::SlowStart,
                Phase::Unknown | Phase::SlowStart if !doubling => Phase::CongestionAvoidance,
                phase => phase,
            };
            self.mark = (now_ns, cwnd);
        }
    }
}
