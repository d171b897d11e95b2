//! What the files of a repository name in so many words: images of containers, and API groups of objects. Charts that
//! are fetched name more.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::tree::Tree;
use crate::error::Result;

/// A file larger than this is no manifest that a person wrote, and is left out.
const LARGEST: usize = 1 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    pub images: BTreeSet<String>,
    pub groups: BTreeSet<String>,
}

/// Looks through all YAML files of a tree.
pub fn named(tree: &dyn Tree) -> Result<Named> {
    static IMAGE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?m)^[ \t-]*image:[ \t]*["']?([a-z0-9][a-zA-Z0-9._/:@-]*)["']?[ \t]*$"#).expect("a constant")
    });
    static GROUP: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?m)^[ \t-]*apiVersion:[ \t]*["']?([a-z0-9-]+(?:\.[a-z0-9-]+)+)/v[a-z0-9]+["']?[ \t]*$"#)
            .expect("a constant")
    });
    let mut named = Named::default();
    for path in tree.paths().iter().filter(|path| path.ends_with(".yaml") || path.ends_with(".yml")) {
        let content = tree.read(path)?;
        let Ok(text) = str::from_utf8(&content) else { continue };
        if text.len() > LARGEST {
            continue;
        }
        named.images.extend(IMAGE.captures_iter(text).map(|found| found[1].to_owned()));
        named.groups.extend(GROUP.captures_iter(text).map(|found| found[1].to_owned()));
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gitops::tree::MemoryTree;

    #[test]
    fn images_and_groups_are_found_where_manifests_have_them() {
        let text = "apiVersion: example.org/v1beta1\nkind: Widget\nspec:\n  containers:\n  - image: quay.io/a/b:1\n    name: image\n  - name: c\n    image: \"redis:8\"\n  image: ${IMAGE}\n---\napiVersion: apps/v1\n";
        let tree = MemoryTree::new([("a.yaml", text), ("b.md", "image: not/this:1\n")]);
        let named = named(&tree).unwrap();
        assert_eq!(named.images, BTreeSet::from(["quay.io/a/b:1".to_owned(), "redis:8".to_owned()]));
        assert_eq!(named.groups, BTreeSet::from(["example.org".to_owned()]));
    }
}
