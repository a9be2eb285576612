//! Next protocols of the network service header (RFC 8300) and of VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe), which have the
//! same numbers.

use super::{Network, by_mpls, ethernet_at};
use crate::octets::be32;
use crate::skipped::Skipped;

pub(crate) const ETHERNET: u8 = 3;
const NSH: u8 = 4;

/// The packet at `at`, of the protocol `next`. `None` if the frame ends first.
pub(crate) fn by_next_protocol(frame: &[u8], next: u8, at: usize) -> Option<Network> {
    let (next, at) = match next {
        NSH => skip(frame, at)?,
        _ => (next, at),
    };
    Some(match next {
        1 => Network::Ipv4(at),
        2 => Network::Ipv6(at),
        ETHERNET => return ethernet_at(frame, at),
        5 => return by_mpls(frame, at),
        other => Network::Other(Some(Skipped::NextProtocol(other))),
    })
}

/// Skips the network service header at `at` (RFC 8300 §2.2) and those that follow it. Returns the next protocol, never
/// NSH, and the offset of its header; protocol 0, which is reserved, after a header of an unknown form.
pub(crate) fn skip(frame: &[u8], mut at: usize) -> Option<(u8, usize)> {
    /// The base header and the service path header.
    const MIN_WORDS: u32 = 2;
    loop {
        let base = be32(frame, at)?;
        let (version, words, next) = (base >> 30, (base >> 16) & 0x3f, base as u8);
        if version != 0 || words < MIN_WORDS {
            return Some((0, at));
        }
        at += words as usize * 4;
        if next != NSH {
            return Some((next, at));
        }
    }
}
