//! What stands between a terminal in a street and a satellite: masking angles, hard shadows, knife-edge diffraction.
//!
//! Must not know how a street came about, nor time. Read `docs/channels/street.md` first. Angles are radians; `phi` is
//! the azimuth of the satellite less that of the street, positive to the right.

use std::f64::consts::PI;

use crate::street::{Piece, Side, Street};

/// Where the satellite stands, seen from the street.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direction {
    /// Azimuth from the direction of travel, clockwise.
    pub phi: f64,
    /// Elevation above the horizon.
    pub elevation: f64,
}

/// A street and the height of the antenna in it.
#[derive(Clone, Debug)]
pub struct Canyon {
    street: Street,
    antenna_m: f64,
    depth_m: f64,
    tallest_m: [f64; 2],
}

/// Rays of one direction: where they meet the plane of the facades, and how they go on. Worked out once per direction.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    side: Side,
    /// How far the facades are, on the ground.
    ground_m: f64,
    /// How far that is along the street.
    along_m: f64,
    /// Height there.
    z_m: f64,
    tan_elevation: f64,
    cos_elevation: f64,
    cos_phi: f64,
    sin_phi: f64,
}

/// One of them, from one place.
#[derive(Clone, Copy, Debug)]
struct Ray {
    aim: Aim,
    /// Where along the street it meets the facades.
    x_m: f64,
}

/// Rays closer to the street's axis than this never meet its facades.
const ALONG: f64 = 1e-9;

/// Beyond this the knife edge's loss is below 0.05 dB: ITU-R P.526 §4.1.
const CLEAR_NU: f64 = -0.78;

/// A shadow this deep is not looked into any further, dB.
pub const DEEPEST_DB: f64 = 60.0;

impl Canyon {
    /// `depth_m`: how deep buildings are behind their facades; 0 takes facades as walls without thickness.
    pub fn new(street: Street, antenna_m: f64, depth_m: f64) -> Self {
        let tallest_m = [street.tallest_m(Side::Left), street.tallest_m(Side::Right)];
        Self {
            street,
            antenna_m,
            depth_m,
            tallest_m,
        }
    }

    /// The street.
    pub fn street(&self) -> &Street {
        &self.street
    }

    /// The rays towards `to`; none if they run along the street and never meet a facade.
    pub fn aim(&self, to: Direction) -> Option<Aim> {
        let sin_phi = libm::sin(to.phi);
        if libm::fabs(sin_phi) < ALONG {
            return None;
        }
        let side = if sin_phi > 0.0 {
            Side::Right
        } else {
            Side::Left
        };
        let cos_phi = libm::cos(to.phi);
        let sin_phi = libm::fabs(sin_phi);
        let ground_m = self.street.distance_m[side as usize] / sin_phi;
        let tan_elevation = libm::tan(to.elevation);
        Some(Aim {
            side,
            ground_m,
            along_m: ground_m * cos_phi,
            z_m: self.antenna_m + ground_m * tan_elevation,
            tan_elevation,
            cos_elevation: libm::cos(to.elevation),
            cos_phi,
            sin_phi,
        })
    }

    /// Whether a building hides the satellite from the place `x_m`.
    pub fn blocked(&self, x_m: f64, aim: &Aim) -> bool {
        if aim.z_m >= self.tallest_m[aim.side as usize] {
            return false;
        }
        let mut stopped = false;
        self.each_wall(&Ray::from(x_m, aim), |height_m, ground_m| {
            stopped = height_m > self.antenna_m + ground_m * aim.tan_elevation;
            stopped
        });
        stopped
    }

    /// The masking angle at the place `x_m` towards the azimuth `phi`: what stands below it is hidden.
    pub fn mask(&self, x_m: f64, phi: f64) -> f64 {
        let flat = Direction {
            phi,
            elevation: 0.0,
        };
        let Some(aim) = self.aim(flat) else {
            return 0.0;
        };
        let mut mask = 0.0;
        self.each_wall(&Ray::from(x_m, &aim), |height_m, ground_m| {
            mask = f64::max(mask, libm::atan2(height_m - self.antenna_m, ground_m));
            false
        });
        mask
    }

    /// Loss beyond free space by diffraction at the facades' edges, in dB (0 where the way is clear).
    ///
    /// Deviation: ITU-R P.526 §4.1 is for one edge; of several edges that shadow the least loss counts, of several that
    /// only graze the greatest, which keeps the loss steady where a shadow begins. Depth is not looked at.
    pub fn diffraction_db(&self, x_m: f64, aim: &Aim, wavelength_m: f64) -> f64 {
        let ray = Ray::from(x_m, aim);
        let path_m = aim.ground_m / aim.cos_elevation;
        // The other end is far away: nu = clearance sqrt(2 / (lambda d)).
        let scale = libm::sqrt(2.0 / (wavelength_m * path_m));
        let here = self.street.piece(aim.side, ray.x_m);
        let shadowed = here.height_m > aim.z_m;
        let roof = (here.height_m - aim.z_m) * aim.cos_elevation * scale;
        // Edges further than this to the side change nothing.
        let reach_m = if shadowed { roof } else { -CLEAR_NU } / (aim.sin_phi * scale);
        let beside_m = f64::min(
            self.edge_m(&ray, here, reach_m, false),
            self.edge_m(&ray, here, reach_m, true),
        );
        let beside = beside_m * aim.sin_phi * scale;
        if shadowed {
            knife_edge_db(roof.min(beside)).min(DEEPEST_DB)
        } else {
            knife_edge_db(f64::max(roof, -beside))
        }
    }

    /// Goes through the walls that the ray's shadow on the ground meets, by height and distance, until `seen` says
    /// that it has seen enough.
    fn each_wall(&self, ray: &Ray, mut seen: impl FnMut(f64, f64) -> bool) {
        let aim = &ray.aim;
        let mut piece = self.street.piece(aim.side, ray.x_m);
        let cos = libm::fabs(aim.cos_phi);
        if seen(piece.height_m, aim.ground_m) || self.depth_m == 0.0 || cos < ALONG {
            return;
        }
        let behind_m = self.depth_m / aim.sin_phi;
        loop {
            // To the side wall of the next building, along the ground.
            let edge_m = piece.edge_m(aim.cos_phi > 0.0);
            let way_m = libm::fabs(edge_m - ray.x_m) / cos;
            if way_m >= behind_m {
                return;
            }
            piece = self.street.beyond(aim.side, edge_m, aim.cos_phi > 0.0);
            if seen(piece.height_m, aim.ground_m + way_m) {
                return;
            }
        }
    }

    /// From the place where the ray meets the facades to where its shadow ends, or the next one begins, in the plane of
    /// the facades; infinite beyond `reach_m`.
    fn edge_m(&self, ray: &Ray, here: Piece, reach_m: f64, forward: bool) -> f64 {
        let shadowed = here.height_m > ray.aim.z_m;
        let mut piece = here;
        loop {
            let edge_m = piece.edge_m(forward);
            let way_m = libm::fabs(edge_m - ray.x_m);
            if way_m > reach_m {
                return f64::INFINITY;
            }
            piece = self.street.beyond(ray.aim.side, edge_m, forward);
            if (piece.height_m > ray.aim.z_m) != shadowed {
                return way_m;
            }
        }
    }
}

impl Ray {
    fn from(x_m: f64, aim: &Aim) -> Self {
        Self {
            aim: *aim,
            x_m: x_m + aim.along_m,
        }
    }
}

/// Loss over a single knife edge in dB: ITU-R P.526 §4.1, its approximation for nu above -0.78.
pub fn knife_edge_db(nu: f64) -> f64 {
    if nu <= CLEAR_NU {
        return 0.0;
    }
    if nu == f64::INFINITY {
        return DEEPEST_DB;
    }
    let shifted = nu - 0.1;
    6.9 + 20.0 * libm::log10(libm::sqrt(shifted * shifted + 1.0) + shifted)
}

/// Degrees to radians.
pub fn radians(degrees: f64) -> f64 {
    degrees * (PI / 180.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::street::{Building, LengthLaw, StreetParams};

    fn walls(left: Vec<Building>, right: Vec<Building>) -> Street {
        Street {
            length_m: 100.0,
            sides: [left, right],
            distance_m: [10.0, 10.0],
        }
    }

    fn building(start_m: f64, end_m: f64, height_m: f64) -> Building {
        Building {
            start_m,
            end_m,
            height_m,
        }
    }

    fn blocked(canyon: &Canyon, x_m: f64, to: Direction) -> bool {
        canyon.aim(to).is_some_and(|aim| canyon.blocked(x_m, &aim))
    }

    fn to(phi: f64, elevation: f64) -> Direction {
        Direction {
            phi: radians(phi),
            elevation: radians(elevation),
        }
    }

    #[test]
    fn a_constant_height_has_the_masking_angle_of_the_formula() {
        let row = vec![building(0.0, 100.0, 21.5)];
        let canyon = Canyon::new(walls(row.clone(), row), 1.5, 0.0);
        for degrees in (1..180).chain(181..360) {
            let phi = radians(f64::from(degrees));
            let mask = libm::atan(20.0 * libm::fabs(libm::sin(phi)) / 10.0);
            assert!((canyon.mask(37.0, phi) - mask).abs() < 1e-12, "{degrees}");
            for (off, hidden) in [(-1e-9, true), (1e-9, false)] {
                let direction = Direction {
                    phi,
                    elevation: mask + off,
                };
                assert_eq!(blocked(&canyon, 37.0, direction), hidden, "{degrees}");
            }
        }
        assert!(
            !blocked(&canyon, 37.0, to(0.0, 1.0)),
            "along the street the sky is open"
        );
        assert!(canyon.mask(37.0, 0.0) <= 0.0);
    }

    #[test]
    fn the_side_is_that_of_the_satellite() {
        let canyon = Canyon::new(walls(vec![], vec![building(0.0, 100.0, 30.0)]), 1.5, 0.0);
        assert!(blocked(&canyon, 50.0, to(90.0, 45.0)));
        assert!(!blocked(&canyon, 50.0, to(270.0, 45.0)));
    }

    #[test]
    fn a_crossroads_lets_light_in_where_the_ray_meets_it() {
        let row = vec![building(0.0, 40.0, 50.0), building(60.0, 100.0, 50.0)];
        let canyon = Canyon::new(walls(vec![], row), 0.0, 0.0);
        // Towards 45 degrees the ray meets the facades 10 m further on.
        for (x, hidden) in [(29.9, true), (30.1, false), (49.9, false), (50.1, true)] {
            assert_eq!(blocked(&canyon, x, to(45.0, 30.0)), hidden, "{x}");
        }
    }

    #[test]
    fn a_building_behind_a_gap_hides_by_its_side_wall_if_it_is_deep() {
        let row = vec![building(60.0, 100.0, 50.0)];
        let street = walls(vec![], row);
        let (thin, deep) = (
            Canyon::new(street.clone(), 0.0, 0.0),
            Canyon::new(street, 0.0, 15.0),
        );
        // From x = 40 towards 45 degrees: meets the facades at 50, the side wall at 60, 10 m behind the facades.
        let direction = to(45.0, 30.0);
        assert!(!blocked(&thin, 40.0, direction));
        assert!(blocked(&deep, 40.0, direction));
        assert!(
            !blocked(&deep, 34.0, direction),
            "16 m behind the facades: past its rear"
        );
        let steep = to(45.0, 65.0);
        assert!(
            !blocked(&deep, 40.0, steep),
            "over the roof at the side wall"
        );
        // The mask counts the distance to the side wall.
        let mask = deep.mask(40.0, radians(45.0));
        assert!((mask - libm::atan(50.0 / libm::sqrt(800.0))).abs() < 1e-9);
    }

    #[test]
    fn the_knife_edge_has_the_values_of_the_recommendation() {
        // J(0) = 6.0 dB; far in the shadow J = 12.9 + 20 log nu.
        assert!((knife_edge_db(0.0) - 6.03).abs() < 0.01);
        assert!((knife_edge_db(10.0) - 32.9).abs() < 0.1);
        assert!((knife_edge_db(1.0) - 13.93).abs() < 0.2);
        assert!(knife_edge_db(-0.79) <= 0.0);
        assert!(knife_edge_db(-0.77) < 0.1);
    }

    #[test]
    fn diffraction_grows_steadily_across_the_edge_of_a_shadow() {
        let row = vec![building(0.0, 40.0, 50.0), building(60.0, 100.0, 50.0)];
        let canyon = Canyon::new(walls(vec![], row), 1.5, 0.0);
        let loss = |x: f64, el: f64| {
            let aim = canyon.aim(to(90.0, el)).expect("across the street");
            canyon.diffraction_db(x, &aim, 0.1)
        };
        let mut last = loss(45.0, 30.0);
        for millimetre in 0..8000 {
            let x = 45.0 - f64::from(millimetre) / 1000.0;
            let now = loss(x, 30.0);
            assert!((now - last).abs() < 0.1, "{x}: {last} to {now}");
            last = now;
        }
        assert!(last > 20.0, "three metres into the shadow: {last}");
        assert!(loss(50.0, 30.0) <= 0.0, "two metres of clearance and more");
        // Over the roof: 6 dB at grazing.
        let grazing = libm::atan(48.5 / 10.0) * 180.0 / PI;
        assert!((loss(20.0, grazing) - 6.03).abs() < 0.05);
        assert!(loss(20.0, grazing - 5.0) > 12.0);
        assert!(loss(20.0, grazing + 5.0) <= 0.0);
    }

    #[test]
    fn a_drawn_street_is_hidden_as_often_as_its_law_says() {
        let params = StreetParams {
            length_m: 200_000.0,
            height: LengthLaw::LogNormal(20.6, 0.44),
            facade: LengthLaw::Constant(10.0),
            width: LengthLaw::Constant(20.0),
            lateral: 0.5,
            block: None,
            crossing: LengthLaw::Constant(0.0),
        };
        let canyon = Canyon::new(Street::draw(&params, 1, 0), 1.5, 0.0);
        let direction = to(60.0, 55.0);
        let hidden = (0..20_000)
            .filter(|i| blocked(&canyon, f64::from(*i) * 10.0 + 3.0, direction))
            .count() as f64
            / 2e4;
        // 1 - Phi(ln((1.5 + 10 tan 55 / sin 60) / 20.6) / 0.44), by tables of Phi.
        let threshold = 1.5 + 10.0 * libm::tan(radians(55.0)) / libm::sin(radians(60.0));
        let z = libm::log(threshold / 20.6) / 0.44;
        let share = 0.5 * libm::erfc(z / std::f64::consts::SQRT_2);
        let error = (share * (1.0 - share) / 2e4).sqrt();
        assert!(
            (hidden - share).abs() < 2.576 * error,
            "{hidden} against {share}"
        );
        let without_antenna = libm::log((threshold - 1.5) / 20.6) / 0.44;
        let wrong = 0.5 * libm::erfc(without_antenna / std::f64::consts::SQRT_2);
        assert!((hidden - wrong).abs() > 2.576 * error, "h_m counts");
    }
}
