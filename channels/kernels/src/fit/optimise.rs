//! Maximisation of a smooth function of a few unbounded coordinates, its curvature, and profile intervals.
//!
//! Does not depend on models. The search is quasi-Newton with the BFGS update (Nocedal and Wright, "Numerical
//! Optimization", §6.1); derivatives are differences if the function has no gradient. Profile intervals are as in
//! Venzon and Moolgavkar, Applied Statistics 37(1), 1988.

/// The limit of all coordinates, of either sign: 1 / (1 + e^40) is 4e-18.
pub const EDGE: f64 = 40.0;

/// The maximum number of steps of the search.
const MAX_STEPS: usize = 120;
/// The start of the search for an interval's end if the maximum is at a limit; beyond it the function is constant.
const MAX_START: f64 = 16.0;
/// The maximum step of that search: a longer one could reach another maximum.
const MAX_STEP: f64 = 4.0;
/// Step of the differences for the gradient.
const GRADIENT_STEP: f64 = 1e-5;
/// Step of the differences of values for the curvature.
const VALUE_STEP: f64 = 2e-3;
/// Step of the differences of gradients for the curvature.
const SLOPE_STEP: f64 = 1e-4;

/// A log likelihood as a function of unbounded coordinates.
pub trait Objective {
    /// The value at some coordinates.
    fn value(&self, at: &[f64]) -> f64;

    /// The derivatives with respect to the coordinates `free`; none if the function has no gradient.
    fn gradient(&self, _at: &[f64], _free: &[usize]) -> Option<Vec<f64>> {
        None
    }
}

impl<F: Fn(&[f64]) -> f64> Objective for F {
    fn value(&self, at: &[f64]) -> f64 {
        self(at)
    }
}

/// A maximum.
#[derive(Clone, Debug)]
pub struct Maximum {
    /// Its coordinates.
    pub at: Vec<f64>,
    /// The value of the function.
    pub value: f64,
}

/// Maximises from `start` over the coordinates that are `free`, until a step gains less than `tolerance`.
pub fn maximise(f: &impl Objective, start: &[f64], free: &[bool], tolerance: f64) -> Maximum {
    let moving: Vec<usize> = (0..start.len()).filter(|&i| free[i]).collect();
    let mut best = Maximum {
        at: start.to_vec(),
        value: f.value(start),
    };
    let n = moving.len();
    let mut inverse = identity(n, 1.0);
    let mut slope = gradient(f, &best.at, &moving);
    // Whether `inverse` is the initial guess, without an update.
    let mut initial = true;
    for _ in 0..MAX_STEPS {
        let mut direction = product(&inverse, &slope);
        if dot(&direction, &slope) <= 0.0 {
            inverse = identity(n, 1.0);
            direction.clone_from(&slope);
            initial = true;
        }
        let longest = direction.iter().fold(0.0_f64, |max, d| max.max(d.abs()));
        if longest > 3.0 {
            for d in &mut direction {
                *d *= 3.0 / longest;
            }
        }
        let Some(next) = line_search(f, &best, &moving, &direction, dot(&direction, &slope)) else {
            if initial {
                break;
            }
            inverse = identity(n, 1.0);
            initial = true;
            continue;
        };
        let gained = next.value - best.value;
        let next_slope = gradient(f, &next.at, &moving);
        let moved: Vec<f64> = moving.iter().map(|&i| next.at[i] - best.at[i]).collect();
        let changed: Vec<f64> = slope.iter().zip(&next_slope).map(|(a, b)| a - b).collect();
        update(&mut inverse, &moved, &changed, initial);
        initial = false;
        best = next;
        slope = next_slope;
        if gained < tolerance {
            break;
        }
    }
    best
}

/// Halves the step until it gains a share of the first-order prediction; none if no step gains.
fn line_search(
    f: &impl Objective,
    from: &Maximum,
    moving: &[usize],
    direction: &[f64],
    predicted: f64,
) -> Option<Maximum> {
    let mut length = 1.0;
    for _ in 0..40 {
        let mut at = from.at.clone();
        for (k, &i) in moving.iter().enumerate() {
            at[i] = (at[i] + length * direction[k]).clamp(-EDGE, EDGE);
        }
        let value = f.value(&at);
        if value.is_finite() && value >= from.value + 1e-4 * length * predicted && at != from.at {
            return Some(Maximum { at, value });
        }
        length *= 0.5;
    }
    None
}

/// The gradient, by differences if the function has none.
fn gradient(f: &impl Objective, point: &[f64], moving: &[usize]) -> Vec<f64> {
    if let Some(slopes) = f.gradient(point, moving) {
        return slopes;
    }
    let mut at = point.to_vec();
    let slopes = moving.iter().map(|&i| {
        let here = at[i];
        at[i] = here + GRADIENT_STEP;
        let above = f.value(&at);
        at[i] = here - GRADIENT_STEP;
        let below = f.value(&at);
        at[i] = here;
        let slope = (above - below) / (2.0 * GRADIENT_STEP);
        if slope.is_finite() { slope } else { 0.0 }
    });
    slopes.collect()
}

/// The BFGS update of the inverse curvature of `-f`, after a step `moved` and a change `changed` of the gradient. The
/// first update sets the scale.
fn update(inverse: &mut [Vec<f64>], moved: &[f64], changed: &[f64], first: bool) {
    let along = dot(moved, changed);
    if along <= 1e-12 {
        return;
    }
    let n = moved.len();
    if first {
        let scale = along / dot(changed, changed);
        for (i, row) in inverse.iter_mut().enumerate() {
            row.fill(0.0);
            row[i] = scale;
        }
    }
    let mapped = product(inverse, changed);
    let factor = (1.0 + dot(changed, &mapped) / along) / along;
    for i in 0..n {
        for j in 0..n {
            inverse[i][j] += factor * moved[i] * moved[j]
                - (moved[i] * mapped[j] + mapped[i] * moved[j]) / along;
        }
    }
}

/// The inverse of the observed information over the `free` coordinates, with 0 in the rows and columns of the others;
/// none if the function is flat in some direction.
pub fn covariance(f: &impl Objective, best: &Maximum, free: &[bool]) -> Option<Vec<Vec<f64>>> {
    let n = best.at.len();
    let moving: Vec<usize> = (0..n).filter(|&i| free[i]).collect();
    let information = information_from_gradients(f, best, &moving)
        .unwrap_or_else(|| information_from_values(f, best, &moving));
    let inverse = inverse_of_positive(&information)?;
    let mut whole = identity(n, 0.0);
    for (a, &i) in moving.iter().enumerate() {
        for (b, &j) in moving.iter().enumerate() {
            whole[i][j] = inverse[a][b];
        }
    }
    Some(whole)
}

/// The negative second derivatives, from differences of gradients.
fn information_from_gradients(
    f: &impl Objective,
    best: &Maximum,
    moving: &[usize],
) -> Option<Vec<Vec<f64>>> {
    let mut curvature = Vec::with_capacity(moving.len());
    for &i in moving {
        let mut at = best.at.clone();
        at[i] += SLOPE_STEP;
        let above = f.gradient(&at, moving)?;
        at[i] -= 2.0 * SLOPE_STEP;
        let below = f.gradient(&at, moving)?;
        let row = above.iter().zip(&below);
        curvature.push(row.map(|(a, b)| (b - a) / (2.0 * SLOPE_STEP)).collect());
    }
    let each = 0..moving.len();
    let symmetric = |i: usize, j: usize, x: &[Vec<f64>]| 0.5 * (x[i][j] + x[j][i]);
    let row = |i| each.clone().map(|j| symmetric(i, j, &curvature)).collect();
    Some(each.clone().map(row).collect())
}

/// The negative second derivatives, from differences of values.
fn information_from_values(f: &impl Objective, best: &Maximum, moving: &[usize]) -> Vec<Vec<f64>> {
    let value = |moves: &[(usize, f64)]| {
        let mut at = best.at.clone();
        for &(i, step) in moves {
            at[i] += step;
        }
        f.value(&at)
    };
    let h = VALUE_STEP;
    let mut information = identity(moving.len(), 0.0);
    for (a, &i) in moving.iter().enumerate() {
        let both = value(&[(i, h)]) + value(&[(i, -h)]);
        information[a][a] = (2.0 * best.value - both) / (h * h);
        for (b, &j) in moving.iter().enumerate().take(a) {
            let cross = value(&[(i, h), (j, h)]) + value(&[(i, -h), (j, -h)])
                - value(&[(i, h), (j, -h)])
                - value(&[(i, -h), (j, h)]);
            information[a][b] = -cross / (4.0 * h * h);
            information[b][a] = information[a][b];
        }
    }
    information
}

/// The inverse by Cholesky decomposition; none unless the matrix is positive definite.
fn inverse_of_positive(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let mut lower = identity(n, 0.0);
    for i in 0..n {
        for j in 0..=i {
            let rest: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            if i == j {
                let pivot = matrix[i][i] - rest;
                if !pivot.is_finite() || pivot <= 1e-9 * matrix[i][i].abs() {
                    return None;
                }
                lower[i][i] = pivot.sqrt();
            } else {
                lower[i][j] = (matrix[i][j] - rest) / lower[j][j];
            }
        }
    }
    // By columns, which are also the rows, as the inverse is symmetric.
    let inverse = (0..n).map(|column| {
        let mut x = vec![0.0; n];
        for i in 0..n {
            let rest: f64 = (0..i).map(|k| lower[i][k] * x[k]).sum();
            x[i] = (f64::from(u8::from(i == column)) - rest) / lower[i][i];
        }
        for i in (0..n).rev() {
            let rest: f64 = (i + 1..n).map(|k| lower[k][i] * x[k]).sum();
            x[i] = (x[i] - rest) / lower[i][i];
        }
        x
    });
    Some(inverse.collect())
}

/// One end of the profile interval of coordinate `i`: where the maximum over the other coordinates has fallen by
/// `quantile`^2 / 2; the edge if it never does. `direction` is -1 or 1, and `scale` is a guess of one standard error.
pub fn profile_end(
    f: &impl Objective,
    best: &Maximum,
    (i, direction): (usize, f64),
    scale: f64,
    quantile: f64,
) -> f64 {
    let mut free = vec![true; best.at.len()];
    for (j, at) in best.at.iter().enumerate() {
        free[j] = j != i && at.abs() < EDGE;
    }
    let mut warm = best.at.clone();
    let mut excess = |at: f64| {
        warm[i] = at;
        let profile = maximise(f, &warm, &free, 1e-4);
        warm.clone_from(&profile.at);
        (2.0 * (best.value - profile.value)).max(0.0).sqrt() - quantile
    };
    // The root of the fall is nearly linear: regula falsi, Illinois variant.
    let start = best.at[i].clamp(-MAX_START, MAX_START);
    let (mut near, mut near_excess) = (start, -quantile);
    let mut step = direction * quantile * scale.clamp(1e-6, 4.0);
    let mut far = (start + step).clamp(-EDGE, EDGE);
    let mut far_excess = excess(far).min(1e3);
    while far_excess < 0.0 {
        if far.abs() >= EDGE {
            return far;
        }
        (near, near_excess) = (far, far_excess);
        step = (2.0 * step).clamp(-MAX_STEP, MAX_STEP);
        far = (far + step).clamp(-EDGE, EDGE);
        far_excess = excess(far).min(1e3);
    }
    let mut side = 0;
    for _ in 0..60 {
        let middle = (near * far_excess - far * near_excess) / (far_excess - near_excess);
        let found = excess(middle);
        if found.abs() < 1e-4 || (far - near).abs() < 1e-9 {
            return middle;
        }
        if found > 0.0 {
            (far, far_excess) = (middle, found.min(1e3));
            near_excess *= if side == 1 { 0.5 } else { 1.0 };
            side = 1;
        } else {
            (near, near_excess) = (middle, found);
            far_excess *= if side == -1 { 0.5 } else { 1.0 };
            side = -1;
        }
    }
    0.5 * (near + far)
}

fn identity(n: usize, on: f64) -> Vec<Vec<f64>> {
    let row = |i| (0..n).map(|j| if i == j { on } else { 0.0 }).collect();
    (0..n).map(row).collect()
}

fn product(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, vector)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hill(x: &[f64]) -> f64 {
        // A curved ridge with its maximum at (1, 2): curvature 2 along it and 200 across.
        -(x[0] - 1.0).powi(2) - 100.0 * (x[1] - 1.0 - x[0] * x[0]).powi(2)
    }

    #[test]
    fn the_search_follows_a_curved_ridge() {
        let top = maximise(&hill, &[-1.5, 0.0], &[true, true], 1e-14);
        assert!((top.at[0] - 1.0).abs() < 1e-4 && (top.at[1] - 2.0).abs() < 2e-4);
        let fixed = maximise(&hill, &[0.0, 0.0], &[false, true], 1e-14);
        assert!(fixed.at[0].abs() < 1e-12 && (fixed.at[1] - 1.0).abs() < 1e-5);
    }

    #[test]
    fn curvature_and_profile_agree_for_a_parabola() {
        let bowl = |x: &[f64]| -(2.0 * x[0] * x[0] + 2.0 * x[0] * x[1] + 3.0 * x[1] * x[1]);
        let best = maximise(&bowl, &[0.4, -0.3], &[true, true], 1e-14);
        let covariances = covariance(&bowl, &best, &[true, true]).expect("curved");
        // Information [[4, 2], [2, 6]]: its inverse has 6/20 and 4/20 on the diagonal.
        assert!((covariances[0][0] - 0.3).abs() < 1e-5 && (covariances[1][1] - 0.2).abs() < 1e-5);
        for direction in [-1.0, 1.0] {
            let end = profile_end(&bowl, &best, (0, direction), 0.1, 2.0);
            assert!(
                (end - direction * 2.0 * 0.3_f64.sqrt()).abs() < 2e-4,
                "{end}"
            );
        }
    }

    #[test]
    fn a_flat_direction_has_no_covariance_and_an_interval_to_the_edge() {
        let slope = |x: &[f64]| -x[0] * x[0];
        let best = maximise(&slope, &[0.1, 0.2], &[true, true], 1e-14);
        assert!(covariance(&slope, &best, &[true, true]).is_none());
        let end = profile_end(&slope, &best, (1, 1.0), 1.0, 2.0);
        assert!((end - EDGE).abs() < 1e-12);
    }
}
