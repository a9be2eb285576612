//! Integers at an offset of a slice; `None` if the slice is too short.

/// The 16-bit integer at `at`, in network byte order.
#[inline]
pub fn be16(octets: &[u8], at: usize) -> Option<u16> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|c| u16::from_be_bytes(*c))
}

/// The 32-bit integer at `at`, in network byte order.
#[inline]
pub fn be32(octets: &[u8], at: usize) -> Option<u32> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|c| u32::from_be_bytes(*c))
}

/// The 32-bit integer at `at`, in little-endian byte order.
#[inline]
pub fn le32(octets: &[u8], at: usize) -> Option<u32> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|c| u32::from_le_bytes(*c))
}
