//! Runs of equal state over steps: what walks by steps hand on.
//!
//! Must not know what a state is.

/// The first step after `first` whose state is not `held`, with that state; `end` if there is none before it.
pub(crate) fn end_of_run<S: PartialEq>(
    held: S,
    (first, end): (u64, u64),
    mut state_at: impl FnMut(u64) -> S,
) -> (u64, S) {
    for step in first + 1..end {
        let state = state_at(step);
        if state != held {
            return (step, state);
        }
    }
    (end, held)
}
