//! Time: nanoseconds since the start of the run.

/// Nanoseconds since the start of the run, or a span of them.
pub type Nanos = u64;

/// A deadline that is not set.
pub const NEVER: Nanos = u64::MAX;
/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// What a clock of milliseconds shows: the value of the timestamps option (RFC 7323 §5.4).
#[inline]
pub fn timestamp(now: Nanos) -> u32 {
    (now / MILLISECOND) as u32
}

/// The time since the clock showed `value`, one tick at least; none where it has yet to show it.
#[inline]
pub fn since_timestamp(value: u32, now: Nanos) -> Option<Nanos> {
    let ticks = i32::try_from(timestamp(now).wrapping_sub(value)).ok()?;
    Some(u64::from(ticks.unsigned_abs()).max(1) * MILLISECOND)
}

/// In seconds.
#[inline]
pub fn seconds(time: Nanos) -> f64 {
    // No span leaves 63 bits (292 years), and the conversion from a signed number costs a third.
    time as i64 as f64 / SECOND as f64
}

/// Keeps the minimum of the values so far.
#[inline]
pub fn keep_min(min: &mut Option<Nanos>, value: Nanos) {
    *min = Some(min.map_or(value, |before| before.min(value)));
}
