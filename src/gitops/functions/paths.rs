//! sprig's functions of paths, on the slashes of a repository.

use gotmpl::Value;

use super::Registry;

pub(super) fn register(functions: &mut Registry) {
    for name in ["base", "osBase"] {
        functions.text(name, |[path]| Ok(base(path).into()));
    }
    for name in ["dir", "osDir"] {
        functions.text(name, |[path]| Ok(clean(path.rfind('/').map_or("", |end| &path[..=end])).into()));
    }
    for name in ["ext", "osExt"] {
        functions.text(name, |[path]| {
            let last = path.rsplit('/').next().unwrap_or(path);
            Ok(last.rfind('.').map_or("", |start| &last[start..]).into())
        });
    }
    for name in ["clean", "osClean"] {
        functions.text(name, |[path]| Ok(clean(path).into()));
    }
    for name in ["isAbs", "osIsAbs"] {
        functions.text(name, |[path]| Ok(Value::Bool(path.starts_with('/'))));
    }
}

fn base(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" if path.is_empty() => ".",
        "" => "/",
        path => path.rsplit('/').next().unwrap_or(path),
    }
}

/// The shortest path that leads to the same place.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            ("" | ".", _) => {}
            ("..", Some(&last)) if last != ".." => drop(parts.pop()),
            ("..", _) if rooted => {}
            (part, _) => parts.push(part),
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".into(),
        (false, false) => parts.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart_as_in_go() {
        for (path, cleaned) in
            [("", "."), ("a//b/./c", "a/b/c"), ("/..", "/"), ("a/../..", ".."), ("/a/../b/", "/b"), ("../a", "../a")]
        {
            assert_eq!(clean(path), cleaned, "{path}");
        }
        assert_eq!(["", "/", "a/b/", "b"].map(base), [".", "/", "b", "b"]);
    }
}
