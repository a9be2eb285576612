//! A hidden Markov chain of a few states, with a loss probability per state: the likelihood of a loss sequence, and the
//! expected run lengths and autocorrelation.
//!
//! The state changes before each packet, as in netem, and the first packet finds the chain in its steady state. The
//! likelihood is computed by the forward recursion (L. R. Rabiner, "A Tutorial on Hidden Markov Models", Proc. IEEE
//! 77(2), 1989), here over whole runs of losses or deliveries by powers of one matrix.

use super::runs::Runs;

type Matrix<const N: usize> = [[f64; N]; N];

/// A chain of `N` states.
#[derive(Clone, Copy, Debug)]
pub struct Chain<const N: usize> {
    /// Transition probabilities, from the row's state to the column's.
    pub step: Matrix<N>,
    /// Loss probability in each state.
    pub loss: [f64; N],
}

/// The gradient of a log likelihood with respect to the steady state of a chain and to its steps with a delivery and
/// with a loss.
#[derive(Clone, Debug)]
pub struct Gradient<const N: usize> {
    steady: [f64; N],
    emitting: [Matrix<N>; 2],
}

/// A matrix power in scaled form: `matrix` times e^`scale`.
#[derive(Clone, Copy)]
struct Power<const N: usize> {
    matrix: Matrix<N>,
    scale: f64,
}

impl<const N: usize> Chain<N> {
    /// Share of packets in each state.
    pub fn steady(&self) -> [f64; N] {
        // Powers of (P + P^2) / 2, which converge also if the chain is periodic.
        let mut power = self.step;
        let square = times(&power, &power);
        for (row, twice) in power.iter_mut().zip(&square) {
            for (x, y) in row.iter_mut().zip(twice) {
                *x = 0.5 * (*x + y);
            }
        }
        for _ in 0..60 {
            power = times(&power, &power);
            for row in &mut power {
                let sum: f64 = row.iter().sum();
                for x in row.iter_mut() {
                    *x /= sum;
                }
            }
        }
        let mut share = [0.0; N];
        for row in &power {
            for (s, x) in share.iter_mut().zip(row) {
                *s += x / N as f64;
            }
        }
        share
    }

    /// Probability of a loss, or of a delivery, in each state.
    fn emission(&self, lost: bool) -> [f64; N] {
        self.loss.map(|loss| if lost { loss } else { 1.0 - loss })
    }

    /// One step with a loss or a delivery.
    fn emitting(&self, lost: bool) -> Matrix<N> {
        let emission = self.emission(lost);
        let mut matrix = self.step;
        for row in &mut matrix {
            for (x, e) in row.iter_mut().zip(&emission) {
                *x *= e;
            }
        }
        matrix
    }

    /// Log likelihood of the whole sequence.
    pub fn log_likelihood(&self, runs: &Runs) -> f64 {
        let tables = [false, true].map(|lost| {
            let step = Power::new(self.emitting(lost));
            step.to_powers(&runs.lengths[usize::from(lost)])
        });
        let mut forward = self.steady();
        let mut sum = 0.0;
        let mut lost = usize::from(runs.first_lost);
        // One logarithm for many factors: it is the most expensive operation here.
        let mut pending = 1.0;
        for &number in &runs.index {
            let power = &tables[lost][number as usize];
            let mut next = [0.0; N];
            for (from, row) in forward.iter().zip(&power.matrix) {
                for (to, x) in next.iter_mut().zip(row) {
                    *to += from * x;
                }
            }
            let total: f64 = next.iter().sum();
            if total <= 0.0 || !total.is_finite() {
                return f64::NEG_INFINITY;
            }
            let norm = 1.0 / total;
            for x in &mut next {
                *x *= norm;
            }
            forward = next;
            pending *= total;
            sum += power.scale;
            if pending < 1e-250 {
                sum += libm::log(pending);
                pending = 1.0;
            }
            lost ^= 1;
        }
        sum + libm::log(pending)
    }

    /// The gradient of the log likelihood; none if the sequence has probability 0.
    ///
    /// The forward and backward recursions over the runs give the gradient for each power (Rabiner, §III.A); the
    /// product rule then gives it for the steps.
    pub fn gradient(&self, runs: &Runs) -> Option<Gradient<N>> {
        let steps = [false, true].map(|lost| Power::new(self.emitting(lost)));
        let tables = [0, 1].map(|lost| steps[lost].to_powers(&runs.lengths[lost]));
        let first = usize::from(runs.first_lost);
        let mut forward = Vec::with_capacity(runs.index.len() + 1);
        let mut totals = Vec::with_capacity(runs.index.len());
        let mut at = self.steady();
        forward.push(at);
        for (i, &number) in runs.index.iter().enumerate() {
            let power = &tables[(first + i) % 2][number as usize].matrix;
            at = row_times(&at, power);
            let total: f64 = at.iter().sum();
            if total <= 0.0 || !total.is_finite() {
                return None;
            }
            at = at.map(|x| x / total);
            forward.push(at);
            totals.push(1.0 / total);
        }
        let mut power_gradients = [0, 1].map(|lost: usize| vec![[[0.0; N]; N]; tables[lost].len()]);
        let mut backward = [1.0; N];
        for (i, &number) in runs.index.iter().enumerate().rev() {
            let lost = (first + i) % 2;
            let norm = totals[i];
            let gradient = &mut power_gradients[lost][number as usize];
            for (row, a) in gradient.iter_mut().zip(&forward[i]) {
                for (g, b) in row.iter_mut().zip(&backward) {
                    *g += a * b * norm;
                }
            }
            let power = &tables[lost][number as usize].matrix;
            backward = times_column(power, &backward).map(|x| x * norm);
        }
        let emitting = [0, 1].map(|lost| {
            let lengths = &runs.lengths[lost];
            steps[lost].gradient_of_powers(lengths, &tables[lost], &power_gradients[lost])
        });
        Some(Gradient {
            steady: backward,
            emitting,
        })
    }

    /// The first-order change of the log likelihood from the chain `below` to the chain `above`, both near the chain
    /// of the gradient.
    pub fn likelihood_change(gradient: &Gradient<N>, above: &Self, below: &Self) -> f64 {
        let mut sum = 0.0;
        let (high, low) = (above.steady(), below.steady());
        for (slope, (a, b)) in gradient.steady.iter().zip(high.iter().zip(&low)) {
            sum += slope * (a - b);
        }
        for (slope, lost) in gradient.emitting.iter().zip([false, true]) {
            let (high, low) = (above.emitting(lost), below.emitting(lost));
            let entries = slope.iter().flatten();
            let changes = high.iter().flatten().zip(low.iter().flatten());
            for (slope, (a, b)) in entries.zip(changes) {
                sum += slope * (a - b);
            }
        }
        sum
    }

    /// Calls `visit(probability, lost)` for each packet in order, with its loss probability given all packets before.
    pub fn predict(&self, runs: &Runs, mut visit: impl FnMut(f64, bool)) {
        let mut before = self.steady();
        for (lost, length) in runs.iter() {
            let emission = self.emission(lost);
            for _ in 0..length {
                let probability: f64 = before.iter().zip(&self.loss).map(|(b, l)| b * l).sum();
                visit(probability, lost);
                let mut after = before;
                for (x, e) in after.iter_mut().zip(&emission) {
                    *x *= e;
                }
                let total: f64 = after.iter().sum();
                before = [0.0; N];
                for (from, row) in after.iter().zip(&self.step) {
                    for (to, x) in before.iter_mut().zip(row) {
                        *to += from / total * x;
                    }
                }
            }
        }
    }

    /// The expected share of runs longer than each of `lengths` (ascending), of runs of losses or of deliveries.
    pub fn longer(&self, lost: bool, lengths: &[u64]) -> Vec<f64> {
        // The state at the first packet of a run: after a packet of the other kind, with a packet of this kind.
        let mut entering = self.steady();
        let other = self.emission(!lost);
        for (share, e) in entering.iter_mut().zip(&other) {
            *share *= e;
        }
        let mut first = [0.0; N];
        for (from, row) in entering.iter().zip(&self.emitting(lost)) {
            for (to, x) in first.iter_mut().zip(row) {
                *to += from * x;
            }
        }
        let all: f64 = first.iter().sum();
        let powers = Power::new(self.emitting(lost)).to_powers(lengths);
        let share = powers.iter().map(|power| {
            let mut left = 0.0;
            for (from, row) in first.iter().zip(&power.matrix) {
                left += from / all * row.iter().sum::<f64>();
            }
            left * libm::exp(power.scale)
        });
        share.collect()
    }

    /// The expected autocorrelation of the losses at each of `lags` (ascending).
    pub fn autocorrelation(&self, lags: &[u64]) -> Vec<f64> {
        let steady = self.steady();
        let mean: f64 = steady.iter().zip(&self.loss).map(|(s, l)| s * l).sum();
        let powers = Power::new(self.step).to_powers(lags);
        let at = powers.iter().map(|power| {
            let mut both = 0.0;
            for ((share, loss), row) in steady.iter().zip(&self.loss).zip(&power.matrix) {
                let later: f64 = row.iter().zip(&self.loss).map(|(x, l)| x * l).sum();
                both += share * loss * later * libm::exp(power.scale);
            }
            (both - mean * mean) / (mean * (1.0 - mean))
        });
        at.collect()
    }
}

impl<const N: usize> Power<N> {
    fn new(matrix: Matrix<N>) -> Self {
        Self { matrix, scale: 0.0 }.scaled()
    }

    fn identity() -> Self {
        let mut matrix = [[0.0; N]; N];
        for (i, row) in matrix.iter_mut().enumerate() {
            row[i] = 1.0;
        }
        Self { matrix, scale: 0.0 }
    }

    /// The same matrix with its largest entry in a safe range.
    fn scaled(mut self) -> Self {
        let max = self
            .matrix
            .iter()
            .flatten()
            .fold(0.0_f64, |max, &x| max.max(x));
        if max > 0.0 && !(1e-30..1e30).contains(&max) {
            for x in self.matrix.iter_mut().flatten() {
                *x /= max;
            }
            self.scale += libm::log(max);
        }
        self
    }

    fn times(&self, other: &Self) -> Self {
        let product = Self {
            matrix: times(&self.matrix, &other.matrix),
            scale: self.scale + other.scale,
        };
        product.scaled()
    }

    fn to_power(self, mut exponent: u64) -> Self {
        let (mut result, mut square) = (Self::identity(), self);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(&square);
            }
            exponent >>= 1;
            if exponent > 0 {
                square = square.times(&square);
            }
        }
        result
    }

    /// The powers at `exponents` (ascending), each computed from the one before.
    fn to_powers(self, exponents: &[u64]) -> Vec<Self> {
        let (mut at, mut reached) = (Self::identity(), 0);
        let powers = exponents.iter().map(|&exponent| {
            at = at.times(&self.to_power(exponent - reached));
            reached = exponent;
            at
        });
        powers.collect()
    }
}

impl<const N: usize> Power<N> {
    /// The gradient with respect to this matrix, from the gradients with respect to the scaled matrices of its powers
    /// at `exponents` (ascending).
    fn gradient_of_powers(
        &self,
        exponents: &[u64],
        powers: &[Self],
        gradients: &[Matrix<N>],
    ) -> Matrix<N> {
        let mut sum = [[0.0; N]; N];
        let mut carried = [[0.0; N]; N];
        for j in (0..exponents.len()).rev() {
            let (before, reached) = match j {
                0 => (Self::identity(), 0),
                _ => (powers[j - 1], exponents[j - 1]),
            };
            let step = self.to_power(exponents[j] - reached);
            let here = plus(&carried, &gradients[j]);
            let factor = libm::exp(before.scale + step.scale - powers[j].scale);
            let of_step = scaled(&transposed_times(&before.matrix, &here), factor);
            carried = scaled(&times_transposed(&here, &step.matrix), factor);
            sum = plus(
                &sum,
                &self.gradient_of_power(exponents[j] - reached, &of_step),
            );
        }
        scaled(&sum, libm::exp(-self.scale))
    }

    /// The gradient with respect to this scaled matrix, from that with respect to the scaled matrix of a power.
    fn gradient_of_power(&self, exponent: u64, gradient: &Matrix<N>) -> Matrix<N> {
        match exponent {
            0 => [[0.0; N]; N],
            1 => *gradient,
            _ => {
                let whole = self.to_power(exponent);
                let odd = exponent % 2;
                let part = self.to_power(if odd == 1 { exponent - 1 } else { exponent / 2 });
                let other = if odd == 1 { *self } else { part };
                let factor = libm::exp(part.scale + other.scale - whole.scale);
                let gradient = scaled(gradient, factor);
                let left = times_transposed(&gradient, &other.matrix);
                let right = transposed_times(&part.matrix, &gradient);
                if odd == 1 {
                    plus(&self.gradient_of_power(exponent - 1, &left), &right)
                } else {
                    self.gradient_of_power(exponent / 2, &plus(&left, &right))
                }
            }
        }
    }
}

/// A row vector times a matrix.
fn row_times<const N: usize>(row: &[f64; N], matrix: &Matrix<N>) -> [f64; N] {
    let mut out = [0.0; N];
    for (from, entries) in row.iter().zip(matrix) {
        for (to, x) in out.iter_mut().zip(entries) {
            *to += from * x;
        }
    }
    out
}

/// A matrix times a column vector.
fn times_column<const N: usize>(matrix: &Matrix<N>, column: &[f64; N]) -> [f64; N] {
    let mut out = [0.0; N];
    for (o, row) in out.iter_mut().zip(matrix) {
        *o = row.iter().zip(column).map(|(x, c)| x * c).sum();
    }
    out
}

fn plus<const N: usize>(a: &Matrix<N>, b: &Matrix<N>) -> Matrix<N> {
    let mut sum = *a;
    for (row, other) in sum.iter_mut().zip(b) {
        for (x, y) in row.iter_mut().zip(other) {
            *x += y;
        }
    }
    sum
}

fn scaled<const N: usize>(matrix: &Matrix<N>, factor: f64) -> Matrix<N> {
    matrix.map(|row| row.map(|x| x * factor))
}

fn transposed<const N: usize>(matrix: &Matrix<N>) -> Matrix<N> {
    let mut result = [[0.0; N]; N];
    for (i, row) in matrix.iter().enumerate() {
        for (j, x) in row.iter().enumerate() {
            result[j][i] = *x;
        }
    }
    result
}

fn transposed_times<const N: usize>(a: &Matrix<N>, b: &Matrix<N>) -> Matrix<N> {
    times(&transposed(a), b)
}

fn times_transposed<const N: usize>(a: &Matrix<N>, b: &Matrix<N>) -> Matrix<N> {
    times(a, &transposed(b))
}

fn times<const N: usize>(a: &Matrix<N>, b: &Matrix<N>) -> Matrix<N> {
    let mut product = [[0.0; N]; N];
    for (row, out) in a.iter().zip(&mut product) {
        for (x, other) in row.iter().zip(b) {
            for (o, y) in out.iter_mut().zip(other) {
                *o += x * y;
            }
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(p: f64, r: f64, h: f64, k: f64) -> Chain<2> {
        Chain {
            step: [[1.0 - p, p], [r, 1.0 - r]],
            loss: [1.0 - k, 1.0 - h],
        }
    }

    /// The same by summing over every sequence of states.
    fn by_force(chain: &Chain<2>, losses: &[u8]) -> f64 {
        let steady = chain.steady();
        let mut total = 0.0;
        for path in 0_u32..1 << losses.len() {
            let state = |t: usize| ((path >> t) & 1) as usize;
            let mut product = steady[state(0)];
            for (t, &lost) in losses.iter().enumerate() {
                if t > 0 {
                    product *= chain.step[state(t - 1)][state(t)];
                }
                let loss = chain.loss[state(t)];
                product *= if lost == 1 { loss } else { 1.0 - loss };
            }
            total += product;
        }
        libm::log(total)
    }

    #[test]
    fn likelihood_is_the_sum_over_all_sequences_of_states() {
        let chain = two(0.2, 0.4, 0.3, 0.9);
        for losses in [
            &[0, 0, 0, 1, 1, 0, 1, 0, 0, 0][..],
            &[1],
            &[1, 1, 1, 1, 0, 0],
        ] {
            let got = chain.log_likelihood(&Runs::new(losses));
            let sum = by_force(&chain, losses);
            assert!((got - sum).abs() < 1e-12, "{got} against {sum}");
        }
    }

    #[test]
    fn predictions_multiply_to_the_likelihood() {
        let chain = two(0.1, 0.3, 0.2, 0.95);
        let runs = Runs::new(&[0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1]);
        let mut sum = 0.0;
        chain.predict(&runs, |chance, lost| {
            sum += libm::log(if lost { chance } else { 1.0 - chance });
        });
        assert!((sum - chain.log_likelihood(&runs)).abs() < 1e-10);
    }

    #[test]
    fn a_long_unlikely_run_does_not_underflow() {
        let chain = two(0.5, 0.5, 0.1, 0.1);
        let runs = Runs::new(&vec![0; 100_000]);
        // 0.1 delivered in both states: 100 000 times ln 0.1.
        let got = chain.log_likelihood(&runs);
        assert!((got / 1e5 + std::f64::consts::LN_10).abs() < 1e-9, "{got}");
    }

    #[test]
    fn shapes_of_the_simple_chain_are_geometric() {
        let chain = two(0.01, 0.25, 0.0, 1.0);
        for (got, length) in chain.longer(true, &[1, 3, 9]).iter().zip([1, 3, 9]) {
            assert!((got - 0.75_f64.powi(length)).abs() < 1e-12);
        }
        for (got, length) in chain.longer(false, &[1, 100]).iter().zip([1, 100]) {
            assert!((got - 0.99_f64.powi(length)).abs() < 1e-12);
        }
        for (got, lag) in chain.autocorrelation(&[1, 7]).iter().zip([1, 7]) {
            assert!((got - 0.74_f64.powi(lag)).abs() < 1e-12, "{got}");
        }
        let steady = chain.steady();
        assert!((steady[1] - 0.01 / 0.26).abs() < 1e-12);
    }
}
