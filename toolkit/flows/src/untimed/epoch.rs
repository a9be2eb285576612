//! The time from one reduction of the window to the next: what arrived and was acknowledged, and how the window grew.

use super::growth::{Growth, Law};
use crate::rows::Phase;

/// Maximum number of segments and of ACKs that are kept.
const MAX_KEPT: usize = 1 << 14;

/// RFC 6928 §2, in segments.
pub const INITIAL_WINDOW: i64 = 10;

/// No slow start threshold.
const NO_SSTHRESH: i64 = i64::MAX / 4;

/// Share of the window by which an estimate may be off: 1/32.
const MARGIN_DIVISOR: i64 = 32;

/// The window at the start of an epoch, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Start {
    /// Not known.
    Unknown,
    /// The initial window.
    Initial,
    /// Fast recovery reduced a window of `cwnd` when `lost` segments were missing.
    Reduced {
        /// The window before the reduction.
        cwnd: i64,
        /// Segments missing when the recovery began.
        lost: i64,
    },
    /// A timeout ended a window of `cwnd` (RFC 5681 §3.1, equation 4).
    Timeout {
        /// The window before it.
        cwnd: i64,
    },
}

impl Start {
    /// The window with which an epoch starts under `law`, and the slow start threshold.
    fn window(self, law: Law) -> Option<(i64, i64)> {
        match self {
            Self::Unknown => None,
            Self::Initial => Some((INITIAL_WINDOW, NO_SSTHRESH)),
            Self::Reduced { cwnd, .. } => Some((law.reduced(cwnd), law.reduced(cwnd))),
            Self::Timeout { cwnd } => Some((1, law.reduced(cwnd))),
        }
    }
}

/// A segment at the capture point.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Arrived {
    /// Time.
    pub t_ns: i64,
    /// One past its last octet.
    pub end: i64,
    /// It repeats octets.
    pub retransmission: bool,
    /// Segments so far, and those among them that repeat octets.
    pub counts: (u32, u32),
}

/// An ACK of new data.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Acked {
    /// Time at the capture point.
    pub t_ns: i64,
    /// SEG.ACK.
    pub seg_ack: i64,
    /// Octets that arrived since the ACK before it.
    pub delivered: i64,
    /// One past the last octet that the receiver allows.
    pub window_end: Option<i64>,
}

/// The window after an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    cwnd: i64,
    slow_start: bool,
    /// The receive window limits the sender.
    rwnd_limited: bool,
}

/// The windows of an epoch under one law.
#[derive(Clone, Debug)]
pub struct Path {
    /// The law.
    pub law: Law,
    first: Step,
    steps: Vec<Step>,
    ssthresh: i64,
}

impl Path {
    /// The window at the start, in segments.
    pub fn first_cwnd(&self) -> i64 {
        self.first.cwnd
    }

    /// The window at the end, in segments.
    pub fn last_cwnd(&self) -> i64 {
        self.steps.last().unwrap_or(&self.first).cwnd
    }

    fn step(&self, index: Option<usize>) -> Step {
        index.map_or(self.first, |index| self.steps[index])
    }
}

/// A value of the window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// What had arrived when the segment came that shows it.
    pub at: Arrived,
    /// SND.UNA.
    pub snd_una: i64,
    /// The window and its limits, in octets; `None` if it is not known.
    pub cwnd: Option<(i64, i64, i64)>,
    /// Slow start threshold, in octets.
    pub ssthresh_bytes: Option<i64>,
    /// What the sender did when the segment left.
    pub phase: Phase,
}

/// The paths of an epoch that may be, the best one first, and the window at its end as its last segments show it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The paths.
    pub paths: Vec<Path>,
    /// The window at the end, in segments; `None` if nothing shows it.
    pub observed: Option<i64>,
    /// The first path leads to it. Else the window may be anywhere between what is interpolated and the path.
    pub reached: bool,
}

/// One epoch.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Epoch {
    /// How it started.
    pub start: Start,
    /// SND.UNA then.
    pub snd_una: i64,
    /// W_max of RFC 9438, in segments; 0 if there is none.
    pub w_max: i64,
    arrived: Vec<Arrived>,
    acked: Vec<Acked>,
}

impl Epoch {
    /// An epoch that starts at `snd_una`.
    pub fn new(start: Start, snd_una: i64, w_max: i64) -> Self {
        Self {
            start,
            snd_una,
            w_max,
            arrived: Vec::new(),
            acked: Vec::new(),
        }
    }

    /// Whether it is too long to be kept.
    pub fn is_full(&self) -> bool {
        self.arrived.len() >= MAX_KEPT || self.acked.len() >= MAX_KEPT
    }

    /// Adds a segment.
    pub fn on_data(&mut self, arrived: Arrived) {
        if self.start != Start::Unknown {
            self.arrived.push(arrived);
        }
    }

    /// Adds an ACK of new data.
    pub fn on_ack(&mut self, acked: Acked) {
        if self.start != Start::Unknown {
            self.acked.push(acked);
        }
    }

    /// The recovery ends: growth starts with the next ACK, which is of `snd_una`. The segments so far stay.
    pub fn begin(&mut self, snd_una: i64) {
        self.snd_una = snd_una;
        self.acked.clear();
    }

    /// Releases spare capacity.
    pub fn release_memory(&mut self) {
        self.arrived.shrink_to_fit();
        self.acked.shrink_to_fit();
    }

    /// Time of the first segment.
    pub fn first_ns(&self) -> Option<i64> {
        self.arrived.first().map(|arrived| arrived.t_ns)
    }

    /// How the window grew under `law`, if the start is known.
    pub fn path(&self, law: Law, smss_bytes: i64, rtt_ns: i64) -> Option<Path> {
        let window = self.start.window(law)?;
        Some(self.path_from(window, law, smss_bytes, rtt_ns))
    }

    /// How the window grew under `law` from `window`: its size and the slow start threshold, in segments.
    pub fn path_from(&self, window: (i64, i64), law: Law, smss_bytes: i64, rtt_ns: i64) -> Path {
        let mut growth = Growth::new(law, window, self.w_max, rtt_ns);
        let mut rest_bytes = 0;
        let mut limited = false;
        let steps = self.acked.iter().map(|acked| {
            rest_bytes += acked.delivered;
            let segments = rest_bytes / smss_bytes;
            rest_bytes %= smss_bytes;
            // A window that the sender does not fill does not grow (RFC 9293 §3.8.6; Linux, `tcp_is_cwnd_limited`).
            if segments > 0 && !limited {
                growth.on_ack(segments, acked.t_ns);
            }
            let next_bytes = (growth.cwnd + 1).saturating_mul(smss_bytes);
            limited = acked
                .window_end
                .is_some_and(|end| acked.seg_ack.saturating_add(next_bytes) > end);
            Step {
                cwnd: growth.cwnd,
                slow_start: growth.cwnd < growth.ssthresh,
                rwnd_limited: limited,
            }
        });
        Path {
            law,
            first: Step {
                cwnd: window.0,
                slow_start: window.0 < window.1,
                rwnd_limited: false,
            },
            steps: steps.collect(),
            ssthresh: window.1,
        }
    }

    /// The windows that the segments show, where the last ones arrived when SND.UNA was `end_una`.
    pub fn windows(&self, explained: &Explained, end_una: i64, smss_bytes: i64) -> Vec<Window> {
        let Some(best) = explained.paths.first() else {
            return Vec::new();
        };
        let mut windows = Vec::new();
        let mut index = None;
        let recovery = self.recovery(explained, smss_bytes);
        for (number, &at) in self.arrived.iter().enumerate() {
            let after_timeout = matches!(self.start, Start::Timeout { .. });
            if at.retransmission && number > 0 && !after_timeout {
                continue;
            }
            if let Some(recovery) = recovery.filter(|recovery| at.end <= recovery.end) {
                windows.push(recovery.window(at, self.snd_una, smss_bytes));
                continue;
            }
            // The first ACK after which the window had room for the segment let it go.
            while let Some(acked) = self.acked.get(index.map_or(0, |index| index + 1))
                && self.allowed_end(best, index, smss_bytes) < at.end
            {
                debug_assert!(acked.seg_ack >= self.snd_una);
                index = Some(index.map_or(0, |index| index + 1));
            }
            let snd_una = self.una(index);
            let share = (snd_una - self.snd_una, (end_una - self.snd_una).max(1));
            let step = best.step(index);
            let known = !step.rwnd_limited;
            let ssthresh = (best.ssthresh < NO_SSTHRESH).then(|| best.ssthresh * smss_bytes);
            windows.push(Window {
                at,
                snd_una,
                cwnd: known.then(|| explained.limits(index, share, smss_bytes)),
                ssthresh_bytes: ssthresh,
                phase: match step {
                    _ if !known => Phase::Limited,
                    Step {
                        slow_start: true, ..
                    } => Phase::SlowStart,
                    _ => Phase::CongestionAvoidance,
                },
            });
        }
        windows
    }

    /// SND.UNA after the ACK of `index`.
    fn una(&self, index: Option<usize>) -> i64 {
        index.map_or(self.snd_una, |index| self.acked[index].seg_ack)
    }

    /// One past the last octet that the window allowed after the ACK of `index`.
    fn allowed_end(&self, path: &Path, index: Option<usize>, smss_bytes: i64) -> i64 {
        self.una(index) + path.step(index).cwnd * smss_bytes
    }

    /// The fast recovery with which it started.
    fn recovery(&self, explained: &Explained, smss_bytes: i64) -> Option<Recovery> {
        let Start::Reduced { cwnd, lost } = self.start else {
            return None;
        };
        let best = explained.paths.first()?;
        let targets = explained.paths.iter().map(|path| path.first.cwnd);
        let target = best.first.cwnd;
        Some(Recovery {
            cwnd,
            target,
            least: targets.min().unwrap_or(target),
            end: self.snd_una + target * smss_bytes,
            // RFC 6937 §3: with more lost than the reduction takes, the window is the pipe.
            known: cwnd - lost >= target,
        })
    }
}

impl Explained {
    /// The window after the ACK of `index` and its limits, in octets. `share` of the epoch had passed: as much of what
    /// the window at the end differs from the path is added.
    fn limits(
        &self,
        index: Option<usize>,
        (part, whole): (i64, i64),
        smss_bytes: i64,
    ) -> (i64, i64, i64) {
        let value = |path: &Path| {
            let difference = self.observed.map_or(0, |cwnd| cwnd - path.last_cwnd());
            let added = i128::from(difference * smss_bytes) * i128::from(part) / i128::from(whole);
            path.step(index).cwnd * smss_bytes + added as i64
        };
        let best = value(&self.paths[0]);
        let values = self.paths.iter().map(value);
        let own = |path: &Path| path.step(index).cwnd * smss_bytes;
        let unreached = self.paths.iter().filter(|_| !self.reached).map(own);
        let (low, high) = (values.chain(unreached)).fold((best, best), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let observed = self.observed.unwrap_or(self.paths[0].last_cwnd());
        let difference = (observed - self.paths[0].last_cwnd()).abs();
        let margin = smss_bytes + difference * smss_bytes / 2 + best / MARGIN_DIVISOR;
        (best, (low - margin).max(0), high + margin)
    }
}

/// A fast recovery that reduces a window of `cwnd` segments to `target`.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    cwnd: i64,
    target: i64,
    /// The lowest target that may be.
    least: i64,
    /// One past the last octet sent before its end.
    end: i64,
    known: bool,
}

impl Recovery {
    /// The window when the segment `at` left. RFC 6937 §3: `target` segments leave while `cwnd` are delivered, so that
    /// the pipe falls steadily; the lost segment is not in it.
    fn window(self, at: Arrived, recovery_point: i64, smss_bytes: i64) -> Window {
        let fall_bytes = (self.cwnd - self.target) * smss_bytes;
        let sent_bytes = (at.end - recovery_point).max(0) + smss_bytes;
        let left_bytes = i128::from(sent_bytes) * i128::from(self.cwnd - self.target);
        let left_bytes = (left_bytes / i128::from(self.target)) as i64;
        let target_bytes = self.target * smss_bytes;
        let cwnd = ((self.cwnd - 1) * smss_bytes - left_bytes).max(target_bytes);
        let margin = smss_bytes + fall_bytes / 3;
        let low = (cwnd - margin).min(self.least * smss_bytes - smss_bytes);
        let low = if self.least < self.target {
            low
        } else {
            cwnd - margin
        };
        Window {
            at,
            snd_una: recovery_point,
            cwnd: self.known.then_some((cwnd, low.max(0), cwnd + margin)),
            ssthresh_bytes: Some(target_bytes),
            phase: Phase::Recovery,
        }
    }
}
