//! Which vendor's folders fit a cluster that kind makes.

use super::tree::Tree;

/// `kind` where the repository has such folders (`agnostics/<part>/kind/envs/…`), else `k3s`, whose
/// variants come nearest.
pub fn suggest(tree: &dyn Tree) -> String {
    if has(tree, "kind") { "kind".into() } else { "k3s".into() }
}

/// Whether the repository has folders for a vendor.
pub fn has(tree: &dyn Tree, vendor: &str) -> bool {
    tree.paths().iter().any(|path| {
        let mut segments = path.split('/');
        segments.next() == Some("agnostics") && segments.nth(1) == Some(vendor) && segments.next() == Some("envs")
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::MemoryTree;
    use super::*;

    #[test]
    fn folders_for_kind_come_before_those_for_k3s() {
        let tree = |vendor: &str| {
            let path = format!("agnostics/storage-class/{vendor}/envs/dev/kustomization.yaml");
            MemoryTree::new([(path.as_str(), "")])
        };
        assert_eq!(suggest(&tree("kind")), "kind");
        assert_eq!(suggest(&tree("aws")), "k3s");
    }
}
