//! A terminal that goes along a street under a satellite: what it sees, step by step, as runs of equal state.
//!
//! Must not know packets. Read `docs/channels/street.md` first. Memory does not grow with the time that passes.

use crate::sight::{Aim, Canyon, Direction};
use crate::steps::end_of_run;

/// How shadows are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    /// Hidden or not: level 0 is clear, 1 hidden.
    Hard,
    /// Diffraction in levels of `step_db`.
    Knife {
        /// Wavelength of the carrier.
        wavelength_m: f64,
        /// What one level is.
        step_db: f64,
    },
}

/// Where the satellite stands at a time, from the street.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Since the start.
    pub t_ns: u64,
    /// Where; `phi` may run past a full turn, so that neighbours are close.
    pub to: Direction,
}

/// The steps of a passage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Speed along the street; 0 stands still.
    pub speed_mps: f64,
    /// Where it begins.
    pub start_m: f64,
    /// Length of a step.
    pub step_ns: u64,
    /// Number of steps.
    pub steps: u64,
}

/// Runs of equal level, in order of time.
#[derive(Clone, Debug)]
pub struct Passage {
    canyon: Canyon,
    pace: Pace,
    edge: Edge,
    sky: Vec<Sample>,
    /// The sample that the present time lies behind.
    place: usize,
    /// The direction of `aim`.
    aimed: Option<Direction>,
    aim: Option<Aim>,
    step: u64,
    level: u16,
}

/// A level that holds from a step on, for a number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First step.
    pub step: u64,
    /// How many.
    pub steps: u64,
    /// The level, see [`Edge`]; [`SET`] while the satellite is below the horizon.
    pub level: u16,
}

/// The level while the satellite is below the horizon.
pub const SET: u16 = u16::MAX;

impl Passage {
    /// `sky` by ascending time, one sample at least; the last one holds to the end.
    pub fn new(canyon: Canyon, pace: Pace, edge: Edge, sky: Vec<Sample>) -> Self {
        let mut passage = Self {
            canyon,
            pace,
            edge,
            sky,
            place: 0,
            aimed: None,
            aim: None,
            step: 0,
            level: 0,
        };
        passage.level = passage.level_at(0);
        passage
    }

    fn level_at(&mut self, step: u64) -> u16 {
        let t_ns = step * self.pace.step_ns;
        let x_m = self.pace.start_m + self.pace.speed_mps * (t_ns as f64 / 1e9);
        let to = self.direction(t_ns);
        if to.elevation <= 0.0 {
            return SET;
        }
        if self.aimed != Some(to) {
            self.aimed = Some(to);
            self.aim = self.canyon.aim(to);
        }
        let Some(aim) = &self.aim else {
            return 0;
        };
        match self.edge {
            Edge::Hard => u16::from(self.canyon.blocked(x_m, aim)),
            Edge::Knife {
                wavelength_m,
                step_db,
            } => {
                let loss_db = self.canyon.diffraction_db(x_m, aim, wavelength_m);
                (loss_db / step_db + 0.5) as u16
            }
        }
    }

    /// Between two samples in proportion to the time.
    fn direction(&mut self, t_ns: u64) -> Direction {
        while self
            .sky
            .get(self.place + 1)
            .is_some_and(|next| next.t_ns <= t_ns)
        {
            self.place += 1;
        }
        let before = self.sky[self.place];
        let Some(after) = self.sky.get(self.place + 1) else {
            return before.to;
        };
        let part = t_ns.saturating_sub(before.t_ns) as f64 / (after.t_ns - before.t_ns) as f64;
        let between = |a: f64, b: f64| a + (b - a) * part;
        Direction {
            phi: between(before.to.phi, after.to.phi),
            elevation: between(before.to.elevation, after.to.elevation),
        }
    }

    /// Whether nothing can change any more.
    fn still(&self) -> bool {
        self.pace.speed_mps == 0.0 && self.place + 1 >= self.sky.len()
    }
}

impl Iterator for Passage {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.step >= self.pace.steps {
            return None;
        }
        let (first, level) = (self.step, self.level);
        if self.still() {
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
    use crate::sight::radians;
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
    fn goes_through_the_shadow_of_a_building_and_of_its_reversed_copy() {
        let passage = Passage::new(
            canyon(),
            pace(2.0, 90_000),
            Edge::Hard,
            vec![sample(0, 90.0, 30.0)],
        );
        let runs: Vec<_> = passage
            .map(|run| (run.step, run.steps, run.level))
            .collect();
        // 20 to 40 m, then 160 to 180 m of the copy, at 2 mm per step from 10 m on.
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
    fn standing_still_under_a_satellite_that_stands_still_nothing_changes() {
        let passage = Passage::new(
            canyon(),
            pace(0.0, u64::MAX / 2_000_000),
            Edge::Hard,
            vec![sample(0, 90.0, 30.0)],
        );
        assert_eq!(passage.count(), 1);
    }

    #[test]
    fn a_satellite_rises_passes_and_sets() {
        let sky = vec![
            sample(0, 90.0, -10.5),
            sample(100_000_000, 90.0, 90.0),
            sample(200_000_000, 90.0, -10.5),
        ];
        let mut standing = pace(0.0, 250);
        standing.start_m = 30.0;
        let runs: Vec<_> = Passage::new(canyon(), standing, Edge::Hard, sky)
            .map(|run| (run.step, run.level))
            .collect();
        // The mask is atan(48.5 / 10) = 78.35 degrees, reached after 88.35 ms at a degree per ms.
        assert_eq!(runs, [(0, SET), (11, 1), (89, 0), (112, 1), (190, SET)]);
    }

    #[test]
    fn diffraction_passes_through_its_levels() {
        let edge = Edge::Knife {
            wavelength_m: 0.1,
            step_db: 1.0,
        };
        let passage = Passage::new(
            canyon(),
            pace(2.0, 7_000),
            edge,
            vec![sample(0, 90.0, 30.0)],
        );
        let levels: Vec<_> = passage.map(|run| run.level).collect();
        assert_eq!(levels[0], 0);
        assert!(levels.iter().any(|&level| level > 15), "{levels:?}");
        assert!(levels.windows(2).all(|w| w[1] == w[0] + 1), "{levels:?}");
    }
}
