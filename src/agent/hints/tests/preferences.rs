//! The energy/performance preference: where none is asked for, and where the governor fixes it.

use super::*;

/// A tree whose hardware hears the preference alone, and hints that may set it unasked.
fn with_defaults(name: &str, driver: &str, text: &str) -> (Tree, InForce) {
    let tree = Tree::new(name);
    for policy in 0..2 {
        tree.put(&format!("cpufreq/policy{policy}/scaling_driver"), driver);
        tree.put(&format!("cpufreq/policy{policy}/scaling_governor"), "powersave");
    }
    tree.battery("Discharging");
    let mut hints = tree.hints(text);
    hints.set_defaults(true);
    (tree, hints)
}

#[test]
fn the_preference_goes_with_the_mode_where_it_is_all_that_is_heard() {
    let (tree, mut hints) = with_defaults("defaults", "intel_pstate", "");
    for mode in [Mode::Packing, Mode::Energy] {
        hints.apply(mode, &[]).unwrap();
        assert_eq!(tree.epps(), ["balance_power"; 2], "{mode}");
        assert!(hints.holds_epp() && tree.record().exists());
        hints.apply(Mode::Spread, &[]).unwrap();
        assert!(tree.is_untouched() && !hints.holds_epp() && !tree.record().exists());
    }
    hints.apply(Mode::Packing, &[]).unwrap();
    assert!(hints.change_unasked(Mode::Packing) && !hints.change_unasked(Mode::Spread));
    tree.battery("Charging");
    hints.apply(Mode::Packing, &[]).unwrap();
    assert!(tree.is_untouched(), "not on battery");
    tree.battery("Discharging");
    // A service that sets it has begun.
    hints.apply(Mode::Packing, &[]).unwrap();
    hints.set_defaults(false);
    hints.apply(Mode::Packing, &[]).unwrap();
    assert!(tree.is_untouched());
}

#[test]
fn the_preference_stays_where_anybody_has_chosen() {
    let (tree, mut hints) = with_defaults("heard", "acpi-cpufreq", "");
    hints.apply(Mode::Packing, &[]).unwrap();
    assert!(tree.is_untouched(), "the governor hears the scheduler");
    assert!(!hints.change_unasked(Mode::Packing), "nothing to wait for");
    let (tree, mut hints) = with_defaults("keep", "intel_pstate", "epp.packing = \"keep\"");
    hints.apply(Mode::Packing, &[]).unwrap();
    assert!(tree.is_untouched(), "keep");
    let (tree, mut hints) = with_defaults("asked", "amd-pstate-epp", "epp.packing = \"power\"");
    hints.apply(Mode::Packing, &[]).unwrap();
    assert_eq!(tree.epps(), ["power"; 2]);
    let (tree, mut hints) = with_defaults("chosen", "amd-pstate-epp", "");
    tree.put(&epp(0), "power");
    tree.put("cpufreq/policy1/scaling_governor", "performance");
    hints.apply(Mode::Packing, &[]).unwrap();
    assert_eq!(tree.epps(), ["power", "balance_performance"]);
}

/// As amd_pstate does: with the governor `performance` no other preference is listed.
fn fix(tree: &Tree, policy: usize) {
    let dir = format!("cpufreq/policy{policy}");
    tree.put(&format!("{dir}/scaling_driver"), "amd-pstate-epp");
    tree.put(&format!("{dir}/scaling_governor"), "performance");
    tree.put(&format!("{dir}/energy_performance_available_preferences"), "performance");
    tree.put(&epp(policy), "performance");
}

#[test]
fn a_preference_that_the_governor_fixes_waits_for_another_one() {
    let tree = Tree::new("fixed");
    fix(&tree, 0);
    let mut hints = tree.hints(BOTH);
    hints.apply(Mode::Packing, &[]).unwrap();
    assert_eq!(tree.epps(), ["performance", "balance_power"]);
    fix(&tree, 1);
    assert!(hints.change_unasked(Mode::Packing));
    let said = |text: &str| parse(text).lacks(&tree.0, &tree.record()).unwrap_err().to_string();
    assert!(said("epp.packing = \"turbo\"").contains("balance_performance, balance_power, power"));
    hints.set(parse("epp.packing = \"power\"\nepp.spread = \"performance\"")).unwrap();
    hints.apply(Mode::Spread, &[]).unwrap();
    assert!(!hints.change_unasked(Mode::Spread), "that is what the governor sets");
    hints.apply(Mode::Packing, &[]).unwrap();
    assert_eq!(tree.epps(), ["performance"; 2]);
    for policy in 0..2 {
        tree.put(&format!("cpufreq/policy{policy}/scaling_governor"), "powersave");
    }
    hints.apply(Mode::Packing, &[]).unwrap();
    assert_eq!(tree.epps(), ["power"; 2]);
    assert!(!hints.change_unasked(Mode::Packing));
}
