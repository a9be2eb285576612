//! A street: facades on both sides of a route, with crossroads, stretched to any length by reversing and concatenating.
//!
//! Must not know satellites, rays or time. Read `docs/channels/street.md` first. Lengths are metres; `x` runs along the
//! route. All arithmetic is IEEE or `libm`: a seed gives the same street on every machine.

use crate::rng::{Purpose, StreamKey, StreamRng};

/// A law from which heights and widths are drawn, metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LengthLaw {
    /// Always the same.
    Constant(f64),
    /// Between two ends.
    Uniform(f64, f64),
    /// Normal with mean and standard deviation; what falls below 0 is drawn again.
    Normal(f64, f64),
    /// Log-normal with median and standard deviation of the natural logarithm.
    LogNormal(f64, f64),
    /// Rayleigh with its mode (the most common value).
    Rayleigh(f64),
}

impl LengthLaw {
    fn draw(self, rng: &mut StreamRng) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Uniform(low, high) => low + (high - low) * rng.unit(),
            Self::Normal(mean, deviation) => {
                // A mean that is not negative is exceeded every second time: the loop ends.
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

/// What a street is drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreetParams {
    /// Length before it is stretched.
    pub length_m: f64,
    /// Heights of buildings.
    pub height: LengthLaw,
    /// Widths of their facades.
    pub facade: LengthLaw,
    /// Width of the street from facade to facade, drawn once.
    pub width: LengthLaw,
    /// Where the route runs: 0 at the left facades, 1 at the right ones.
    pub lateral: f64,
    /// From the end of a crossroads to the next; none: no crossroads.
    pub block: Option<LengthLaw>,
    /// Width of a crossroads.
    pub crossing: LengthLaw,
}

/// A building: facade from `start_m` to `end_m` along the street.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Building {
    /// Where its facade begins.
    pub start_m: f64,
    /// Where it ends.
    pub end_m: f64,
    /// Height of its roof.
    pub height_m: f64,
}

/// A side of the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Left of the direction of travel.
    Left,
    /// Right of it.
    Right,
}

/// A street as drawn or loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Street {
    /// Length before it is stretched.
    pub length_m: f64,
    /// Buildings of the left and the right side by ascending start, none overlapping.
    pub sides: [Vec<Building>; 2],
    /// From the route to the facades of the left and the right side.
    pub distance_m: [f64; 2],
}

/// What stands at a place of the stretched street: a building, or a gap of height 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Its lower end along the stretched street.
    pub low_m: f64,
    /// Its upper end.
    pub high_m: f64,
    /// Height of its roof; 0 in a gap.
    pub height_m: f64,
}

impl Piece {
    /// Its end forward or backward along the route.
    pub fn edge_m(&self, forward: bool) -> f64 {
        if forward { self.high_m } else { self.low_m }
    }
}

/// The least facade: a draw of 0 must not stall the building of a street.
const LEAST_M: f64 = 0.1;

impl Street {
    /// Draws a street. Each side and the plan draw from streams of their own: a change of one leaves the others alone.
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
        let width = params.width.draw(&mut plan).max(LEAST_M);
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

    /// What stands at `x_m` of the stretched street, in which every second copy is reversed.
    pub fn piece(&self, side: Side, x_m: f64) -> Piece {
        let buildings = &self.sides[side as usize];
        let period = 2.0 * self.length_m;
        let round = libm::floor(x_m / period);
        let inner = (x_m - round * period).clamp(0.0, period);
        let origin = round * period;
        if inner < self.length_m {
            let next = buildings.partition_point(|b| b.end_m <= inner);
            let (low, high, height_m) = self.stands(buildings, next, inner);
            return Piece {
                low_m: origin + low,
                high_m: origin + high,
                height_m,
            };
        }
        // Reversed: what ended at b begins at period - b, and a place on an edge belongs to what comes after it.
        let mirrored = period - inner;
        let next = buildings.partition_point(|b| b.end_m < mirrored);
        let (low, high, height_m) = self.stands(buildings, next, mirrored);
        Piece {
            low_m: origin + period - high,
            high_m: origin + period - low,
            height_m,
        }
    }

    /// The piece behind an edge, forward or backward along the route.
    pub fn beyond(&self, side: Side, edge_m: f64, forward: bool) -> Piece {
        // A hair, so that the place belongs to the next piece whichever way the copy runs.
        let hair_m = 1e-9 * (1.0 + libm::fabs(edge_m));
        self.piece(
            side,
            if forward {
                edge_m + hair_m
            } else {
                edge_m - hair_m
            },
        )
    }

    /// Ends and height of what stands at `x`, `next` being the first building that does not end before it.
    fn stands(&self, buildings: &[Building], next: usize, x: f64) -> (f64, f64, f64) {
        match buildings.get(next) {
            Some(b) if b.start_m <= x => (b.start_m, b.end_m, b.height_m),
            following => {
                let low = next.checked_sub(1).map_or(0.0, |i| buildings[i].end_m);
                (low, following.map_or(self.length_m, |b| b.start_m), 0.0)
            }
        }
    }

    /// The tallest roof of a side.
    pub fn tallest_m(&self, side: Side) -> f64 {
        let heights = self.sides[side as usize].iter().map(|b| b.height_m);
        heights.fold(0.0, f64::max)
    }
}

/// The stretches between crossroads.
fn blocks(params: &StreetParams, rng: &mut StreamRng) -> Vec<(f64, f64)> {
    let Some(block) = params.block else {
        return vec![(0.0, params.length_m)];
    };
    let mut blocks = Vec::new();
    let mut start = 0.0;
    while start < params.length_m {
        let end = (start + block.draw(rng).max(LEAST_M)).min(params.length_m);
        blocks.push((start, end));
        start = end + params.crossing.draw(rng).max(0.0);
    }
    blocks
}

/// Buildings side by side from the start of a block to its end; the last one is cut there.
fn fill_block(
    params: &StreetParams,
    start: f64,
    end: f64,
    rng: &mut StreamRng,
    buildings: &mut Vec<Building>,
) {
    let mut start_m = start;
    while start_m < end {
        let end_m = (start_m + params.facade.draw(rng).max(LEAST_M)).min(end);
        buildings.push(Building {
            start_m,
            end_m,
            height_m: params.height.draw(rng).max(0.0),
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
        // Written down once; another value means another street for the same seed.
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
    fn blocks_are_full_of_buildings_and_crossroads_empty() {
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
    fn stretched_it_is_reversed_and_concatenated() {
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
    fn walking_from_edge_to_edge_never_stands_still() {
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
    fn laws_have_their_means() {
        let mut rng = StreamRng::new(StreamKey {
            seed: 9,
            owner: 0,
            direction: 0,
            purpose: Purpose::Street,
        });
        let laws = [
            (LengthLaw::Constant(7.0), 7.0),
            (LengthLaw::Uniform(10.0, 30.0), 20.0),
            (LengthLaw::Normal(20.0, 3.0), 20.0),
            (LengthLaw::LogNormal(20.6, 0.44), 20.6 * libm::exp(0.0968)),
            (
                LengthLaw::Rayleigh(15.0),
                15.0 * libm::sqrt(std::f64::consts::FRAC_PI_2),
            ),
        ];
        for (law, mean) in laws {
            let got = (0..200_000).map(|_| law.draw(&mut rng)).sum::<f64>() / 2e5;
            assert!((got / mean - 1.0).abs() < 0.006, "{law:?}: {got}");
        }
    }
}
