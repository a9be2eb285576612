//! Random values of a variant's parameters, for properties that must hold for all of them.
//!
//! Does not depend on any variant by name: the tables say what is allowed. Read `params` first.

use proptest::prelude::*;

use crate::cc::catalogue::Variant;
use crate::cc::{Kind, ParamSpec, ParamValue, ParamValues};
use crate::config::Profile;

/// A range wider than this is drawn from evenly by its logarithm, so that small values come too.
const WIDE: f64 = 100.0;

/// Values of some of the parameters of `variant` under `profile`, the others left out; none contradict each other.
pub fn drawn(variant: Variant, profile: Profile) -> impl Strategy<Value = ParamValues> {
    let specs = variant.specs(profile).iter();
    let values: Vec<_> = specs
        .map(|spec| proptest::option::of(value(spec)).prop_map(|value| (spec.name, value)))
        .collect();
    values.prop_map(move |values| {
        let given = values.into_iter();
        let mut values: ParamValues = given
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        while let Some((lower, upper)) = variant.contradiction(&values) {
            values.remove(lower);
            values.remove(upper);
        }
        values
    })
}

fn value(spec: &ParamSpec) -> BoxedStrategy<ParamValue> {
    match spec.kind {
        Kind::Flag { .. } => any::<bool>().prop_map(ParamValue::Flag).boxed(),
        Kind::Choice { names, .. } => proptest::sample::select(names)
            .prop_map(|name| ParamValue::Name(name.to_owned()))
            .boxed(),
        Kind::Number {
            min, max, whole, ..
        } => prop_oneof![1 => Just(min), 1 => Just(max), 6 => between(min, max)]
            .prop_map(move |number| if whole { libm::round(number) } else { number })
            .prop_map(ParamValue::Number)
            .boxed(),
    }
}

fn between(min: f64, max: f64) -> BoxedStrategy<f64> {
    if min > 0.0 && max > WIDE * min {
        let exponents = libm::log(min)..libm::log(max);
        exponents
            .prop_map(move |exponent| libm::exp(exponent).clamp(min, max))
            .boxed()
    } else {
        (min..max).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::catalogue::VARIANTS;
    use crate::cc::check;
    use proptest::strategy::ValueTree;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_drawn_is_allowed(index in 0..VARIANTS.len(), linux in any::<bool>(), seed in any::<[u8; 32]>()) {
            let variant = VARIANTS[index];
            let profile = if linux { Profile::Linux } else { Profile::Ns2 };
            let values = sample(variant, profile, seed);
            prop_assert_eq!(check(variant.specs(profile), &values), []);
            prop_assert_eq!(variant.contradiction(&values), None);
        }
    }

    fn sample(variant: Variant, profile: Profile, seed: [u8; 32]) -> ParamValues {
        use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let tree = drawn(variant, profile).new_tree(&mut runner);
        tree.expect("nothing is filtered").current()
    }

    /// Both ends and the middle of a number, both values of a flag, all names of a choice, and the default.
    #[test]
    fn every_kind_of_value_comes() {
        for variant in VARIANTS {
            let samples: Vec<ParamValues> = (0..=255)
                .map(|n| sample(*variant, Profile::Rfc, [n; 32]))
                .collect();
            for spec in variant.info().params {
                let found: Vec<_> = samples.iter().map(|values| values.get(spec.name)).collect();
                let different: BTreeSet<String> =
                    found.iter().map(|value| format!("{value:?}")).collect();
                let min = match spec.kind {
                    Kind::Number { min, max, .. } => {
                        for end in [min, max].map(ParamValue::Number) {
                            let alone = [(spec.name.to_owned(), end.clone())].into();
                            let allowed = variant.contradiction(&alone).is_none();
                            assert!(!allowed || found.contains(&Some(&end)), "{spec:?}");
                        }
                        4
                    }
                    Kind::Flag { .. } => 3,
                    Kind::Choice { names, .. } => 1 + names.len(),
                };
                assert!(different.len() >= min, "{spec:?}: {different:?}");
            }
        }
    }
}
