//! A compact form of counters, most of which are zero or small: LEB128 integers, one after another.

use std::collections::VecDeque;

/// A value with a compact form.
pub(crate) trait Pack: Sized {
    /// Appends the value to `out`.
    fn pack(&self, out: &mut Vec<u8>);
    /// Takes the value from the front of `octets`, which [`Pack::pack`] wrote. What is missing is zero.
    fn unpack(octets: &mut &[u8]) -> Self;
}

impl Pack for u64 {
    #[inline]
    fn pack(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    #[inline]
    fn unpack(octets: &mut &[u8]) -> Self {
        let (mut value, mut shift) = (0, 0);
        while let Some((&octet, rest)) = octets.split_first() {
            *octets = rest;
            value |= u64::from(octet & 0x7f) << shift;
            shift += 7;
            if octet < 0x80 || shift > 63 {
                break;
            }
        }
        value
    }
}

macro_rules! pack_as_u64 {
    ($($kind:ty),*) => {$(
        impl Pack for $kind {
            #[inline]
            fn pack(&self, out: &mut Vec<u8>) {
                u64::from(*self).pack(out);
            }
            #[inline]
            fn unpack(octets: &mut &[u8]) -> Self {
                u64::unpack(octets) as $kind
            }
        }
    )*};
}
pack_as_u64!(u32, u16, u8);

impl Pack for bool {
    #[inline]
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    #[inline]
    fn unpack(octets: &mut &[u8]) -> Self {
        u64::unpack(octets) != 0
    }
}

/// Zigzag.
impl Pack for i64 {
    #[inline]
    fn pack(&self, out: &mut Vec<u8>) {
        (((self << 1) ^ (self >> 63)) as u64).pack(out);
    }
    #[inline]
    fn unpack(octets: &mut &[u8]) -> Self {
        let value = u64::unpack(octets);
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }
}

/// Sums of microseconds are integers: twice the integer, or an odd number and the bits.
impl Pack for f64 {
    #[inline]
    fn pack(&self, out: &mut Vec<u8>) {
        const EXACT: f64 = 9e15;
        if self.is_sign_positive() && *self < EXACT && self.fract() == 0.0 {
            ((*self as u64) << 1).pack(out);
        } else {
            1_u64.pack(out);
            self.to_bits().pack(out);
        }
    }
    #[inline]
    fn unpack(octets: &mut &[u8]) -> Self {
        let value = u64::unpack(octets);
        if value & 1 == 0 {
            (value >> 1) as f64
        } else {
            f64::from_bits(u64::unpack(octets))
        }
    }
}

impl<T: Pack> Pack for Option<T> {
    #[inline]
    fn pack(&self, out: &mut Vec<u8>) {
        self.is_some().pack(out);
        if let Some(value) = self {
            value.pack(out);
        }
    }
    #[inline]
    fn unpack(octets: &mut &[u8]) -> Self {
        bool::unpack(octets).then(|| T::unpack(octets))
    }
}

impl<T: Pack + Copy + Default, const N: usize> Pack for [T; N] {
    #[inline]
    fn pack(&self, out: &mut Vec<u8>) {
        for value in self {
            value.pack(out);
        }
    }
    #[inline]
    fn unpack(octets: &mut &[u8]) -> Self {
        let mut values = [T::default(); N];
        for value in &mut values {
            *value = T::unpack(octets);
        }
        values
    }
}

impl<T: Pack> Pack for VecDeque<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.len() as u64).pack(out);
        for value in self {
            value.pack(out);
        }
    }
    fn unpack(octets: &mut &[u8]) -> Self {
        (0..u64::unpack(octets))
            .map(|_| T::unpack(octets))
            .collect()
    }
}

/// Declares a struct and its compact form, field after field.
macro_rules! packed {
    ($(#[$attribute:meta])* pub struct $name:ident { $($(#[$note:meta])* pub $field:ident: $kind:ty,)* }) => {
        $(#[$attribute])*
        pub struct $name { $($(#[$note])* pub $field: $kind,)* }
        impl crate::pack::Pack for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                $(self.$field.pack(out);)*
            }
            fn unpack(octets: &mut &[u8]) -> Self {
                $(let $field = <$kind>::unpack(octets);)*
                Self { $($field,)* }
            }
        }
    };
}
pub(crate) use packed;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(
            a in any::<u64>(), b in any::<i64>(), c in any::<f64>(), sum in any::<u32>(), d in any::<Option<u32>>(), e in any::<[u16; 3]>(),
        ) {
            let mut octets = Vec::new();
            a.pack(&mut octets);
            b.pack(&mut octets);
            c.pack(&mut octets);
            f64::from(sum).pack(&mut octets);
            d.pack(&mut octets);
            e.pack(&mut octets);
            let mut rest = &octets[..];
            prop_assert_eq!(u64::unpack(&mut rest), a);
            prop_assert_eq!(i64::unpack(&mut rest), b);
            prop_assert_eq!(f64::unpack(&mut rest).to_bits(), c.to_bits());
            prop_assert_eq!(f64::unpack(&mut rest).to_bits(), f64::from(sum).to_bits());
            prop_assert_eq!(Option::<u32>::unpack(&mut rest), d);
            prop_assert_eq!(<[u16; 3]>::unpack(&mut rest), e);
            prop_assert!(rest.is_empty());
        }
    }
}
