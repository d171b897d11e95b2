//! The fixed texts of a developer's overlay, from the folder `overlays`.

use minijinja::{Environment, UndefinedBehavior, context};

pub const STORAGE_CLASSES: &str = include_str!("../../overlays/k8tre/storage-classes.yaml");

/// An env folder's kustomization that takes one resource, for the developer to change.
pub fn env_kustomization(resource: &str) -> String {
    filled(include_str!("../../overlays/env/kustomization.yaml"), context! { resource })
}

/// The patch, to be put below a kustomization, that gives MetalLB these addresses.
pub fn address_range(range: &str) -> String {
    filled(include_str!("../../overlays/k8tre/address-range.yaml"), context! { range })
}

fn filled(template: &str, values: minijinja::Value) -> String {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let mut text = environment.render_str(template, values).expect("the embedded templates name only these values");
    // The renderer takes the end of the last line for its own.
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_whole_files() {
        let kustomization = env_kustomization("../dev");
        assert!(kustomization.ends_with("resources:\n  - ../dev\n"), "{kustomization}");
        assert!(address_range("10.0.0.1-10.0.0.9").ends_with("value: 10.0.0.1-10.0.0.9\n"));
    }
}
