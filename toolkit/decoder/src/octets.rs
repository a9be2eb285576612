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

/// The 16-bit integer at `at`, in little-endian byte order.
#[inline]
pub fn le16(octets: &[u8], at: usize) -> Option<u16> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|c| u16::from_le_bytes(*c))
}

/// The 32-bit integer at `at`, in little-endian byte order.
#[inline]
pub fn le32(octets: &[u8], at: usize) -> Option<u32> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|c| u32::from_le_bytes(*c))
}

/// The 16-bit integer at `at`, in the given byte order.
#[inline]
pub fn u16_in(big_endian: bool, octets: &[u8], at: usize) -> Option<u16> {
    let chunk = *octets.get(at..)?.first_chunk()?;
    Some(if big_endian {
        u16::from_be_bytes(chunk)
    } else {
        u16::from_le_bytes(chunk)
    })
}

/// The 32-bit integer at `at`, in the given byte order.
#[inline]
pub fn u32_in(big_endian: bool, octets: &[u8], at: usize) -> Option<u32> {
    let chunk = *octets.get(at..)?.first_chunk()?;
    Some(if big_endian {
        u32::from_be_bytes(chunk)
    } else {
        u32::from_le_bytes(chunk)
    })
}
