//! The catalogue of variants by name.
//!
//! Does not depend on the definitions: see `cc/definition.rs` and the file of each variant.

use hindflight_kernels::StreamRng;

use super::{
    Controller, ControllerParts, Definition, FixedWindow, ParamSpec, ParamValues, SlowStart,
    Window, WindowPacing, Windowed,
};
use crate::config::{Profile, RecoveryKind, SlowStartKind, StackParams};

/// Declares the closed enum of variants, in the order of the list.
macro_rules! variants {
    ($($name:ident: $module:ident::$definition:ident,)*) => {
        /// A TCP variant by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Variant {
            $(#[doc = concat!("`cc/variants/", stringify!($module), "` defines it.")] $name,)*
            /// A user's controller, with its name after [`EXTERNAL`].
            External,
        }

        /// Every variant except a user's, in the order of the list.
        pub const VARIANTS: &[Variant] = &[$(Variant::$name,)*];

        impl Variant {
            /// Its definition.
            pub fn info(self) -> &'static Definition {
                match self {
                    $(Self::$name => &crate::cc::variants::$module::$definition,)*
                    Self::External => &OUTSIDE,
                }
            }
        }
    };
}

variants! {
    Reno: reno_family::RENO,
    Newreno: reno_family::NEWRENO,
    Sack: reno_family::SACK,
    Fack: fack::DEFINITION,
    Afstart: afstart::DEFINITION,
    FreezeTcp: reno_family::FREEZE_TCP,
    LinuxReno: reno_family::LINUX_RENO,
    Cubic: cubic::DEFINITION,
    Bbr: bbr::DEFINITION,
    Bbr3: bbr3::DEFINITION,
    WestwoodPlus: westwood::DEFINITION,
    WestwoodBwe: westwood_bwe::DEFINITION,
    WestwoodAbse: westwood_abse::DEFINITION,
    Hybla: hybla::DEFINITION,
    Compound: compound::DEFINITION,
    Asran: asran::DEFINITION,
    Vegas: vegas::DEFINITION,
    Highspeed: highspeed::DEFINITION,
    Bic: bic::DEFINITION,
    Illinois: illinois::DEFINITION,
    Htcp: htcp::DEFINITION,
    Yeah: yeah::DEFINITION,
    Scalable: scalable::DEFINITION,
    Veno: veno::DEFINITION,
    Ledbat: ledbat::DEFINITION,
    Aerotcp: aerotcp::DEFINITION,
    ScpsTp: scps_tp::DEFINITION,
    Peach: peach::DEFINITION,
    Supertcp: supertcp::DEFINITION,
}

/// Prefix of the name of a user's controller.
pub const EXTERNAL: &str = "external:";

/// A user's controller, which [`Externals`](super::Externals) creates.
const OUTSIDE: Definition = Definition {
    name: "external",
    family: "user",
    summary: "a user's controller",
    ..Definition::BASE
};

impl Variant {
    /// The variant called `name`.
    ///
    /// # Errors
    /// The name of the variant that is called so in other systems, otherwise the nearest name.
    pub fn from_name(name: &str) -> Result<Self, &'static str> {
        if name.starts_with(EXTERNAL) {
            return Ok(Self::External);
        }
        if let Some(variant) = VARIANTS.iter().find(|known| known.info().name == name) {
            return Ok(*variant);
        }
        let all = VARIANTS.iter().copied().map(Variant::info);
        let elsewhere = all.clone().find(|info| info.other_names.contains(&name));
        let meant = elsewhere.or(all.min_by_key(|info| edit_distance(name, info.name)));
        Err(meant.map_or("", |info| info.name))
    }

    /// The stack parameters with those that the variant determines; `values` are its parameters in the scenario.
    pub fn fix(self, params: &StackParams, values: &ParamValues) -> StackParams {
        let mut fixed = *params;
        if !self.info().ns2_module && fixed.runs_ns2_module() {
            // Its agent is Sack1.
            fixed.recovery = RecoveryKind::Sack;
        }
        (self.info().fix)(&mut fixed, values);
        fixed
    }

    /// Whether a user's code decides on its window, through [`Externals`](super::Externals).
    pub fn is_external(self) -> bool {
        self == Self::External
    }

    /// Its parameters under `profile`.
    pub fn specs(self, profile: Profile) -> &'static [ParamSpec] {
        let info = self.info();
        if (info.has_params)(profile) {
            info.params
        } else {
            &[]
        }
    }

    /// The profiles under which it has parameters.
    pub fn profiles(self) -> Vec<&'static str> {
        let having = |profile: &Profile| !self.specs(*profile).is_empty();
        let profiles = Profile::ALL.into_iter().filter(having);
        profiles.map(Profile::name).collect()
    }

    /// The first two of its parameters that contradict each other under `values`, each of which is within its range:
    /// the lower one and the upper one.
    pub fn contradiction(self, values: &ParamValues) -> Option<(&'static str, &'static str)> {
        (self.info().ordered)(values)
            .into_iter()
            .find(|[(_, lower), (_, upper)]| lower >= upper)
            .map(|[(lower, _), (upper, _)]| (lower, upper))
    }

    /// Its controller under the stack parameters `params`; `values` are its parameters in the scenario, `rng` is the
    /// random stream for its random decisions.
    pub fn controller(
        self,
        params: &StackParams,
        values: &ParamValues,
        rng: StreamRng,
    ) -> Controller {
        let linux = params.pacing.then_some(WindowPacing::LINUX);
        let pacing = (self.info().pacing)(values).or(linux);
        if let Some(pkts) = params.fixed_window_pkts {
            return FixedWindow::windowed(pkts).paced(pacing).into();
        }
        let windowed = match (self.info().parts)(params, values, rng) {
            ControllerParts::Whole(controller) => return controller,
            ControllerParts::Window(windowed) => windowed,
            ControllerParts::Rules(increase, decrease) => Windowed::new(
                Window::initial(params),
                self.slow_start(params),
                increase,
                decrease,
            ),
        };
        windowed.paced(pacing).into()
    }

    fn slow_start(self, params: &StackParams) -> SlowStart {
        let natural = (self.info().slow_start)(params.profile);
        match params.slow_start.unwrap_or(natural) {
            SlowStartKind::Standard => SlowStart::standard(params.slow_start_limit_pkts),
            SlowStartKind::Hystart => SlowStart::hystart(params.slow_start_limit_pkts),
            SlowStartKind::Hystartpp => SlowStart::hystartpp(params.slow_start_limit_pkts),
        }
    }
}

/// Levenshtein distance of two names.
pub(crate) fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_found_and_a_misspelt_one_suggests_the_nearest() {
        for variant in VARIANTS {
            assert_eq!(Variant::from_name(variant.info().name), Ok(*variant));
        }
        assert_eq!(Variant::from_name("kubic"), Err("cubic"));
        assert_eq!(Variant::from_name("new-reno"), Err("newreno"));
    }

    #[test]
    fn a_name_of_other_systems_suggests_its_variant_and_no_other() {
        assert_eq!(Variant::from_name("ctcp"), Err("compound"));
        assert_eq!(Variant::from_name("bbrv3"), Err("bbr3"));
        let mut known: Vec<_> = VARIANTS.iter().map(|variant| variant.info().name).collect();
        for variant in VARIANTS {
            let info = variant.info();
            for &other in info.other_names {
                assert_eq!(Variant::from_name(other), Err(info.name));
                assert!(!known.contains(&other), "{other}");
                known.push(other);
            }
        }
    }

    #[test]
    fn parameters_that_contradict_each_other_are_named() {
        let values = |json: &str| serde_json::from_str(json).expect("well-formed");
        let found = |variant: Variant, json| variant.contradiction(&values(json));
        assert_eq!(found(Variant::Vegas, r#"{"alpha": 3.9}"#), None);
        assert_eq!(
            found(Variant::Vegas, r#"{"alpha": 4}"#),
            Some(("alpha", "beta"))
        );
        let windows = r#"{"low_window": 500, "high_window": 400}"#;
        assert_eq!(
            found(Variant::Highspeed, windows),
            Some(("low_window", "high_window"))
        );
        for variant in VARIANTS {
            assert_eq!(found(*variant, "{}"), None, "{variant:?}");
        }
    }

    #[test]
    fn edit_distance_by_hand() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("sack", "sack"), 0);
    }
}
