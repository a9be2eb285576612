//! The counters of the scoreboard are what its marks come to, whatever happens to its segments.

use proptest::prelude::*;

use super::*;

const SMSS: u64 = 100;

/// What may happen to a scoreboard. A segment is chosen by its share of the window, in 256ths.
#[derive(Clone, Debug)]
enum Step {
    Push(u8),
    Acknowledge(u8),
    /// Also in the middle of what SACK has reported, as where a proxy withholds acknowledgements.
    AcknowledgeInPart(u8),
    Sack(u8, u8),
    MarkLost(u8),
    MarkRetransmissionLost(u8),
    MarkLostBySack,
    MarkTimedOut(u8),
    MarkAllLost,
    /// RACK has judged it.
    Unlink(u8),
    Retransmit(u8),
    RetransmitNext,
    Forget,
    ForgetReneged,
    ForgetLosses,
}

fn step() -> impl Strategy<Value = Step> {
    let share = any::<u8>;
    prop_oneof![
        6 => (1..9_u8).prop_map(Step::Push),
        3 => share().prop_map(Step::Acknowledge),
        2 => share().prop_map(Step::AcknowledgeInPart),
        4 => (share(), 1..6_u8).prop_map(|(from, segments)| Step::Sack(from, segments)),
        2 => share().prop_map(Step::MarkLost),
        2 => share().prop_map(Step::MarkRetransmissionLost),
        2 => Just(Step::MarkLostBySack),
        1 => share().prop_map(Step::MarkTimedOut),
        1 => Just(Step::MarkAllLost),
        2 => share().prop_map(Step::Unlink),
        2 => share().prop_map(Step::Retransmit),
        4 => Just(Step::RetransmitNext),
        1 => Just(Step::Forget),
        1 => Just(Step::ForgetReneged),
        1 => Just(Step::ForgetLosses),
    ]
}

/// The number of the outstanding segment at `share` of the window.
fn at(board: &Scoreboard, share: u8) -> Option<u64> {
    let place = u64::from(board.outstanding()) * u64::from(share) / 256;
    board.first().map(|first| first + place)
}

fn take(board: &mut Scoreboard, step: &Step, now: Nanos) {
    let mut digest = Digest::default();
    match *step {
        Step::Push(segments) => {
            for _ in 0..segments {
                board.push(1 + board.end * SMSS, SMSS as u16, now);
            }
        }
        Step::Acknowledge(share) => {
            if let Some(number) = at(board, share) {
                // What a receiver has reported by SACK it also acknowledges.
                let edge = board.next_unacknowledged(number + 1).unwrap_or(board.end);
                board.acknowledge(1 + edge * SMSS, &mut digest);
            }
        }
        Step::AcknowledgeInPart(share) => {
            if let Some(number) = at(board, share) {
                board.acknowledge(1 + (number + 1) * SMSS, &mut digest);
            }
        }
        Step::Sack(share, segments) => {
            if let Some(from) = at(board, share) {
                let end = (from + u64::from(segments)).min(board.end);
                board.sack(1 + from * SMSS, 1 + end * SMSS, &mut digest);
            }
        }
        Step::MarkLost(share) => {
            if let Some(number) = at(board, share) {
                board.mark_lost(number);
            }
        }
        Step::MarkRetransmissionLost(share) => {
            if let Some(number) = at(board, share) {
                board.mark_retransmission_lost(number);
            }
        }
        Step::MarkLostBySack => {
            board.mark_lost_by_sack(DUP_THRESH);
        }
        Step::MarkTimedOut(ago) => board.mark_timed_out(now.saturating_sub(ago.into())),
        Step::MarkAllLost => board.mark_all_lost(),
        Step::Unlink(share) => {
            if let Some(number) = at(board, share) {
                board.unlink(number);
            }
        }
        Step::Retransmit(share) => {
            if let Some(number) = at(board, share) {
                board.retransmit(number, now);
            }
        }
        Step::RetransmitNext => {
            if let Some(number) = board.next_retransmission() {
                board.retransmit(number, now);
            }
        }
        Step::Forget => board.forget(),
        Step::ForgetReneged => board.forget_reneged(),
        Step::ForgetLosses => board.forget_losses(),
    }
}

/// Outstanding segments whose marks, of those in `mask`, are `marks`.
fn counted(board: &Scoreboard, mask: u8, marks: u8) -> u32 {
    let has = |&number: &u64| board.slot(number).marks & mask == marks;
    (board.base..board.end).filter(has).count() as u32
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_counters_are_those_of_the_marks(
        keeps_order in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut board = Scoreboard::new(SMSS as u32, keeps_order);
        for (now, step) in (1..).zip(&steps) {
            take(&mut board, step, now);
            prop_assert_eq!(board.sacked, counted(&board, SACKED, SACKED), "sacked after {:?}", step);
            prop_assert_eq!(board.lost, counted(&board, LOST, LOST), "lost after {:?}", step);
            let retransmitted = counted(&board, RETRANSMITTED, RETRANSMITTED);
            prop_assert_eq!(board.retransmitted, retransmitted, "retransmitted after {:?}", step);
            let waiting = counted(&board, LOST | RETRANSMITTED, LOST);
            prop_assert_eq!(board.waiting, waiting, "waiting after {:?}", step);
            let first = (board.base..board.end)
                .find(|&number| board.slot(number).marks & (LOST | RETRANSMITTED) == LOST);
            prop_assert_eq!(board.next_retransmission(), first, "after {:?}", step);
        }
    }
    #[test]
    fn the_order_is_that_of_the_last_transmissions(
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut board = Scoreboard::new(SMSS as u32, true);
        let mut expected: Vec<u64> = Vec::new();
        for (now, step) in (1..).zip(&steps) {
            let before: Vec<u64> = (board.base..board.end).filter(|&n| !board.is_sacked(n)).collect();
            let end = board.end;
            let sent_again = match *step {
                Step::Retransmit(share) => at(&board, share),
                Step::RetransmitNext => board.next_retransmission(),
                _ => None,
            };
            let gone = if let Step::Unlink(share) = *step { at(&board, share) } else { sent_again };
            let was_lost = |n: &u64| board.slot(*n).marks & LOST != 0 && !expected.contains(n);
            let back: Vec<u64> = match *step {
                Step::ForgetLosses => (board.base..end).filter(was_lost).collect(),
                Step::ForgetReneged if board.outstanding() > 0 && board.is_sacked(board.base) => {
                    (board.base..end).filter(|n| !expected.contains(n)).collect()
                }
                _ => Vec::new(),
            };
            take(&mut board, step, now);
            expected.retain(|&n| n >= board.base && Some(n) != gone);
            expected.retain(|&n| !(before.contains(&n) && board.is_sacked(n)));
            expected.extend(sent_again.into_iter().chain(back).chain(end..board.end));
            let order: Vec<u64> =
                std::iter::successors(board.oldest(), |&number| board.newer(number)).collect();
            prop_assert_eq!(&order, &expected, "after {:?}", step);
        }
    }
}
