//! Runs of equal states: sequences that are generated step by step are returned as runs.

/// The first step after `first` whose state differs from `current`, with that state; `end` if no step before it differs.
pub(crate) fn end_of_run<S: PartialEq>(
    current: S,
    (first, end): (u64, u64),
    mut state_at: impl FnMut(u64) -> S,
) -> (u64, S) {
    for step in first + 1..end {
        let state = state_at(step);
        if state != current {
            return (step, state);
        }
    }
    (end, current)
}
