//! Argo CD's own functions, conversions, and the functions whose result nobody can predict.

use gotmpl::Value;

use super::{Registry, arity, fail, str, whole};
use crate::gitops::{params, yaml};

/// Each call gives another result, so an Application that uses one cannot be predicted.
const UNPREDICTABLE: &[&str] = &[
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
        Ok(text.map_err(|error| fail(error.to_string()))?.trim_end_matches('\n').into())
    });
    for name in ["fromYaml", "fromYamlArray", "fromJson"] {
        functions.text(name, move |[text]| match yaml::document("text", text.as_bytes()) {
            Ok(document) => Ok(params::value(&document.value)),
            Err(error) => Err(fail(error.to_string())),
        });
    }
    for name in ["toJson", "mustToJson"] {
        functions.add(name, |arguments| {
            // As Go writes JSON, fit for a page.
            let text = params::json(&arity::<1>(arguments)?[0]).to_string();
            Ok(text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026").into())
        });
    }
    functions.add("toRawJson", |arguments| Ok(params::json(&arity::<1>(arguments)?[0]).to_string().into()));
    functions.add("toPrettyJson", |arguments| {
        let text = serde_json::to_string_pretty(&params::json(&arity::<1>(arguments)?[0]));
        Ok(text.map_err(|error| fail(error.to_string()))?.into())
    });
    functions.text("fail", |[message]| Err(fail(message)));
    for name in ["kindOf", "typeOf"] {
        functions.add(name, |arguments| Ok(kind(&arity::<1>(arguments)?[0]).into()));
    }
    functions.add("kindIs", |arguments| {
        let [wanted, value] = arity(arguments)?;
        Ok(Value::Bool(str(wanted)? == kind(value)))
    });
    for name in UNPREDICTABLE {
        functions.add(name, |_| Err(fail("gives another result at each run, so that it cannot be predicted")));
    }
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
