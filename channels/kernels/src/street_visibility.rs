//! The visibility of a satellite from a terminal that moves along a street, step by step, as runs of equal level
//! (`docs/channels/street.md`).
//!
//! Does not depend on packets. Memory does not grow with the simulated time.

use crate::line_of_sight::{Canyon, Direction, RayGeometry};
use crate::state_runs::end_of_run;

/// The model of a shadow's edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    /// Geometric: level 0 is clear, level 1 is blocked.
    Hard,
    /// Knife-edge diffraction, in levels of `step_db`.
    Knife {
        /// Wavelength of the carrier.
        wavelength_m: f64,
        /// Loss per level.
        step_db: f64,
    },
}

/// The direction of the satellite at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Time since the start.
    pub t_ns: u64,
    /// The direction. `phi` is unwrapped: it does not jump at a full turn.
    pub to: Direction,
}

/// The motion of the terminal and the steps of the simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Speed along the street; 0 for a terminal at rest.
    pub speed_mps: f64,
    /// Position at the start.
    pub start_m: f64,
    /// Length of a step.
    pub step_ns: u64,
    /// Number of steps.
    pub steps: u64,
}

/// The runs of equal level, in order of time.
#[derive(Clone, Debug)]
pub struct VisibilityRuns {
    canyon: Canyon,
    pace: Pace,
    edge: Edge,
    samples: Vec<Sample>,
    /// Index of the last sample before the present time.
    index: usize,
    /// The direction for which `geometry` was computed.
    direction: Option<Direction>,
    geometry: Option<RayGeometry>,
    step: u64,
    level: u16,
}

/// A run of steps with equal level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First step.
    pub step: u64,
    /// Number of steps.
    pub steps: u64,
    /// The level, see [`Edge`]; [`SET`] while the satellite is below the horizon.
    pub level: u16,
}

/// The level while the satellite is below the horizon.
pub const SET: u16 = u16::MAX;

impl VisibilityRuns {
    /// Starts at time 0. `samples` holds at least one sample, in order of time; the last one holds to the end.
    pub fn new(canyon: Canyon, pace: Pace, edge: Edge, samples: Vec<Sample>) -> Self {
        let mut visibility = Self {
            canyon,
            pace,
            edge,
            samples,
            index: 0,
            direction: None,
            geometry: None,
            step: 0,
            level: 0,
        };
        visibility.level = visibility.level_at(0);
        visibility
    }

    fn level_at(&mut self, step: u64) -> u16 {
        let t_ns = step * self.pace.step_ns;
        let x_m = self.pace.start_m + self.pace.speed_mps * (t_ns as f64 / 1e9);
        let to = self.direction_at(t_ns);
        if to.elevation <= 0.0 {
            return SET;
        }
        if self.direction != Some(to) {
            self.direction = Some(to);
            self.geometry = self.canyon.aim(to);
        }
        let Some(geometry) = &self.geometry else {
            return 0;
        };
        match self.edge {
            Edge::Hard => u16::from(self.canyon.blocked(x_m, geometry)),
            Edge::Knife {
                wavelength_m,
                step_db,
            } => {
                let loss_db = self.canyon.diffraction_db(x_m, geometry, wavelength_m);
                (loss_db / step_db + 0.5) as u16
            }
        }
    }

    /// The direction at a time, interpolated between two samples.
    fn direction_at(&mut self, t_ns: u64) -> Direction {
        while self
            .samples
            .get(self.index + 1)
            .is_some_and(|next| next.t_ns <= t_ns)
        {
            self.index += 1;
        }
        let before = self.samples[self.index];
        let Some(after) = self.samples.get(self.index + 1) else {
            return before.to;
        };
        let fraction = t_ns.saturating_sub(before.t_ns) as f64 / (after.t_ns - before.t_ns) as f64;
        let interpolate = |a: f64, b: f64| a + (b - a) * fraction;
        Direction {
            phi: interpolate(before.to.phi, after.to.phi),
            elevation: interpolate(before.to.elevation, after.to.elevation),
        }
    }

    /// Whether the level cannot change any more.
    fn is_static(&self) -> bool {
        self.pace.speed_mps == 0.0 && self.index + 1 >= self.samples.len()
    }
}

impl Iterator for VisibilityRuns {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.step >= self.pace.steps {
            return None;
        }
        let (first, level) = (self.step, self.level);
        if self.is_static() {
            self.step = self.pace.steps;
        } else {
            let steps = (first, self.pace.steps);
            (self.step, self.level) = end_of_run(level, steps, |step| self.level_at(step));
        }
        Some(Run {
            step: first,
            steps: self.step - first,
            level,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_of_sight::radians;
    use crate::street::{Building, Street};

    fn canyon() -> Canyon {
        let row = vec![Building {
            start_m: 20.0,
            end_m: 40.0,
            height_m: 50.0,
        }];
        let street = Street {
            length_m: 100.0,
            sides: [vec![], row],
            distance_m: [10.0, 10.0],
        };
        Canyon::new(street, 1.5, 0.0)
    }

    fn sample(t_ns: u64, phi: f64, elevation: f64) -> Sample {
        let to = Direction {
            phi: radians(phi),
            elevation: radians(elevation),
        };
        Sample { t_ns, to }
    }

    fn pace(speed_mps: f64, steps: u64) -> Pace {
        Pace {
            speed_mps,
            start_m: 10.0,
            step_ns: 1_000_000,
            steps,
        }
    }

    #[test]
    fn crosses_the_shadows_of_a_building_and_of_its_reversed_copy() {
        let visibility = VisibilityRuns::new(
            canyon(),
            pace(2.0, 90_000),
            Edge::Hard,
            vec![sample(0, 90.0, 30.0)],
        );
        let runs: Vec<_> = visibility
            .map(|run| (run.step, run.steps, run.level))
            .collect();
        // The building from 20 to 40 m and its copy from 160 to 180 m, at 2 mm per step from 10 m on.
        let expected = [
            (0, 5_000, 0),
            (5_000, 10_000, 1),
            (15_000, 60_000, 0),
            (75_000, 10_000, 1),
            (85_000, 5_000, 0),
        ];
        for (run, expected) in runs.iter().zip(expected) {
            assert!(
                run.0.abs_diff(expected.0) <= 1 && run.2 == expected.2,
                "{runs:?}"
            );
        }
        assert_eq!(runs.len(), 5);
        assert_eq!(runs.iter().map(|run| run.1).sum::<u64>(), 90_000);
    }

    #[test]
    fn nothing_changes_if_terminal_and_satellite_are_at_rest() {
        let visibility = VisibilityRuns::new(
            canyon(),
            pace(0.0, u64::MAX / 2_000_000),
            Edge::Hard,
            vec![sample(0, 90.0, 30.0)],
        );
        assert_eq!(visibility.count(), 1);
    }

    #[test]
    fn a_satellite_rises_passes_and_sets() {
        let samples = vec![
            sample(0, 90.0, -10.5),
            sample(100_000_000, 90.0, 90.0),
            sample(200_000_000, 90.0, -10.5),
        ];
        let mut standing = pace(0.0, 250);
        standing.start_m = 30.0;
        let runs: Vec<_> = VisibilityRuns::new(canyon(), standing, Edge::Hard, samples)
            .map(|run| (run.step, run.level))
            .collect();
        // The masking angle is atan(48.5 / 10) = 78.35 degrees, reached after 88.35 ms at a degree per ms.
        assert_eq!(runs, [(0, SET), (11, 1), (89, 0), (112, 1), (190, SET)]);
    }

    #[test]
    fn the_diffraction_loss_skips_no_level() {
        let edge = Edge::Knife {
            wavelength_m: 0.1,
            step_db: 1.0,
        };
        let visibility = VisibilityRuns::new(
            canyon(),
            pace(2.0, 7_000),
            edge,
            vec![sample(0, 90.0, 30.0)],
        );
        let levels: Vec<_> = visibility.map(|run| run.level).collect();
        assert_eq!(levels[0], 0);
        assert!(levels.iter().any(|&level| level > 15), "{levels:?}");
        assert!(levels.windows(2).all(|w| w[1] == w[0] + 1), "{levels:?}");
    }
}
