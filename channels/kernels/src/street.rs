//! A street: facades on both sides of a route, with crossroads. A street is extended to any length by appending
//! reversed copies (`docs/channels/street.md`).
//!
//! Does not depend on satellites, rays or time. Lengths are in metres; `x` is the position along the route. All
//! arithmetic is IEEE 754 or `libm`, so a seed gives the same street on every machine.

use crate::rng::{Purpose, StreamKey, StreamRng};

/// A distribution of heights or widths, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LengthLaw {
    /// Constant.
    Constant(f64),
    /// Uniform between two limits.
    Uniform(f64, f64),
    /// Normal with mean and standard deviation, restricted to values of at least 0.
    Normal(f64, f64),
    /// Log-normal with median and standard deviation of the natural logarithm.
    LogNormal(f64, f64),
    /// Rayleigh with its mode.
    Rayleigh(f64),
}

impl LengthLaw {
    fn sample(self, rng: &mut StreamRng) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Uniform(low, high) => low + (high - low) * rng.unit(),
            Self::Normal(mean, deviation) => {
                // Half of the values exceed the mean, which is not negative: the loop ends.
                loop {
                    let value = mean.max(0.0) + deviation * rng.normal();
                    if value >= 0.0 {
                        return value;
                    }
                }
            }
            Self::LogNormal(median, sigma) => median * libm::exp(sigma * rng.normal()),
            Self::Rayleigh(mode) => mode * libm::sqrt(-2.0 * libm::log(rng.unit())),
        }
    }
}

/// The parameters of a random street.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreetParams {
    /// Length of the street before it repeats.
    pub length_m: f64,
    /// Heights of buildings.
    pub height: LengthLaw,
    /// Widths of facades.
    pub facade: LengthLaw,
    /// Width of the street from facade to facade; one value per street.
    pub width: LengthLaw,
    /// Position of the route across the street: 0 at the left facades, 1 at the right facades.
    pub lateral: f64,
    /// Distance from one crossroads to the next; none for a street without crossroads.
    pub block: Option<LengthLaw>,
    /// Width of a crossroads.
    pub crossing: LengthLaw,
}

/// A building: facade from `start_m` to `end_m` along the street.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Building {
    /// Start of the facade.
    pub start_m: f64,
    /// End of the facade.
    pub end_m: f64,
    /// Height of the roof.
    pub height_m: f64,
}

/// A side of the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// To the left of the direction of travel.
    Left,
    /// To the right of the direction of travel.
    Right,
}

/// A street, random or from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Street {
    /// Length of the street before it repeats.
    pub length_m: f64,
    /// Buildings on the left and the right side, sorted by start, without overlaps.
    pub sides: [Vec<Building>; 2],
    /// Distance from the route to the facades on the left and the right side.
    pub distance_m: [f64; 2],
}

/// A building or a gap of the extended street.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Start along the extended street.
    pub low_m: f64,
    /// End along the extended street.
    pub high_m: f64,
    /// Height of the roof; 0 for a gap.
    pub height_m: f64,
}

impl Piece {
    /// The end in the forward or the backward direction of the route.
    pub fn edge_m(&self, forward: bool) -> f64 {
        if forward { self.high_m } else { self.low_m }
    }
}

/// The minimum width of facades, blocks and streets: with a width of 0 the generation would not end.
const MIN_WIDTH_M: f64 = 0.1;

impl Street {
    /// Generates a random street. Each side and the plan use separate random streams, so that a change of one does not
    /// change the others.
    pub fn draw(params: &StreetParams, seed: u64, owner: u32) -> Self {
        let stream = |direction| {
            StreamRng::new(StreamKey {
                seed,
                owner,
                direction,
                purpose: Purpose::Street,
            })
        };
        let mut plan = stream(2);
        let width = params.width.sample(&mut plan).max(MIN_WIDTH_M);
        let blocks = blocks(params, &mut plan);
        let side = |direction: u8| {
            let mut rng = stream(direction);
            let mut buildings = Vec::new();
            for &(start, end) in &blocks {
                fill_block(params, start, end, &mut rng, &mut buildings);
            }
            buildings
        };
        Self {
            length_m: params.length_m,
            sides: [side(0), side(1)],
            distance_m: [width * params.lateral, width * (1.0 - params.lateral)],
        }
    }

    /// The building or gap at `x_m` of the extended street, in which every second copy is reversed.
    pub fn piece(&self, side: Side, x_m: f64) -> Piece {
        let buildings = &self.sides[side as usize];
        let period = 2.0 * self.length_m;
        let round = libm::floor(x_m / period);
        let inner = (x_m - round * period).clamp(0.0, period);
        let origin = round * period;
        if inner < self.length_m {
            let next = buildings.partition_point(|b| b.end_m <= inner);
            let (low, high, height_m) = self.find(buildings, next, inner);
            return Piece {
                low_m: origin + low,
                high_m: origin + high,
                height_m,
            };
        }
        // In a reversed copy an end at b becomes a start at period - b. A position on an edge belongs to what follows.
        let mirrored = period - inner;
        let next = buildings.partition_point(|b| b.end_m < mirrored);
        let (low, high, height_m) = self.find(buildings, next, mirrored);
        Piece {
            low_m: origin + period - high,
            high_m: origin + period - low,
            height_m,
        }
    }

    /// The building or gap on the other side of an edge, in the forward or the backward direction of the route.
    pub fn beyond(&self, side: Side, edge_m: f64, forward: bool) -> Piece {
        // A small offset, so that the position is within the next piece in either direction.
        let offset_m = 1e-9 * (1.0 + libm::fabs(edge_m));
        self.piece(
            side,
            if forward {
                edge_m + offset_m
            } else {
                edge_m - offset_m
            },
        )
    }

    /// Start, end and height of the building or gap at `x`; `next` is the first building that does not end before `x`.
    fn find(&self, buildings: &[Building], next: usize, x: f64) -> (f64, f64, f64) {
        match buildings.get(next) {
            Some(b) if b.start_m <= x => (b.start_m, b.end_m, b.height_m),
            following => {
                let low = next.checked_sub(1).map_or(0.0, |i| buildings[i].end_m);
                (low, following.map_or(self.length_m, |b| b.start_m), 0.0)
            }
        }
    }

    /// Height of the tallest building on a side.
    pub fn tallest_m(&self, side: Side) -> f64 {
        let heights = self.sides[side as usize].iter().map(|b| b.height_m);
        heights.fold(0.0, f64::max)
    }
}

/// The blocks between crossroads, with start and end.
fn blocks(params: &StreetParams, rng: &mut StreamRng) -> Vec<(f64, f64)> {
    let Some(block) = params.block else {
        return vec![(0.0, params.length_m)];
    };
    let mut blocks = Vec::new();
    let mut start = 0.0;
    while start < params.length_m {
        let end = (start + block.sample(rng).max(MIN_WIDTH_M)).min(params.length_m);
        blocks.push((start, end));
        start = end + params.crossing.sample(rng).max(0.0);
    }
    blocks
}

/// Adds adjacent buildings from the start of a block to its end, which cuts the last one.
fn fill_block(
    params: &StreetParams,
    start: f64,
    end: f64,
    rng: &mut StreamRng,
    buildings: &mut Vec<Building>,
) {
    let mut start_m = start;
    while start_m < end {
        let end_m = (start_m + params.facade.sample(rng).max(MIN_WIDTH_M)).min(end);
        buildings.push(Building {
            start_m,
            end_m,
            height_m: params.height.sample(rng).max(0.0),
        });
        start_m = end_m;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: StreetParams = StreetParams {
        length_m: 500.0,
        height: LengthLaw::LogNormal(20.6, 0.44),
        facade: LengthLaw::Uniform(10.0, 20.0),
        width: LengthLaw::Constant(20.0),
        lateral: 0.25,
        block: Some(LengthLaw::Constant(80.0)),
        crossing: LengthLaw::Constant(12.0),
    };

    #[test]
    fn a_seed_gives_the_same_street_on_every_machine() {
        let street = Street::draw(&PARAMS, 42, 0);
        // Recorded once: another value means another street for the same seed.
        let first = street.sides[0][0];
        assert_eq!(
            first.end_m.to_bits(),
            12.749_119_389_568_f64.to_bits(),
            "{first:?}"
        );
        assert_eq!(
            first.height_m.to_bits(),
            26.151_038_838_778_756_f64.to_bits(),
            "{first:?}"
        );
        assert_eq!(street, Street::draw(&PARAMS, 42, 0));
        assert_ne!(street, Street::draw(&PARAMS, 43, 0));
        assert_ne!(street, Street::draw(&PARAMS, 42, 1));
        assert_eq!(
            street.distance_m.map(f64::to_bits),
            [5.0, 15.0].map(f64::to_bits)
        );
    }

    #[test]
    fn blocks_are_filled_with_buildings_and_crossroads_are_empty() {
        let street = Street::draw(&PARAMS, 1, 0);
        for side in [Side::Left, Side::Right] {
            for metre in 0..5000 {
                let x = f64::from(metre) / 10.0 + 0.05;
                let free = x % 92.0 >= 80.0;
                let piece = street.piece(side, x);
                assert_eq!(piece.height_m <= 0.0, free, "{x} {piece:?}");
                assert!(piece.low_m <= x && x < piece.high_m, "{x} {piece:?}");
            }
        }
    }

    #[test]
    fn an_extended_street_repeats_reversed_copies() {
        let street = Street::draw(&PARAMS, 3, 0);
        for tenth in -20_000..20_000 {
            let x = f64::from(tenth) / 10.0 + 0.033;
            let folded = 500.0 - ((x.rem_euclid(1000.0)) - 500.0).abs();
            let (here, there) = (
                street.piece(Side::Right, x),
                street.piece(Side::Right, folded),
            );
            assert_eq!(here.height_m.to_bits(), there.height_m.to_bits(), "{x}");
            assert!(here.low_m <= x && x <= here.high_m, "{x} {here:?}");
            let widths = (here.high_m - here.low_m) - (there.high_m - there.low_m);
            assert!(widths.abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn the_end_of_a_piece_is_always_ahead() {
        let street = Street::draw(&PARAMS, 5, 0);
        let mut x = 0.0;
        let mut pieces = 0;
        while x < 3000.0 {
            let next = street.piece(Side::Left, x).high_m;
            assert!(next > x, "{x}");
            x = next + 1e-6;
            pieces += 1;
        }
        assert!((200..260).contains(&pieces), "{pieces}");
    }

    #[test]
    fn distributions_have_their_means() {
        let mut rng = StreamRng::new(StreamKey {
            seed: 9,
            owner: 0,
            direction: 0,
            purpose: Purpose::Street,
        });
        let distributions = [
            (LengthLaw::Constant(7.0), 7.0),
            (LengthLaw::Uniform(10.0, 30.0), 20.0),
            (LengthLaw::Normal(20.0, 3.0), 20.0),
            (LengthLaw::LogNormal(20.6, 0.44), 20.6 * libm::exp(0.0968)),
            (
                LengthLaw::Rayleigh(15.0),
                15.0 * libm::sqrt(std::f64::consts::FRAC_PI_2),
            ),
        ];
        for (distribution, mean) in distributions {
            let got = (0..200_000)
                .map(|_| distribution.sample(&mut rng))
                .sum::<f64>()
                / 2e5;
            assert!((got / mean - 1.0).abs() < 0.006, "{distribution:?}: {got}");
        }
    }
}
