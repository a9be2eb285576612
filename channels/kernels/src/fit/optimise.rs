//! Maximum of a smooth function of a few unbounded coordinates, its curvature, and profile intervals.
//!
//! Must not know models. Quasi-Newton with the BFGS update (Nocedal and Wright, "Numerical Optimization", §6.1);
//! derivatives by differences where the function does not give its slope; profile likelihood as in Venzon and Moolgavkar, Applied Statistics 37(1), 1988.

/// Coordinates stay within plus and minus this: 1 / (1 + e^40) is 4e-18.
pub const EDGE: f64 = 40.0;

const MOST_STEPS: usize = 120;
/// Where the search for an interval's end begins if the maximum is on its limit: beyond, nothing changes.
const FARTHEST_START: f64 = 16.0;
/// Longest step of that search: a longer one may jump to another maximum.
const LONGEST_STEP: f64 = 4.0;
/// Step of the gradient's differences.
const DIFFERENCE: f64 = 1e-5;
/// Step of the curvature's differences, of values and of slopes.
const CURVATURE: f64 = 2e-3;
const SLOPE_STEP: f64 = 1e-4;

/// A log likelihood over unbounded coordinates.
pub trait Objective {
    /// Its value.
    fn value(&self, at: &[f64]) -> f64;

    /// Its slope along each of the coordinates `moving`; none where it is not worked out: then differences are taken.
    fn slope(&self, _at: &[f64], _moving: &[usize]) -> Option<Vec<f64>> {
        None
    }
}

impl<F: Fn(&[f64]) -> f64> Objective for F {
    fn value(&self, at: &[f64]) -> f64 {
        self(at)
    }
}

/// Where the maximum is, and how high.
#[derive(Clone, Debug)]
pub struct Maximum {
    /// The coordinates.
    pub at: Vec<f64>,
    /// The function there.
    pub value: f64,
}

/// Climbs from `start` over the coordinates that are `free`, until a step gains less than `enough`.
pub fn maximise(f: &impl Objective, start: &[f64], free: &[bool], enough: f64) -> Maximum {
    let moving: Vec<usize> = (0..start.len()).filter(|&i| free[i]).collect();
    let mut best = Maximum {
        at: start.to_vec(),
        value: f.value(start),
    };
    let n = moving.len();
    let mut inverse = identity(n, 1.0);
    let mut slope = gradient(f, &best.at, &moving);
    let mut fresh = true;
    for _ in 0..MOST_STEPS {
        let mut direction = product(&inverse, &slope);
        if dot(&direction, &slope) <= 0.0 {
            inverse = identity(n, 1.0);
            direction.clone_from(&slope);
            fresh = true;
        }
        let longest = direction.iter().fold(0.0_f64, |most, d| most.max(d.abs()));
        if longest > 3.0 {
            for d in &mut direction {
                *d *= 3.0 / longest;
            }
        }
        let Some(next) = line_search(f, &best, &moving, &direction, dot(&direction, &slope)) else {
            if fresh {
                break;
            }
            inverse = identity(n, 1.0);
            fresh = true;
            continue;
        };
        let gained = next.value - best.value;
        let steeper = gradient(f, &next.at, &moving);
        let moved: Vec<f64> = moving.iter().map(|&i| next.at[i] - best.at[i]).collect();
        let bent: Vec<f64> = slope.iter().zip(&steeper).map(|(a, b)| a - b).collect();
        update(&mut inverse, &moved, &bent, fresh);
        fresh = false;
        best = next;
        slope = steeper;
        if gained < enough {
            break;
        }
    }
    best
}

/// Halves the step until it gains a part of what the slope promises; none if nothing gains.
fn line_search(
    f: &impl Objective,
    from: &Maximum,
    moving: &[usize],
    direction: &[f64],
    promise: f64,
) -> Option<Maximum> {
    let mut length = 1.0;
    for _ in 0..40 {
        let mut at = from.at.clone();
        for (k, &i) in moving.iter().enumerate() {
            at[i] = (at[i] + length * direction[k]).clamp(-EDGE, EDGE);
        }
        let value = f.value(&at);
        if value.is_finite() && value >= from.value + 1e-4 * length * promise && at != from.at {
            return Some(Maximum { at, value });
        }
        length *= 0.5;
    }
    None
}

fn gradient(f: &impl Objective, place: &[f64], moving: &[usize]) -> Vec<f64> {
    if let Some(slopes) = f.slope(place, moving) {
        return slopes;
    }
    let mut at = place.to_vec();
    let slopes = moving.iter().map(|&i| {
        let here = at[i];
        at[i] = here + DIFFERENCE;
        let above = f.value(&at);
        at[i] = here - DIFFERENCE;
        let below = f.value(&at);
        at[i] = here;
        let slope = (above - below) / (2.0 * DIFFERENCE);
        if slope.is_finite() { slope } else { 0.0 }
    });
    slopes.collect()
}

/// The BFGS update of the inverse curvature of `-f`; the first one sets its scale.
fn update(inverse: &mut [Vec<f64>], moved: &[f64], bent: &[f64], first: bool) {
    let along = dot(moved, bent);
    if along <= 1e-12 {
        return;
    }
    let n = moved.len();
    if first {
        let scale = along / dot(bent, bent);
        for (i, row) in inverse.iter_mut().enumerate() {
            row.fill(0.0);
            row[i] = scale;
        }
    }
    let turned = product(inverse, bent);
    let stretch = (1.0 + dot(bent, &turned) / along) / along;
    for i in 0..n {
        for j in 0..n {
            inverse[i][j] += stretch * moved[i] * moved[j]
                - (moved[i] * turned[j] + turned[i] * moved[j]) / along;
        }
    }
}

/// Inverse of the observed information over the `free` coordinates (rows and columns of the others are 0); none if
/// the function is flat in some direction.
pub fn covariance(f: &impl Objective, best: &Maximum, free: &[bool]) -> Option<Vec<Vec<f64>>> {
    let n = best.at.len();
    let moving: Vec<usize> = (0..n).filter(|&i| free[i]).collect();
    let information = information_by_slopes(f, best, &moving)
        .unwrap_or_else(|| information_by_values(f, best, &moving));
    let inverse = inverse_of_positive(&information)?;
    let mut whole = identity(n, 0.0);
    for (a, &i) in moving.iter().enumerate() {
        for (b, &j) in moving.iter().enumerate() {
            whole[i][j] = inverse[a][b];
        }
    }
    Some(whole)
}

/// Less the second derivatives, from differences of slopes.
fn information_by_slopes(
    f: &impl Objective,
    best: &Maximum,
    moving: &[usize],
) -> Option<Vec<Vec<f64>>> {
    let mut bent = Vec::with_capacity(moving.len());
    for &i in moving {
        let mut at = best.at.clone();
        at[i] += SLOPE_STEP;
        let above = f.slope(&at, moving)?;
        at[i] -= 2.0 * SLOPE_STEP;
        let below = f.slope(&at, moving)?;
        let row = above.iter().zip(&below);
        bent.push(row.map(|(a, b)| (b - a) / (2.0 * SLOPE_STEP)).collect());
    }
    let each = 0..moving.len();
    let half = |i: usize, j: usize, bent: &[Vec<f64>]| 0.5 * (bent[i][j] + bent[j][i]);
    let row = |i| each.clone().map(|j| half(i, j, &bent)).collect();
    Some(each.clone().map(row).collect())
}

/// The same from differences of values.
fn information_by_values(f: &impl Objective, best: &Maximum, moving: &[usize]) -> Vec<Vec<f64>> {
    let value = |moves: &[(usize, f64)]| {
        let mut at = best.at.clone();
        for &(i, step) in moves {
            at[i] += step;
        }
        f.value(&at)
    };
    let h = CURVATURE;
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

/// Inverse by Cholesky's decomposition; none unless the matrix is positive definite.
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
    // Column by column; the inverse is symmetric, so a column is a row.
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

/// One end of a profile interval of coordinate `i`: where the maximum over the others has fallen by
/// `quantile`^2 / 2. `scale` is a first guess of one standard error, `way` -1 or 1. The edge if it never falls so far.
pub fn profile_end(
    f: &impl Objective,
    best: &Maximum,
    (i, way): (usize, f64),
    scale: f64,
    quantile: f64,
) -> f64 {
    let mut free = vec![true; best.at.len()];
    for (j, at) in best.at.iter().enumerate() {
        free[j] = j != i && at.abs() < EDGE;
    }
    let mut warm = best.at.clone();
    let mut fall = |place: f64| {
        warm[i] = place;
        let held = maximise(f, &warm, &free, 1e-4);
        warm.clone_from(&held.at);
        (2.0 * (best.value - held.value)).max(0.0).sqrt() - quantile
    };
    // The root of the fall is nearly straight: regula falsi, Illinois variant.
    let start = best.at[i].clamp(-FARTHEST_START, FARTHEST_START);
    let (mut near, mut near_fall) = (start, -quantile);
    let mut step = way * quantile * scale.clamp(1e-6, 4.0);
    let mut far = (start + step).clamp(-EDGE, EDGE);
    let mut far_fall = fall(far).min(1e3);
    while far_fall < 0.0 {
        if far.abs() >= EDGE {
            return far;
        }
        (near, near_fall) = (far, far_fall);
        step = (2.0 * step).clamp(-LONGEST_STEP, LONGEST_STEP);
        far = (far + step).clamp(-EDGE, EDGE);
        far_fall = fall(far).min(1e3);
    }
    let mut side = 0;
    for _ in 0..60 {
        let middle = (near * far_fall - far * near_fall) / (far_fall - near_fall);
        let found = fall(middle);
        if found.abs() < 1e-4 || (far - near).abs() < 1e-9 {
            return middle;
        }
        if found > 0.0 {
            (far, far_fall) = (middle, found.min(1e3));
            near_fall *= if side == 1 { 0.5 } else { 1.0 };
            side = 1;
        } else {
            (near, near_fall) = (middle, found);
            far_fall *= if side == -1 { 0.5 } else { 1.0 };
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
        // A bent ridge with its top at (1, 2): curvature 2 and 200 along and across.
        -(x[0] - 1.0).powi(2) - 100.0 * (x[1] - 1.0 - x[0] * x[0]).powi(2)
    }

    #[test]
    fn climbs_a_bent_ridge() {
        let top = maximise(&hill, &[-1.5, 0.0], &[true, true], 1e-14);
        assert!((top.at[0] - 1.0).abs() < 1e-4 && (top.at[1] - 2.0).abs() < 2e-4);
        let held = maximise(&hill, &[0.0, 0.0], &[false, true], 1e-14);
        assert!(held.at[0].abs() < 1e-12 && (held.at[1] - 1.0).abs() < 1e-5);
    }

    #[test]
    fn curvature_and_profile_agree_on_a_parabola() {
        let bowl = |x: &[f64]| -(2.0 * x[0] * x[0] + 2.0 * x[0] * x[1] + 3.0 * x[1] * x[1]);
        let best = maximise(&bowl, &[0.4, -0.3], &[true, true], 1e-14);
        let spread = covariance(&bowl, &best, &[true, true]).expect("curved");
        // Information [[4, 2], [2, 6]]: its inverse has 6/20 and 4/20 on the diagonal.
        assert!((spread[0][0] - 0.3).abs() < 1e-5 && (spread[1][1] - 0.2).abs() < 1e-5);
        for way in [-1.0, 1.0] {
            let end = profile_end(&bowl, &best, (0, way), 0.1, 2.0);
            assert!((end - way * 2.0 * 0.3_f64.sqrt()).abs() < 2e-4, "{end}");
        }
    }

    #[test]
    fn a_flat_direction_has_no_spread_and_an_interval_to_the_edge() {
        let slope = |x: &[f64]| -x[0] * x[0];
        let best = maximise(&slope, &[0.1, 0.2], &[true, true], 1e-14);
        assert!(covariance(&slope, &best, &[true, true]).is_none());
        let end = profile_end(&slope, &best, (1, 1.0), 1.0, 2.0);
        assert!((end - EDGE).abs() < 1e-12);
    }
}
