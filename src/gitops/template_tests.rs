use super::*;
use crate::gitops::params::value;
use proptest::prelude::*;
use serde_json::json;

fn data() -> Value {
    let mut root = match value(&json!({
        "name": "Prod_EU.1", "path": {"path": "apps/hub/envs/dev", "segments": ["apps", "hub", "envs", "dev"]},
        "n": 1000000, "f": 1.5, "three": 3, "empty": "", "list": ["b", "a"], "yes": true,
        "map": {"b": 2, "a": {"c": "d"}},
    })) {
        Value::Map(root) => (*root).clone(),
        _ => unreachable!(),
    };
    root.insert("metadata".into(), value(&json!({"labels": {"environment": "dev"}})));
    Value::from(root)
}

fn strict() -> Engine {
    Engine::new(true, &["missingkey=error".into()]).unwrap()
}

/// Expected values are what Go 1.26 with sprig 3.3 prints.
#[test]
fn go_templates_print_what_go_prints() {
    let engine = strict();
    for (template, expected) in [
        ("{{index .path.segments 1}}-{{.metadata.labels.environment}}", "hub-dev"),
        ("{{index .metadata.labels \"external-domain\"}}|", "|"),
        ("{{index .map \"zz\"}}", "<no value>"),
        ("{{(index .map \"a\").c}}", "d"),
        ("{{.n}} {{.f}} {{.three}} {{.map}} {{.list}}", "1e+06 1.5 3 map[a:map[c:d] b:2] [b a]"),
        ("{{print .n 1e21}}{{printf \"%v|%5s|%q\" .n \"x\" \"y\"}}", "1e+06 1e+211e+06|    x|\"y\""),
        ("{{- if eq .name \"x\" -}} a {{- else if .yes -}} b {{- end }} c", "b c"),
        ("{{range $i, $x := .list}}{{$i}}{{$x}};{{else}}none{{end}}", "0b;1a;"),
        ("{{with .empty}}x{{else}}y{{end}}", "y"),
        ("{{define \"t\"}}<{{.}}>{{end}}{{template \"t\" .name}}", "<Prod_EU.1>"),
        ("{{normalize .name}} {{.name | normalize | trunc 4}}", "prod-eu.1 prod"),
        ("{{default \"d\" .empty}}{{.empty | default \"e\"}}{{default \"f\" .name}}", "deProd_EU.1"),
        (
            "{{slugify 10 true \"Feature/very long-name\"}} {{slugify 10 false \"feature-very-long\"}}",
            "feature feature-ve",
        ),
        ("{{toYaml .map}}", "a:\n  c: d\nb: 2"),
        ("{{toJson .map}}", "{\"a\":{\"c\":\"d\"},\"b\":2}"),
        ("{{toJson \"<&\"}}{{regexMatch \"(\" \"x\"}}", "\"\\u003c\\u0026\"false"),
        ("{{ternary \"t\" \"f\" .yes}}{{if hasKey .map \"zz\"}}1{{else}}0{{end}}", "t0"),
        ("{{.list | sortAlpha | join \",\"}} {{upper \"x\"}} {{\"a-b\" | replace \"-\" \"_\"}}", "a,b X a_b"),
        ("{{/* nothing */}}{{`raw`}}{{len .list}}", "raw2"),
        ("{{title \"hello wORLD x-y\"}} {{snakecase \"HTTPServer x\"}}", "Hello WORLD X-Y http_server_x"),
        (
            "{{printf \"%d %d%% %05d\" .three 3 42}} {{b64dec \"!!\"}}",
            "%!d(float64=3) 3% 00042 illegal base64 data at input byte 0",
        ),
        ("{{toJson (dict \"a\" 1.5e19 \"b\" 2e21 \"c\" 5e-7)}}", "{\"a\":15000000000000000000,\"b\":2e+21,\"c\":5e-7}"),
        ("{{toYaml (dict \"a\" \"b: c\" \"d\" \"12\")}}", "a: 'b: c'\nd: \"12\""),
        ("{{printf \"%s\" .list}} {{trunc 1 \"é\"}}", "[b a] \u{fffd}"),
        ("{{seq 3}} {{untilStep 6 0 -2}} {{round 1.256 2}} {{addf 0.1 0.2}} {{div 7 2}}", "1 2 3 [6 4 2] 1.26 0.3 3"),
        (
            "{{regexSplit \",\" \"a,b\" -1}} {{mustRegexFindAll \"[ab]\" \"abc\" 1}} {{splitn \",\" 2 \"a,b,c\"}}",
            "[a b] [a] map[_0:a _1:b,c]",
        ),
        (
            "{{camelcase \"a_b\"}} {{swapcase \"aB c\"}} {{initials \"First Try\"}} {{pluck \"a\" (dict \"a\" 1)}} {{typeOf .list}}",
            "AB Ab C FT [1] []interface {}",
        ),
        ("{{slice .list 1}}{{trunc -3 \"abcdef\"}}", "[a]def"),
        ("{{dig \"a\" \"c\" \"none\" .map}}{{dig \"q\" \"c\" \"none\" .map}}", "dnone"),
    ] {
        assert_eq!(engine.render(template, &data()).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn mistakes_say_what_is_missing() {
    let engine = strict();
    for (template, said) in [
        ("{{.metadata.labels.region}}", "there is no value \"region\" (missingkey=error)"),
        ("{{index .path.segments 9}}", "index out of range: 9"),
        ("{{.name.x}}", "can't evaluate field x in type string"),
        ("{{nosuch .name}}", "undefined function: nosuch"),
        ("x\n  {{.name", "2:"),
        ("{{if .name}}", "end"),
        ("{{fail \"stop\"}}", "stop"),
        ("{{uuidv4}}", "another result at each run"),
        ("{{eq .three 3}}", "incompatible types"),
        ("{{slice .name 0 4}}", "wants a list"),
        ("{{trunc \"2\" .name}}", "wants a whole number"),
    ] {
        let error = engine.render(template, &data()).expect_err(template);
        assert!(error.contains(said), "{template}: {error}");
    }
    assert!(Engine::new(true, &["missingkey=oops".into()]).is_err());
    let lenient = Engine::new(true, &[]).unwrap();
    assert_eq!(lenient.render("{{.metadata.labels.region}}", &data()).as_deref(), Ok("<no value>"));
}

#[test]
fn the_older_form_keeps_what_it_does_not_know() {
    let engine = Engine::new(false, &[]).unwrap();
    let data = value(&json!({"name": "a", "path[1]": "hub", "metadata.labels.x": "y"}));
    for (template, expected) in [
        ("{{name}}-{{ path[1] }}-{{metadata.labels.x}}", "a-hub-y"),
        ("{{nope}} {{ }} {{name", "{{nope}} {{ }} {{name"),
        ("plain }} {", "plain }} {"),
    ] {
        assert_eq!(engine.render(template, &data).as_deref(), Ok(expected));
    }
}

#[test]
fn endless_and_doubling_work_is_refused() {
    let engine = strict();
    let mut doubling = String::new();
    for level in 0..60 {
        let next = level + 1;
        let call = format!("{{{{template \"t{next}\"}}}}");
        doubling.push_str(&format!("{{{{define \"t{level}\"}}}}{call}{call}{{{{end}}}}"));
    }
    doubling.push_str("{{define \"t60\"}}{{end}}{{template \"t0\"}}");
    for template in [
        doubling.as_str(),
        "{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}",
        "{{range 100000000}}{{end}}",
        "{{range 9000}}{{range 9000}}x{{end}}{{end}}",
        "{{$x := \"ab\"}}{{range 64}}{{$x = printf \"%s%s\" $x $x}}{{end}}",
        "{{$x := list 1}}{{range 9000}}{{$x = list $x $x}}{{end}}{{$x}}",
        "{{$x := list 1}}{{range 60}}{{$x = list $x $x}}{{end}}{{toJson $x}}",
        "{{repeat 1000000000 \"x\"}}",
        "{{printf \"%999999999d\" 1 | printf \"%999999999s\"}}{{range 9000}}{{printf \"%99999s\" \"\"}}{{end}}",
        "{{until 100000000}}",
    ] {
        let short: String = template.chars().take(60).collect();
        assert!(engine.render(template, &data()).is_err(), "{short}");
    }
    let deep = format!("{}{}", "{{if true}}".repeat(5_000), "{{end}}".repeat(5_000));
    assert!(engine.render(&deep, &data()).is_err());
    let nested = format!("{{{{{}1{}}}}}", "(".repeat(50_000), ")".repeat(50_000));
    assert!(engine.render(&nested, &data()).is_err());
}

proptest! {
    #[test]
    fn no_template_panics(text in "(\\{\\{-? ?|-?\\}\\}|if|range|with|define|template|else|end|index|\\.|\\$x|:=|=|\\(|\\)|\\||\"|`|printf|default|name|path|segments|[0-9'%sdq+,-]| |\\n|é){0,40}") {
        let _ = strict().render(&text, &data());
        let _ = Engine::new(false, &[]).unwrap().render(&text, &data());
    }

    #[test]
    fn no_function_panics(function in prop::sample::select(functions::names()), arguments in prop::collection::vec(
        prop::sample::select(vec!["\"\"", "\"a-b\"", "-1", "3", "99999999999", "1.5", ".map", ".list", ".nope", "true",
            "nil", "\"é(\"", "\"[\"", "0"]), 0..4)) {
        let lenient = Engine::new(true, &[]).unwrap();
        let _ = lenient.render(&format!("{{{{{function} {}}}}}", arguments.join(" ")), &data());
    }
}
