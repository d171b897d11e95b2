//! GitOps repositories: read, predicted, overlaid. Pure: nothing here talks to the world.

pub mod tree;
pub fn suggest_vendor(_tree: &dyn tree::Tree) -> String {
    "kind".into()
}
