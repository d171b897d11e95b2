//! Argo CD's own functions, conversions, and the functions whose result nobody can predict.

use std::io::Write;

use gotmpl::Value;
use serde::Serialize;
use serde_json::ser::Formatter;

use super::{Registry, UNPREDICTABLE, arity, fail, str, whole};
use crate::gitops::{params, yaml};

/// Each call gives another result, so an Application that uses one cannot be predicted.
const CHANGING: &[&str] = &[
    "ago",
    "bcrypt",
    "buildCustomCert",
    "date",
    "dateInZone",
    "dateModify",
    "genCA",
    "genCAWithKey",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "htmlDate",
    "htpasswd",
    "now",
    "randAlpha",
    "randAlphaNum",
    "randAscii",
    "randBytes",
    "randInt",
    "randNumeric",
    "shuffle",
    "uuidv4",
];

/// Argo CD knows these, and k8tre does not: they are rare in ApplicationSets, and need much.
const UNSUPPORTED: &[&str] = &[
    "abbrev",
    "abbrevboth",
    "adler32sum",
    "b32dec",
    "b32enc",
    "decryptAES",
    "derivePassword",
    "duration",
    "durationRound",
    "encryptAES",
    "htmlDateInZone",
    "mustDateModify",
    "mustToDate",
    "semver",
    "semverCompare",
    "sha1sum",
    "toDate",
    "tpl",
    "unixEpoch",
    "urlJoin",
    "urlParse",
    "wrap",
    "wrapWith",
];

pub(super) fn register(functions: &mut Registry) {
    functions.text("normalize", |[name]| Ok(params::normalized(name).into()));
    functions.add("slugify", |arguments| {
        let (length, smart, name) = match arguments {
            [] => (50, true, ""),
            [name] => (50, true, str(name)?),
            [length, name] => (whole(length)?, true, str(name)?),
            [length, Value::Bool(smart), name] => (whole(length)?, *smart, str(name)?),
            _ => return Err(fail("takes a length, whether to cut between words, and a name")),
        };
        Ok(slug(&params::normalized(name), usize::try_from(length).unwrap_or(0), smart).into())
    });
    functions.add("toYaml", |arguments| {
        let text = serde_saphyr::to_string(&params::json(&arity::<1>(arguments)?[0]));
        Ok(quoted_as_go(text.map_err(|error| fail(error.to_string()))?.trim_end_matches('\n')).into())
    });
    for name in ["fromYaml", "fromYamlArray", "fromJson"] {
        functions.text(name, move |[text]| match yaml::data("text", text.as_bytes()) {
            Ok(data) => Ok(params::value(&data)),
            Err(error) => Err(fail(error.to_string())),
        });
    }
    for name in ["toJson", "mustToJson"] {
        functions.add(name, |arguments| {
            // As Go writes JSON, fit for a page.
            let text = json_text(&arity::<1>(arguments)?[0])?;
            Ok(text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026").into())
        });
    }
    functions.add("toRawJson", |arguments| Ok(json_text(&arity::<1>(arguments)?[0])?.into()));
    functions.add("toPrettyJson", |arguments| {
        let text = serde_json::to_string_pretty(&params::json(&arity::<1>(arguments)?[0]));
        Ok(text.map_err(|error| fail(error.to_string()))?.into())
    });
    functions.text("fail", |[message]| Err(fail(message)));
    functions.add("kindOf", |arguments| Ok(kind(&arity::<1>(arguments)?[0]).into()));
    functions.add("typeOf", |arguments| Ok(type_of(&arity::<1>(arguments)?[0]).into()));
    for name in ["typeIs", "typeIsLike"] {
        functions.add(name, |arguments| {
            let [wanted, value] = arity(arguments)?;
            Ok(Value::Bool(str(wanted)? == type_of(value)))
        });
    }
    functions.add("kindIs", |arguments| {
        let [wanted, value] = arity(arguments)?;
        Ok(Value::Bool(str(wanted)? == kind(value)))
    });
    functions.add("hello", |arguments| arity::<0>(arguments).map(|_| "Hello!".into()));
    for name in CHANGING {
        functions.add(name, |_| Err(fail(format!("gives another result at each run, so that it {UNPREDICTABLE}"))));
    }
    for name in UNSUPPORTED {
        functions.add(name, |_| Err(fail(format!("k8tre does not know what it gives, so that it {UNPREDICTABLE}"))));
    }
}

fn json_text(value: &Value) -> gotmpl::Result<String> {
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, GoNumbers);
    params::json(value).serialize(&mut serializer).map_err(|error| fail(error.to_string()))?;
    String::from_utf8(text).map_err(|error| fail(error.to_string()))
}

/// Go writes an exponent only below a millionth and from 1e21 on.
struct GoNumbers;

impl Formatter for GoNumbers {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> std::io::Result<()> {
        match value.abs() {
            size if size == 0.0 || (1e-6..1e21).contains(&size) => write!(writer, "{value}"),
            size => writer.write_all(format!("{value:e}").replace('e', if size < 1.0 { "e" } else { "e+" }).as_bytes()),
        }
    }
}

/// Go quotes with `"` what would be no text without quotes, and everything else with `'`.
fn quoted_as_go(yaml: &str) -> String {
    let line = |line: &str| -> Option<String> {
        let (before, quoted) = line.strip_suffix('"')?.split_once('"')?;
        let text = !before.is_empty() || line.starts_with('"');
        let plain =
            !quoted.contains(['\\', '"', '\'']) && (before.trim_end().ends_with([':', '-']) || before.is_empty());
        let would_be_text = matches!(yaml::data("text", quoted.as_bytes()), Ok(serde_json::Value::String(_)) | Err(_))
            || quoted.contains(": ");
        (text && plain && would_be_text).then(|| format!("{before}'{quoted}'"))
    };
    yaml.split('\n').map(|text| line(text).unwrap_or_else(|| text.to_owned())).collect::<Vec<_>>().join("\n")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Uint(_) => "uint",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::List(_) => "slice",
        Value::Map(_) => "map",
        Value::Function(_) => "func",
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Nil => "<nil>",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
        other => kind(other),
    }
}

/// Of a normalised name, so it is ASCII. A length of 0 is no limit when words are kept whole.
fn slug(name: &str, length: usize, smart: bool) -> String {
    let name = if !smart && name.len() >= length { &name[..length] } else { name };
    let mut slug = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_matches('-');
    if !smart || length == 0 || slug.len() <= length {
        return slug.to_owned();
    }
    slug[..slug[..=length].rfind('-').unwrap_or(length)].to_owned()
}
