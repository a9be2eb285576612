//! Time: nanoseconds since the start of the run.

/// Nanoseconds since the start of the run, or a span of them.
pub type Nanos = u64;

/// A deadline that is not set.
pub const NEVER: Nanos = u64::MAX;
/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// In seconds.
#[inline]
pub fn seconds(time: Nanos) -> f64 {
    // No span leaves 63 bits (292 years), and the conversion from a signed number costs a third.
    time as i64 as f64 / SECOND as f64
}

/// Keeps the least of the values seen so far.
#[inline]
pub fn keep_least(least: &mut Option<Nanos>, value: Nanos) {
    *least = Some(least.map_or(value, |before| before.min(value)));
}
