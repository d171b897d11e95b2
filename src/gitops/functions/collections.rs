//! sprig's functions of lists, maps and defaults.

use std::sync::Arc;

use gotmpl::Value;

use super::{Registry, arity, fail, int, list, map, str, whole};
use crate::gitops::params;

pub(super) fn register(functions: &mut Registry) {
    functions.add("default", |arguments| match arguments {
        [default] => Ok(default.clone()),
        [default, given] => Ok(if given.is_truthy() { given.clone() } else { default.clone() }),
        _ => Err(fail(format!("takes 2 arguments, not {}", arguments.len()))),
    });
    functions.add("empty", |arguments| Ok(Value::Bool(!arity::<1>(arguments)?[0].is_truthy())));
    functions.add("coalesce", |arguments| Ok(arguments.iter().find(|v| v.is_truthy()).cloned().unwrap_or(Value::Nil)));
    functions.add("all", |arguments| Ok(Value::Bool(arguments.iter().all(Value::is_truthy))));
    functions.add("any", |arguments| Ok(Value::Bool(arguments.iter().any(Value::is_truthy))));
    functions.add("ternary", |arguments| match arity(arguments)? {
        [yes, no, Value::Bool(flag)] => Ok(if *flag { yes.clone() } else { no.clone() }),
        [_, _, other] => Err(fail(format!("wants true or false, not {}", other.type_name()))),
    });
    for name in ["list", "tuple"] {
        functions.add(name, |arguments| Ok(Value::from(arguments.to_vec())));
    }
    functions.add("dict", |arguments| {
        let pairs = arguments
            .chunks(2)
            .map(|pair| (Arc::from(params::text(&pair[0])), pair.get(1).cloned().unwrap_or_else(|| "".into())));
        Ok(Value::from(pairs.collect::<params::Map>()))
    });
    functions.add("get", |arguments| {
        let [fields, key] = arity(arguments)?;
        Ok(map(fields)?.get(str(key)?).cloned().unwrap_or_else(|| "".into()))
    });
    functions.add("hasKey", |arguments| {
        let [fields, key] = arity(arguments)?;
        Ok(Value::Bool(map(fields)?.contains_key(str(key)?)))
    });
    // Go gives keys and values in random order; sorted is one of these orders.
    functions.add("keys", |arguments| {
        let mut keys = Vec::new();
        for argument in arguments {
            keys.extend(map(argument)?.keys().cloned().map(Value::from));
        }
        Ok(Value::from(keys))
    });
    functions.add("values", |arguments| {
        Ok(Value::from(map(&arity::<1>(arguments)?[0])?.values().cloned().collect::<Vec<_>>()))
    });
    functions.add("set", |arguments| {
        let [fields, key, value] = arity(arguments)?;
        let mut fields = (**map(fields)?).clone();
        fields.insert(str(key)?.into(), value.clone());
        Ok(Value::from(fields))
    });
    functions.add("unset", |arguments| {
        let [fields, key] = arity(arguments)?;
        let mut fields = (**map(fields)?).clone();
        fields.remove(str(key)?);
        Ok(Value::from(fields))
    });
    functions.add("merge", |arguments| {
        // The first wins.
        let mut merged = params::Map::new();
        for argument in arguments.iter().rev() {
            merged = params::merged(&merged, map(argument)?);
        }
        Ok(Value::from(merged))
    });
    functions.add("mergeOverwrite", |arguments| {
        // The last wins.
        let mut merged = params::Map::new();
        for argument in arguments {
            merged = params::merged(&merged, map(argument)?);
        }
        Ok(Value::from(merged))
    });
    functions.add("pluck", |arguments| {
        let [key, maps @ ..] = arguments else { return Err(fail("takes a key and maps")) };
        let mut found = Vec::new();
        for fields in maps {
            found.extend(map(fields)?.get(str(key)?).cloned());
        }
        Ok(Value::from(found))
    });
    functions.add("deepCopy", |arguments| Ok(arity::<1>(arguments)?[0].clone()));
    functions.add("deepEqual", |arguments| {
        let [a, b] = arity(arguments)?;
        Ok(Value::Bool(a == b))
    });
    functions.add("pick", |arguments| select(arguments, true));
    functions.add("omit", |arguments| select(arguments, false));
    functions.add("dig", |arguments| {
        let [keys @ .., default, fields] = arguments else { return Err(fail("takes keys, a default and a map")) };
        let mut found = fields.clone();
        for key in keys {
            found = match map(&found)?.get(str(key)?) {
                Some(below) => below.clone(),
                None => return Ok(default.clone()),
            };
        }
        Ok(found)
    });
    lists(functions);
}

fn lists(functions: &mut Registry) {
    functions.add("has", |arguments| {
        let [item, items] = arity(arguments)?;
        Ok(Value::Bool(!matches!(items, Value::Nil) && list(items)?.contains(item)))
    });
    functions.add("first", |arguments| Ok(list(&arity::<1>(arguments)?[0])?.first().cloned().unwrap_or(Value::Nil)));
    functions.add("last", |arguments| Ok(list(&arity::<1>(arguments)?[0])?.last().cloned().unwrap_or(Value::Nil)));
    functions.add("rest", |arguments| {
        Ok(Value::from(list(&arity::<1>(arguments)?[0])?.iter().skip(1).cloned().collect::<Vec<_>>()))
    });
    functions.add("initial", |arguments| {
        let items = list(&arity::<1>(arguments)?[0])?;
        Ok(Value::from(items[..items.len().saturating_sub(1)].to_vec()))
    });
    for name in ["append", "push"] {
        functions.add(name, |arguments| {
            let [items, item] = arity(arguments)?;
            Ok(Value::from([list(items)?, std::slice::from_ref(item)].concat()))
        });
    }
    functions.add("prepend", |arguments| {
        let [items, item] = arity(arguments)?;
        Ok(Value::from([std::slice::from_ref(item), list(items)?].concat()))
    });
    functions.add("concat", |arguments| {
        let lists = arguments.iter().map(list).collect::<gotmpl::Result<Vec<_>>>()?;
        Ok(Value::from(lists.concat()))
    });
    functions.add("uniq", |arguments| {
        let mut seen = Vec::new();
        for item in list(&arity::<1>(arguments)?[0])? {
            if !seen.contains(item) {
                seen.push(item.clone());
            }
        }
        Ok(Value::from(seen))
    });
    functions.add("without", |arguments| {
        let [items, unwanted @ ..] = arguments else { return Err(fail("takes a list and what to leave out")) };
        Ok(Value::from(list(items)?.iter().filter(|item| !unwanted.contains(item)).cloned().collect::<Vec<_>>()))
    });
    functions.add("compact", |arguments| {
        let items = list(&arity::<1>(arguments)?[0])?;
        Ok(Value::from(items.iter().filter(|item| item.is_truthy()).cloned().collect::<Vec<_>>()))
    });
    functions.add("reverse", |arguments| {
        Ok(Value::from(list(&arity::<1>(arguments)?[0])?.iter().rev().cloned().collect::<Vec<_>>()))
    });
    // Takes the place of Go's own `slice`, which would slice texts, too.
    functions.add("slice", |arguments| {
        let [items, bounds @ ..] = arguments else { return Err(fail("takes a list and bounds")) };
        let items = list(items)?;
        let bound = |at: usize, default: usize| -> gotmpl::Result<usize> {
            let Some(value) = bounds.get(at) else { return Ok(default) };
            usize::try_from(int(value)?).map_err(|_| fail("a bound is negative"))
        };
        let sliced = items.get(bound(0, 0)?..bound(1, items.len())?);
        sliced.map(|items| Value::from(items.to_vec())).ok_or_else(|| fail("a bound is out of range"))
    });
    functions.add("chunk", |arguments| {
        let [size, items] = arity(arguments)?;
        let size = usize::try_from(whole(size)?).ok().filter(|size| *size > 0).ok_or_else(|| fail("wants a size"))?;
        Ok(Value::from(list(items)?.chunks(size).map(|chunk| Value::from(chunk.to_vec())).collect::<Vec<_>>()))
    });
    functions.add("until", |arguments| match whole(&arity::<1>(arguments)?[0])? {
        count @ 0..=10_000 => Ok(Value::from((0..count).map(Value::Int).collect::<Vec<_>>())),
        count => Err(fail(format!("{count} is out of range"))),
    });
}

fn select(arguments: &[Value], keep: bool) -> gotmpl::Result<Value> {
    let [fields, keys @ ..] = arguments else { return Err(fail("takes a map and keys")) };
    let keys = keys.iter().map(str).collect::<gotmpl::Result<Vec<_>>>()?;
    let kept = map(fields)?.iter().filter(|(key, _)| keys.contains(&&***key) == keep);
    Ok(Value::from(kept.map(|(key, value)| (key.clone(), value.clone())).collect::<params::Map>()))
}
