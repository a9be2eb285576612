//! How many segments an ACK reports as received, for controllers that observe every ACK: the scoreboard's count with SACK, a
//! count of duplicate and delayed ACKs without it.
//!
//! Does not depend on what the count is used for. Mascolo et al. 2001 call it AckedCount.

use super::Sender;

impl Sender {
    /// Segments that an ACK reports as received: it acknowledges `acked` segments, or it is a duplicate. Without SACK a
    /// duplicate reports one segment, which does not count again when it is acknowledged.
    ///
    /// Deviation: an ACK that advances uses up one less than it acknowledges, as Linux (`tcp_remove_reno_sacks`), where
    /// AckedCount uses up all: no duplicate reported the segment that filled the gap, and so each counts once.
    pub(in crate::tcp) fn newly_reported(&mut self, acked: u32, duplicate: bool) -> u32 {
        if self.rules.sack || self.rules.counts_dup_acks {
            return acked;
        }
        if duplicate {
            self.reported_by_dupacks += 1;
            return 1;
        }
        if acked == 0 {
            return 0;
        }
        let reported = self.reported_by_dupacks;
        self.reported_by_dupacks = reported.saturating_sub(acked - 1);
        acked.saturating_sub(reported).max(1)
    }
}

#[cfg(test)]
mod tests {
    use crate::cc::catalogue::Variant;
    use crate::config::{Profile, RecoveryKind, StackOverrides};
    use crate::tcp::ladder::sender;

    /// For each ACK, given as the segments it acknowledges (0: a duplicate), the segments that count as newly reported.
    fn newly_reported(profile: Profile, recovery: RecoveryKind, acks: &[u32]) -> Vec<u32> {
        let overrides = StackOverrides {
            recovery: Some(recovery),
            ..StackOverrides::default()
        };
        let mut sender = sender(Variant::WestwoodBwe, profile, overrides);
        let report = |&acked: &u32| sender.newly_reported(acked, acked == 0);
        acks.iter().map(report).collect()
    }

    #[test]
    fn duplicates_and_delayed_acks_count_each_segment_once() {
        // Delayed ACKs; then 1 of 10 is lost; then 1 and 6 of 10, with two new ones sent meanwhile.
        for (acks, expected) in [
            (vec![2, 2, 1], vec![2, 2, 1]),
            (
                vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 1],
                vec![1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            ),
            (
                vec![0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 7, 2],
                vec![1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2],
            ),
        ] {
            for profile in [Profile::Rfc, Profile::Ns2] {
                assert_eq!(
                    newly_reported(profile, RecoveryKind::Newreno, &acks),
                    expected
                );
            }
        }
    }

    #[test]
    fn an_ack_that_was_lost_is_made_up_for_by_the_next() {
        assert_eq!(
            newly_reported(Profile::Ns2, RecoveryKind::Newreno, &[1, 3, 0, 4, 1]),
            [1, 3, 1, 3, 1]
        );
    }

    #[test]
    fn with_sack_the_scoreboard_has_counted_them() {
        assert_eq!(
            newly_reported(Profile::Rfc, RecoveryKind::Sack, &[0, 0, 10]),
            [0, 0, 10]
        );
    }
}
