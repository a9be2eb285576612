//! Loss recovery: what is lost, what is retransmitted, and how much may be in flight meanwhile.

pub(in crate::tcp) mod aerotcp;
pub(in crate::tcp) mod fack;
pub(in crate::tcp) mod fast_recovery;
pub(in crate::tcp) mod linux;
pub(in crate::tcp) mod linux_timer;
pub(in crate::tcp) mod ns2;
pub(in crate::tcp) mod prr;
pub(in crate::tcp) mod rack;
pub(in crate::tcp) mod supertcp;
pub(in crate::tcp) mod undo;
