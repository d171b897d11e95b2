//! Whether the blocks of a Go template are closed. The engine takes an open `{{if}}` for one that ends with the text,
//! and text after a stray `{{end}}` for none, where Go refuses both.

/// What is wrong with the blocks, with the line within the text.
pub fn problem(text: &str) -> Option<String> {
    let mut open: Vec<(&str, usize)> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let line = text[..text.len() - rest.len() + start].matches('\n').count() + 1;
        let action = &rest[start + 2..];
        let words = action.strip_prefix('-').filter(|after| after.starts_with(char::is_whitespace)).unwrap_or(action);
        let words = words.trim_start();
        let keyword = &words[..words.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(words.len())];
        match keyword {
            "if" | "range" | "with" | "define" | "block" => open.push((keyword, line)),
            "else" if !matches!(open.last(), Some(("if" | "range" | "with", _))) => {
                return Some(format!("{line}: {{{{else}}}} belongs to no block"));
            }
            "end" if open.pop().is_none() => return Some(format!("{line}: {{{{end}}}} closes no block")),
            _ => {}
        }
        rest = &action[length(action)..];
    }
    open.pop().map(|(keyword, line)| format!("{line}: {{{{{keyword}}}}} is not closed by {{{{end}}}}"))
}

/// Length of an action with its closing braces; what is in quotes or a comment closes nothing.
fn length(action: &str) -> usize {
    let inside = action.trim_start_matches(['-', ' ', '\t', '\r', '\n']);
    if inside.starts_with("/*") {
        return action.find("*/").map_or(action.len(), |end| end + 2);
    }
    let mut quote = None;
    let mut bytes = action.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (quote, byte) {
            (Some(b'"' | b'\''), b'\\') => drop(bytes.next()),
            (Some(open), byte) if open == byte => quote = None,
            (None, b'"' | b'`' | b'\'') => quote = Some(byte),
            (None, b'}') if action.as_bytes().get(at + 1) == Some(&b'}') => return at + 2,
            _ => {}
        }
    }
    action.len()
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn open_and_stray_blocks_are_named() {
        for (text, said) in [
            ("{{if .x}}a", "1: {{if}} is not closed by {{end}}"),
            ("a\n{{- range .x }}{{if .y}}{{end}}", "2: {{range}} is not closed"),
            ("{{.x}}{{end}} b", "1: {{end}} closes no block"),
            ("\n\n{{else}}", "3: {{else}} belongs to no block"),
            ("{{define \"x\"}}{{else}}{{end}}", "{{else}} belongs to no block"),
        ] {
            let problem = problem(text).expect(text);
            assert!(problem.contains(said), "{text}: {problem}");
        }
        for text in [
            "{{if .x}}a{{else if .y}}b{{else}}c{{end}}",
            "{{/* {{if}} */}}{{\"}}{{if\"}}{{`{{end`}}{{ifx}}{{.end}}",
            "{{- with .x -}}{{- end -}}{{block \"b\" .}}{{end}}",
        ] {
            assert_eq!(problem(text), None, "{text}");
        }
    }
}
