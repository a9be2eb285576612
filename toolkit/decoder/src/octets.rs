//! Numbers out of a slice of octets, or nothing where the slice is too short. Knows no format.

/// The two octets at `at`, network order.
#[inline]
pub fn be16(octets: &[u8], at: usize) -> Option<u16> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|c| u16::from_be_bytes(*c))
}

/// The four octets at `at`, network order.
#[inline]
pub fn be32(octets: &[u8], at: usize) -> Option<u32> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|c| u32::from_be_bytes(*c))
}

/// The four octets at `at`, least significant first.
#[inline]
pub fn le32(octets: &[u8], at: usize) -> Option<u32> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|c| u32::from_le_bytes(*c))
}
