//! The line of sight from a terminal in a street to a satellite: masking angles, blocked rays, and knife-edge
//! diffraction (`docs/channels/street.md`).
//!
//! Does not depend on time or on how the street was generated. Angles are in radians; `phi` is the azimuth of the
//! satellite minus that of the street, positive to the right.

use std::f64::consts::PI;

use crate::street::{Piece, Side, Street};

/// The direction of the satellite, relative to the street.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direction {
    /// Azimuth relative to the direction of travel, clockwise.
    pub phi: f64,
    /// Elevation above the horizon.
    pub elevation: f64,
}

/// A street with an antenna in it.
#[derive(Clone, Debug)]
pub struct Canyon {
    street: Street,
    antenna_m: f64,
    depth_m: f64,
    tallest_m: [f64; 2],
}

/// The geometry of the rays in one direction: where they meet the plane of the facades. Computed once per direction.
#[derive(Clone, Copy, Debug)]
pub struct RayGeometry {
    side: Side,
    /// Distance on the ground to the facades.
    ground_m: f64,
    /// The part of `ground_m` along the street.
    along_m: f64,
    /// Height of the ray at the facades.
    z_m: f64,
    tan_elevation: f64,
    cos_elevation: f64,
    cos_phi: f64,
    sin_phi: f64,
}

/// The ray from one place.
#[derive(Clone, Copy, Debug)]
struct Ray {
    geometry: RayGeometry,
    /// Position along the street at which the ray meets the facades.
    x_m: f64,
}

/// A ray closer to the axis of the street than this (sine of the angle) never meets the facades.
const PARALLEL: f64 = 1e-9;

/// At or below this parameter a knife edge causes no loss (ITU-R P.526 §4.1: it is less than 0.05 dB).
const CLEAR_NU: f64 = -0.78;

/// The largest diffraction loss that is returned, dB.
pub const MAX_LOSS_DB: f64 = 60.0;

impl Canyon {
    /// A canyon; `depth_m` is the depth of buildings behind their facades. With 0, facades are walls without thickness.
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

    /// The geometry of the rays towards `to`; none if they run along the street and never meet a facade.
    pub fn aim(&self, to: Direction) -> Option<RayGeometry> {
        let sin_phi = libm::sin(to.phi);
        if libm::fabs(sin_phi) < PARALLEL {
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
        Some(RayGeometry {
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

    /// Whether a building blocks the ray from the place `x_m`.
    pub fn blocked(&self, x_m: f64, geometry: &RayGeometry) -> bool {
        if geometry.z_m >= self.tallest_m[geometry.side as usize] {
            return false;
        }
        let mut blocked = false;
        self.visit_walls(&Ray::from(x_m, geometry), |height_m, ground_m| {
            blocked = height_m > self.antenna_m + ground_m * geometry.tan_elevation;
            blocked
        });
        blocked
    }

    /// The masking angle at the place `x_m` in the azimuth `phi`: a satellite below it is blocked.
    pub fn mask(&self, x_m: f64, phi: f64) -> f64 {
        let horizontal = Direction {
            phi,
            elevation: 0.0,
        };
        let Some(geometry) = self.aim(horizontal) else {
            return 0.0;
        };
        let mut mask = 0.0;
        self.visit_walls(&Ray::from(x_m, &geometry), |height_m, ground_m| {
            mask = f64::max(mask, libm::atan2(height_m - self.antenna_m, ground_m));
            false
        });
        mask
    }

    /// The diffraction loss at the edges of the facades, in dB above free space; 0 where the path is clear.
    ///
    /// Deviation: ITU-R P.526 §4.1 describes a single edge. Of several edges that shadow the ray, the smallest loss
    /// counts; of several that the ray only grazes, the largest. So the loss is continuous where a shadow begins. The
    /// depth of buildings is ignored.
    pub fn diffraction_db(&self, x_m: f64, geometry: &RayGeometry, wavelength_m: f64) -> f64 {
        let ray = Ray::from(x_m, geometry);
        let path_m = geometry.ground_m / geometry.cos_elevation;
        // The satellite is far away, so nu = clearance sqrt(2 / (lambda d)).
        let scale = libm::sqrt(2.0 / (wavelength_m * path_m));
        let here = self.street.piece(geometry.side, ray.x_m);
        let shadowed = here.height_m > geometry.z_m;
        let roof_nu = (here.height_m - geometry.z_m) * geometry.cos_elevation * scale;
        // Side edges farther away than this do not matter.
        let reach_m = if shadowed { roof_nu } else { -CLEAR_NU } / (geometry.sin_phi * scale);
        let side_m = f64::min(
            self.edge_distance_m(&ray, here, reach_m, false),
            self.edge_distance_m(&ray, here, reach_m, true),
        );
        let side_nu = side_m * geometry.sin_phi * scale;
        if shadowed {
            knife_edge_db(roof_nu.min(side_nu)).min(MAX_LOSS_DB)
        } else {
            knife_edge_db(f64::max(roof_nu, -side_nu))
        }
    }

    /// Visits the walls that the ray crosses on the ground, with their height and distance, until `stop` returns true.
    fn visit_walls(&self, ray: &Ray, mut stop: impl FnMut(f64, f64) -> bool) {
        let geometry = &ray.geometry;
        let mut piece = self.street.piece(geometry.side, ray.x_m);
        let cos = libm::fabs(geometry.cos_phi);
        if stop(piece.height_m, geometry.ground_m) || self.depth_m == 0.0 || cos < PARALLEL {
            return;
        }
        let depth_m = self.depth_m / geometry.sin_phi;
        loop {
            // The distance on the ground from the facades to the side wall of the next building.
            let edge_m = piece.edge_m(geometry.cos_phi > 0.0);
            let distance_m = libm::fabs(edge_m - ray.x_m) / cos;
            if distance_m >= depth_m {
                return;
            }
            piece = self
                .street
                .beyond(geometry.side, edge_m, geometry.cos_phi > 0.0);
            if stop(piece.height_m, geometry.ground_m + distance_m) {
                return;
            }
        }
    }

    /// The distance, in the plane of the facades, from the ray to the end of the shadow, or to the next shadow if the
    /// ray is clear; infinite beyond `reach_m`.
    fn edge_distance_m(&self, ray: &Ray, here: Piece, reach_m: f64, forward: bool) -> f64 {
        let shadowed = here.height_m > ray.geometry.z_m;
        let mut piece = here;
        loop {
            let edge_m = piece.edge_m(forward);
            let distance_m = libm::fabs(edge_m - ray.x_m);
            if distance_m > reach_m {
                return f64::INFINITY;
            }
            piece = self.street.beyond(ray.geometry.side, edge_m, forward);
            if (piece.height_m > ray.geometry.z_m) != shadowed {
                return distance_m;
            }
        }
    }
}

impl Ray {
    fn from(x_m: f64, geometry: &RayGeometry) -> Self {
        Self {
            geometry: *geometry,
            x_m: x_m + geometry.along_m,
        }
    }
}

/// Loss of a single knife edge in dB: the approximation of ITU-R P.526 §4.1 for nu above -0.78.
pub fn knife_edge_db(nu: f64) -> f64 {
    if nu <= CLEAR_NU {
        return 0.0;
    }
    if nu == f64::INFINITY {
        return MAX_LOSS_DB;
    }
    let shifted = nu - 0.1;
    6.9 + 20.0 * libm::log10(libm::sqrt(shifted * shifted + 1.0) + shifted)
}

/// Converts degrees to radians.
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
        let geometry = canyon.aim(to);
        geometry.is_some_and(|geometry| canyon.blocked(x_m, &geometry))
    }

    fn to(phi: f64, elevation: f64) -> Direction {
        Direction {
            phi: radians(phi),
            elevation: radians(elevation),
        }
    }

    #[test]
    fn constant_heights_have_the_masking_angle_of_the_formula() {
        let row = vec![building(0.0, 100.0, 21.5)];
        let canyon = Canyon::new(walls(row.clone(), row), 1.5, 0.0);
        for degrees in (1..180).chain(181..360) {
            let phi = radians(f64::from(degrees));
            let mask = libm::atan(20.0 * libm::fabs(libm::sin(phi)) / 10.0);
            assert!((canyon.mask(37.0, phi) - mask).abs() < 1e-12, "{degrees}");
            for (off, expected) in [(-1e-9, true), (1e-9, false)] {
                let direction = Direction {
                    phi,
                    elevation: mask + off,
                };
                assert_eq!(blocked(&canyon, 37.0, direction), expected, "{degrees}");
            }
        }
        assert!(
            !blocked(&canyon, 37.0, to(0.0, 1.0)),
            "nothing blocks a ray along the street"
        );
        assert!(canyon.mask(37.0, 0.0) <= 0.0);
    }

    #[test]
    fn only_the_side_of_the_satellite_counts() {
        let canyon = Canyon::new(walls(vec![], vec![building(0.0, 100.0, 30.0)]), 1.5, 0.0);
        assert!(blocked(&canyon, 50.0, to(90.0, 45.0)));
        assert!(!blocked(&canyon, 50.0, to(270.0, 45.0)));
    }

    #[test]
    fn a_ray_through_a_crossroads_is_clear() {
        let row = vec![building(0.0, 40.0, 50.0), building(60.0, 100.0, 50.0)];
        let canyon = Canyon::new(walls(vec![], row), 0.0, 0.0);
        // In azimuth 45 degrees the ray meets the facades 10 m ahead.
        for (x, expected) in [(29.9, true), (30.1, false), (49.9, false), (50.1, true)] {
            assert_eq!(blocked(&canyon, x, to(45.0, 30.0)), expected, "{x}");
        }
    }

    #[test]
    fn the_side_wall_of_a_deep_building_blocks_a_ray_through_a_gap() {
        let row = vec![building(60.0, 100.0, 50.0)];
        let street = walls(vec![], row);
        let (thin, deep) = (
            Canyon::new(street.clone(), 0.0, 0.0),
            Canyon::new(street, 0.0, 15.0),
        );
        // From x = 40 in azimuth 45 degrees: the facades at 50, the side wall at 60, 10 m behind the facades.
        let direction = to(45.0, 30.0);
        assert!(!blocked(&thin, 40.0, direction));
        assert!(blocked(&deep, 40.0, direction));
        assert!(
            !blocked(&deep, 34.0, direction),
            "16 m behind the facades: past the rear of the building"
        );
        let steep = to(45.0, 65.0);
        assert!(
            !blocked(&deep, 40.0, steep),
            "above the roof at the side wall"
        );
        // The masking angle uses the distance to the side wall.
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
    fn diffraction_is_continuous_across_the_edge_of_a_shadow() {
        let row = vec![building(0.0, 40.0, 50.0), building(60.0, 100.0, 50.0)];
        let canyon = Canyon::new(walls(vec![], row), 1.5, 0.0);
        let loss = |x: f64, el: f64| {
            let geometry = canyon.aim(to(90.0, el)).expect("across the street");
            canyon.diffraction_db(x, &geometry, 0.1)
        };
        let mut last = loss(45.0, 30.0);
        for millimetre in 0..8000 {
            let x = 45.0 - f64::from(millimetre) / 1000.0;
            let now = loss(x, 30.0);
            assert!((now - last).abs() < 0.1, "{x}: {last} to {now}");
            last = now;
        }
        assert!(last > 20.0, "three metres into the shadow: {last}");
        assert!(loss(50.0, 30.0) <= 0.0, "at least two metres of clearance");
        // Above the roof: 6 dB where the ray grazes it.
        let grazing = libm::atan(48.5 / 10.0) * 180.0 / PI;
        assert!((loss(20.0, grazing) - 6.03).abs() < 0.05);
        assert!(loss(20.0, grazing - 5.0) > 12.0);
        assert!(loss(20.0, grazing + 5.0) <= 0.0);
    }

    #[test]
    fn a_random_street_blocks_as_often_as_its_height_distribution_says() {
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
        let share_blocked = (0..20_000)
            .filter(|i| blocked(&canyon, f64::from(*i) * 10.0 + 3.0, direction))
            .count() as f64
            / 2e4;
        // 1 - Phi(ln((1.5 + 10 tan 55 / sin 60) / 20.6) / 0.44).
        let threshold = 1.5 + 10.0 * libm::tan(radians(55.0)) / libm::sin(radians(60.0));
        let z = libm::log(threshold / 20.6) / 0.44;
        let share = 0.5 * libm::erfc(z / std::f64::consts::SQRT_2);
        let error = (share * (1.0 - share) / 2e4).sqrt();
        assert!(
            (share_blocked - share).abs() < 2.576 * error,
            "{share_blocked} against {share}"
        );
        let without_antenna = libm::log((threshold - 1.5) / 20.6) / 0.44;
        let wrong = 0.5 * libm::erfc(without_antenna / std::f64::consts::SQRT_2);
        assert!(
            (share_blocked - wrong).abs() > 2.576 * error,
            "the height of the antenna counts"
        );
    }
}
