//! Refuses options that the chosen variant would not heed: what is accepted does something.
//!
//! Must not know how they work. A profile's own values are never refused, only what a scenario asks for.

use super::{Checked, known_variant, refuse};
use crate::catalogue::Variant;
use crate::config::{FlowConfig, Profile, RecoveryKind, StackParams};

/// Those that are known by their recovery, or by what else is left of them over a window that nothing moves.
const WITHOUT_WINDOW: &str =
    "reno, newreno, sack, fack, linux-reno, freeze-tcp, aerotcp or supertcp";

impl Variant {
    /// Whether it leaves the way in which slow start ends to the stack.
    fn heeds_slow_start(self) -> bool {
        !matches!(
            self,
            Self::Bbr
                | Self::Bbr3
                | Self::Aerotcp
                | Self::Supertcp
                | Self::ScpsTp
                | Self::Peach
                | Self::Vegas
                | Self::Afstart
                | Self::Ledbat
                | Self::Hybla
                | Self::External
        )
    }

    /// Whether it is still what its name says over a window that nothing moves.
    fn is_more_than_its_window(self) -> bool {
        matches!(
            self,
            Self::Reno
                | Self::Newreno
                | Self::Sack
                | Self::Fack
                | Self::LinuxReno
                | Self::FreezeTcp
                | Self::Aerotcp
                | Self::Supertcp
        )
    }
}

impl FlowConfig {
    /// The variants of its legs.
    fn variants(&self) -> Result<Vec<Variant>, super::ConfigError> {
        let proxies = self
            .proxies
            .iter()
            .filter_map(|proxy| proxy.variant.as_ref());
        let names = [&self.variant].into_iter().chain(proxies);
        names.map(|name| known_variant("variant", name)).collect()
    }

    /// Refuses what none of its legs heeds.
    pub(super) fn validate_options(&self, key: &str) -> Checked {
        let variants = self.variants()?;
        let at = |name: &str| format!("{key}.stack.{name}");
        let params = StackParams::resolve(self.profile, &self.stack);
        self.validate_fixed_window(&at, &variants)?;
        if self.stack.slow_start.is_some() {
            self.validate_slow_start(&at("slow_start"), &variants)?;
        }
        if self.stack.pacing == Some(true) && variants.iter().all(|v| *v == Variant::External) {
            let problem = format!(
                "variant {:?} is a controller that is not paced",
                self.variant
            );
            return refuse(at("pacing"), problem);
        }
        let probes = |variant: &Variant| {
            let fixed = variant.fix(&params, &self.params);
            fixed.recovery == RecoveryKind::RackPrr && fixed.sack
        };
        if self.stack.tail_loss_probe == Some(true) && !variants.iter().any(probes) {
            let recovery = variants[0].fix(&params, &self.params).recovery;
            let problem = format!(
                "needs recovery rack_prr with sack, which sends the probes; variant {:?} has {}",
                self.variant,
                recovery.name()
            );
            return refuse(at("tail_loss_probe"), problem);
        }
        Ok(())
    }

    fn validate_slow_start(&self, key: &str, variants: &[Variant]) -> Checked {
        if self.profile == Profile::Ns2 {
            let problem = "profile \"ns2\" starts as ns-2's agents do, without an end by delay";
            return refuse(key, problem);
        }
        if variants.iter().any(|variant| variant.heeds_slow_start()) {
            return Ok(());
        }
        let problem = format!("variant {:?} has a start of its own", self.variant);
        refuse(key, problem)
    }

    fn validate_fixed_window(&self, at: &dyn Fn(&str) -> String, variants: &[Variant]) -> Checked {
        if self.stack.fixed_window_pkts.is_none() {
            return Ok(());
        }
        if !variants
            .iter()
            .all(|variant| variant.is_more_than_its_window())
        {
            let problem = format!(
                "nothing is left of variant {:?} over a window that nothing moves; take {WITHOUT_WINDOW}",
                self.variant
            );
            return refuse(at("fixed_window_pkts"), problem);
        }
        let stack = &self.stack;
        for (name, given) in [
            ("slow_start", stack.slow_start.is_some()),
            (
                "slow_start_limit_pkts",
                stack.slow_start_limit_pkts.is_some(),
            ),
            ("initial_window_pkts", stack.initial_window_pkts.is_some()),
            (
                "initial_ssthresh_pkts",
                stack.initial_ssthresh_pkts.is_some(),
            ),
        ] {
            if given {
                return refuse(at(name), "means nothing over a fixed_window_pkts");
            }
        }
        Ok(())
    }
}
