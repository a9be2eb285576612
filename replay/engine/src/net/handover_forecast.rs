//! The forecast of a path, from its schedules: outages, and rate and delay after each change. It replaces the radio's
//! own forecast for mechanisms that adapt to handovers.
//!
//! Does not depend on TCP. Read `docs/mechanisms.md` first.

use crate::config::DirectionConfig;
use crate::sim::time::Nanos;

/// The state of the path from `at` on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathChange {
    /// When the data sender learns of it: one reverse delay after the change.
    pub at: Nanos,
    /// Minimum rate of the forward direction; none if a link has no rate or a rate trace.
    pub bottleneck_bps: Option<f64>,
    /// Propagation delay in both directions.
    pub rtt: Nanos,
}

/// The forecast of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandoverForecast {
    /// Start and end of the times in which a link is down or suspends transmission.
    pub outages: Vec<(Nanos, Nanos)>,
    /// States at the start and after each change that is not an outage.
    pub states: Vec<PathChange>,
}

/// State of one direction of a link while its schedule advances.
struct DirectionState<'a> {
    config: &'a DirectionConfig,
    rate_bps: Option<f64>,
    delay: Nanos,
    down: bool,
    held: bool,
    next: usize,
}

impl<'a> DirectionState<'a> {
    fn new(config: &'a DirectionConfig) -> Self {
        Self {
            config,
            rate_bps: config.rate_bps,
            delay: config.delay_ns,
            down: false,
            held: false,
            next: 0,
        }
    }

    /// Applies the changes up to `now`.
    fn advance_to(&mut self, now: Nanos) {
        let changes = &self.config.schedule[self.next..];
        for change in changes.iter().take_while(|change| change.at_ns <= now) {
            self.rate_bps = change.rate_bps.or(self.rate_bps);
            self.delay = change.delay_ns.unwrap_or(self.delay);
            self.down = change.outage.unwrap_or(self.down);
            self.held = change.hold.unwrap_or(self.held);
            self.next += 1;
        }
    }
}

impl HandoverForecast {
    /// The forecast of a way over links of which each has the directions `there` and `back`.
    pub fn of(there: &[&DirectionConfig], back: &[&DirectionConfig]) -> Self {
        let mut forward: Vec<_> = there.iter().copied().map(DirectionState::new).collect();
        let mut reverse: Vec<_> = back.iter().copied().map(DirectionState::new).collect();
        let schedules = there
            .iter()
            .chain(back)
            .flat_map(|direction| &direction.schedule);
        let mut times: Vec<Nanos> = schedules.map(|change| change.at_ns).collect();
        times.push(0);
        times.sort_unstable();
        times.dedup();
        let mut forecast = Self::default();
        let mut down_since = None;
        for now in times {
            for direction in forward.iter_mut().chain(&mut reverse) {
                direction.advance_to(now);
            }
            let down = forward.iter().chain(&reverse).any(|c| c.down || c.held);
            match (down_since, down) {
                (None, true) => down_since = Some(now),
                (Some(start), false) => {
                    forecast.outages.push((start, now));
                    down_since = None;
                }
                _ => {}
            }
            if !down {
                forecast.note(now, &forward, &reverse);
            }
        }
        if let Some(start) = down_since {
            forecast.outages.push((start, Nanos::MAX));
        }
        forecast
    }

    fn note(&mut self, now: Nanos, forward: &[DirectionState<'_>], reverse: &[DirectionState<'_>]) {
        let delay =
            |way: &[DirectionState<'_>]| way.iter().map(|direction| direction.delay).sum::<Nanos>();
        let rates = forward.iter().map(|direction| direction.rate_bps);
        let state = PathChange {
            at: now + if now == 0 { 0 } else { delay(reverse) },
            bottleneck_bps: rates.reduce(|a, b| Some(a?.min(b?))).flatten(),
            rtt: delay(forward) + delay(reverse),
        };
        let same = |last: &PathChange| {
            (last.bottleneck_bps, last.rtt) == (state.bottleneck_bps, state.rtt)
        };
        if !self.states.last().is_some_and(same) {
            self.states.push(state);
        }
    }

    /// Rate of the forward direction at `time` according to the schedule.
    pub fn rate_at(&self, time: Nanos) -> Option<f64> {
        let past = self.states.iter().take_while(|state| state.at <= time);
        past.last().and_then(|state| state.bottleneck_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LinkConfig;

    fn forecast(links: &str) -> HandoverForecast {
        let links: Vec<LinkConfig> = serde_json::from_str(links).expect("well-formed");
        let (there, back): (Vec<_>, Vec<_>) = links
            .iter()
            .map(|link| (&link.forward, &link.reverse))
            .unzip();
        HandoverForecast::of(&there, &back)
    }

    #[test]
    fn outages_of_all_directions_are_joined_and_states_are_known_a_reverse_delay_later() {
        let found = forecast(
            r#"[{"name": "up", "forward": {"rate_bps": 2e6, "delay_ns": 100, "schedule": [
                    {"at_ns": 1000, "outage": true}, {"at_ns": 2000, "outage": false, "delay_ns": 10, "rate_bps": 5e5}]},
                 "reverse": {"delay_ns": 100, "schedule": [
                    {"at_ns": 1500, "hold": true}, {"at_ns": 2500, "hold": false, "delay_ns": 10}]}},
                {"name": "down", "forward": {"rate_bps": 1e6, "delay_ns": 1}, "reverse": {"delay_ns": 1}}]"#,
        );
        assert_eq!(found.outages, [(1000, 2500)]);
        let state = |at, bps, rtt| PathChange {
            at,
            bottleneck_bps: Some(bps),
            rtt,
        };
        assert_eq!(found.states, [state(0, 1e6, 202), state(2511, 5e5, 22)]);
        assert_eq!(
            (found.rate_at(2510), found.rate_at(2511)),
            (Some(1e6), Some(5e5))
        );
    }

    #[test]
    fn an_outage_may_have_no_end_and_the_rate_is_unknown_if_a_link_has_none() {
        let found = forecast(
            r#"[{"name": "up", "forward": {"delay_ns": 5, "schedule": [{"at_ns": 7, "outage": true}]},
                 "reverse": {"delay_ns": 5}},
                {"name": "down", "forward": {"rate_bps": 1e6, "delay_ns": 1}, "reverse": {"delay_ns": 1}}]"#,
        );
        assert_eq!(found.outages, [(7, Nanos::MAX)]);
        assert_eq!(found.rate_at(100), None);
    }
}
