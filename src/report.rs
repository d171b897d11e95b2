//! What is printed, as data: the shapes behind `-o json`, and the tables made from them.

use jiff::Timestamp;

/// Version of every JSON document that k8tre prints; `docs/json.md` describes it.
pub const SCHEMA: u32 = 1;

/// How long ago, as people say it.
pub fn age(since: Timestamp) -> String {
    crate::expiry::length(Timestamp::now().duration_since(since).as_secs().max(0))
}

/// When something ends, as a cell of a table says it.
pub fn expires(at: Timestamp) -> String {
    let left = at.duration_since(Timestamp::now()).as_secs();
    if left <= 0 { "expired".into() } else { format!("in {}", crate::expiry::length(left)) }
}

/// A plain table: no frame, columns as wide as they need to be.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(comfy_table::ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row.into_iter().map(|cell| crate::text::one_line(&cell, 120)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_no_frame_and_no_trailing_space() {
        let text = table(&["NAME", "STATE"], [vec!["a".into(), "running".into()], vec!["longer".into(), "x".into()]]);
        assert_eq!(text, "NAME    STATE\na       running\nlonger  x");
    }
}
