//! From a TOML tree to typed tables, collecting every fault on the way.
//!
//! One declaration per table (see [`table!`]) makes the struct, its reader, its list of keys and its JSON
//! Schema, so that these can't drift apart.

use std::{collections::BTreeMap, ops::Range};

use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

use crate::{
    log::{Log, Problem, shown},
    nearest::nearest_key,
};

/// The longest list. What lists mean together takes the product of their lengths.
const MAX_ITEMS: usize = 1_000;

/// A value of the file, with where it stands.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    /// In bytes.
    pub(crate) span: Range<usize>,
    /// Such as `policy[0].idle.after`.
    pub(crate) path: String,
}

/// A part of the TOML tree, with where it stands.
pub(crate) struct Node<'a> {
    pub(crate) value: &'a DeValue<'a>,
    pub(crate) span: Range<usize>,
    pub(crate) path: String,
}

/// What can be read from a part of the file.
pub(crate) trait Read: Sized {
    /// `None`: the reason is in `log`.
    fn read(node: &Node<'_>, log: &mut Log<'_>) -> Option<Self>;
    /// The JSON Schema of what [`Read::read`] takes.
    fn schema() -> Value;
    /// The full names of the keys below `prefix`.
    fn keys(prefix: &str, out: &mut Vec<String>) {
        out.push(prefix.to_owned());
    }
}

/// A value without keys of its own.
pub(crate) trait Scalar: Sized {
    /// What is expected, for people: "a duration with units, such as `30m`".
    const EXPECTED: &'static str;
    fn parse(value: &DeValue<'_>) -> Result<Self, Problem>;
    fn schema() -> Value;
}

impl<T: Scalar> Read for T {
    fn read(node: &Node<'_>, log: &mut Log<'_>) -> Option<Self> {
        T::parse(node.value).map_err(|problem| log.error(&node.path, &node.span, problem)).ok()
    }

    fn schema() -> Value {
        let mut schema = T::schema();
        schema["description"] = json!(format!("expects {}", T::EXPECTED));
        schema
    }
}

impl<T: Read> Read for Vec<At<T>> {
    fn read(node: &Node<'_>, log: &mut Log<'_>) -> Option<Self> {
        let DeValue::Array(items) = node.value else {
            log.error(&node.path, &node.span, Problem::expected("a list", node.value));
            return None;
        };
        if items.len() > MAX_ITEMS {
            let problem = format!("a list of {}; at most {MAX_ITEMS} are read", items.len());
            log.error(&node.path, &node.span, Problem::new(problem));
            return None;
        }
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let node = Node { value: item.get_ref(), span: item.span(), path: format!("{}[{index}]", node.path) };
            read.extend(at(&node, log));
        }
        Some(read)
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema(), "maxItems": MAX_ITEMS })
    }

    fn keys(prefix: &str, out: &mut Vec<String>) {
        T::keys(prefix, out);
    }
}

impl<T: Read> Read for BTreeMap<String, At<T>> {
    fn read(node: &Node<'_>, log: &mut Log<'_>) -> Option<Self> {
        let table = as_table(node, log)?;
        let mut read = Self::new();
        for (key, value) in table {
            let path = join(&node.path, key.get_ref());
            if key.get_ref().is_empty() {
                log.error(&path, &key.span(), Problem::new("a label without a name"));
                continue;
            }
            if let Some(value) = at(&Node { value: value.get_ref(), span: value.span(), path }, log) {
                read.insert(key.get_ref().to_string(), value);
            }
        }
        Some(read)
    }

    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

/// Reads `node` and keeps where it stands.
pub(crate) fn at<T: Read>(node: &Node<'_>, log: &mut Log<'_>) -> Option<At<T>> {
    T::read(node, log).map(|value| At { value, span: node.span.clone(), path: node.path.clone() })
}

/// The table that `node` should be.
pub(crate) fn as_table<'a>(node: &Node<'a>, log: &mut Log<'_>) -> Option<&'a DeTable<'a>> {
    if let DeValue::Table(table) = node.value {
        return Some(table);
    }
    log.error(&node.path, &node.span, Problem::expected("a table", node.value));
    None
}

pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// One key of a table.
pub(crate) struct Column {
    field: &'static str,
    about: &'static str,
    required: bool,
    schema: fn() -> Value,
    pub(crate) keys: fn(&str, &mut Vec<String>),
}

impl Column {
    /// `required` has an item where the key must be there.
    pub(crate) const fn of<T: Read>(field: &'static str, about: &'static str, required: &[&str]) -> Self {
        Self { field, about, required: !required.is_empty(), schema: T::schema, keys: T::keys }
    }

    /// The name as the file has it.
    pub(crate) fn name(&self) -> &'static str {
        plain(self.field)
    }
}

/// A field's name without what makes a Rust keyword of it a name.
fn plain(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// The schema of a table with `columns` and no other.
pub(crate) fn table_schema(columns: &[Column]) -> Value {
    let described = |column: &Column| {
        let mut schema = (column.schema)();
        let expects = schema["description"].as_str().map(|text| format!("; {text}")).unwrap_or_default();
        schema["description"] = json!(format!("{}{expects}", column.about.trim()));
        (column.name().to_owned(), schema)
    };
    let properties: serde_json::Map<_, _> = columns.iter().map(described).collect();
    let required: Vec<_> = columns.iter().filter(|column| column.required).map(Column::name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The fields of a table, taken one by one.
pub(crate) struct Fields<'a> {
    table: &'a DeTable<'a>,
    path: String,
}

impl<'a> Fields<'a> {
    /// The table that `node` should be, with a fault for every key that is missing or not in `columns`.
    pub(crate) fn of(node: &Node<'a>, columns: &[Column], log: &mut Log<'_>) -> Option<Self> {
        let table = as_table(node, log)?;
        for column in columns.iter().filter(|column| column.required && !table.contains_key(column.name())) {
            let name = column.name();
            let schema = (column.schema)();
            let mut problem = Problem::new(format!("`{name}` is missing"));
            problem.expected = schema["description"].as_str().map(|text| text.replacen("expects ", "", 1));
            log.error(&join(&node.path, name), &node.span, problem);
        }
        deny_unknown(node, table, columns, log);
        Some(Self { table, path: node.path.clone() })
    }

    /// Reads `field`, where it is there.
    pub(crate) fn take<T: Read>(&self, field: &'static str, log: &mut Log<'_>) -> Option<At<T>> {
        let key = plain(field);
        let value = self.table.get(key)?;
        at(&Node { value: value.get_ref(), span: value.span(), path: join(&self.path, key) }, log)
    }
}

fn deny_unknown(node: &Node<'_>, table: &DeTable<'_>, columns: &[Column], log: &mut Log<'_>) {
    let is_known = |key: &str| columns.iter().any(|column| column.name() == key);
    let mut unknown = table.keys().filter(|key| !is_known(key.get_ref())).peekable();
    if unknown.peek().is_none() {
        return;
    }
    let below = |column: &Column| {
        let mut below = Vec::new();
        (column.keys)(column.name(), &mut below);
        below
    };
    // A key with nothing below it is there only to be refused by its name.
    let known: Vec<_> = columns.iter().filter(|column| !below(column).is_empty()).map(Column::name).collect();
    let candidates: Vec<_> = columns.iter().flat_map(below).collect();
    for key in unknown {
        let name = key.get_ref();
        let mut problem = Problem::new(format!("unknown key {}", shown(name)));
        // The search for a name is the dear part, and nobody sees it beyond the limit.
        if !log.is_full() {
            problem = problem.wanting(format!("one of {}", listed(&known))).meant(nearest_key(name, &candidates));
        }
        log.error(&join(&node.path, name), &key.span(), problem);
    }
}

/// "`a`, `b`, `c`".
pub(crate) fn listed<T: AsRef<str>>(words: &[T]) -> String {
    words.iter().map(|word| format!("`{}`", word.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Declares a table of the file: its keys (`= required` where one must be there), each with its description.
/// The keys under `unkept` are read for their faults alone. Every other one has a field, and the compiler
/// warns of a field that nothing uses.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $name:ident { $( $(#[doc = $doc:literal])+ $field:ident : $type:ty $(= $required:ident)? ),* $(,)? }
        $( unkept { $( $(#[doc = $unkept_doc:literal])+ $unkept:ident : $unkept_type:ty $(= $must:ident)? ),* $(,)? } )?
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            $( $(#[doc = $doc])+ pub(crate) $field: Option<$crate::read::At<$type>>, )*
        }

        impl $name {
            /// Name, description, schema, list of names below, and whether it must be there.
            const COLUMNS: &[$crate::read::Column] = &[
                $( $crate::read::Column::of::<$type>(stringify!($field), concat!($($doc),+), &[$(stringify!($required))?]), )*
                $( $(
                    $crate::read::Column::of::<$unkept_type>(
                        stringify!($unkept), concat!($($unkept_doc),+), &[$(stringify!($must))?],
                    ),
                )* )?
            ];
        }

        impl $crate::read::Read for $name {
            fn read(node: &$crate::read::Node<'_>, log: &mut $crate::log::Log<'_>) -> Option<Self> {
                let fields = $crate::read::Fields::of(node, Self::COLUMNS, log)?;
                $( $( let _: Option<$crate::read::At<$unkept_type>> = fields.take(stringify!($unkept), log); )* )?
                Some(Self { $( $field: fields.take(stringify!($field), log), )* })
            }

            fn schema() -> serde_json::Value {
                $crate::read::table_schema(Self::COLUMNS)
            }

            fn keys(prefix: &str, out: &mut Vec<String>) {
                for column in Self::COLUMNS {
                    (column.keys)(&$crate::read::join(prefix, column.name()), out);
                }
            }
        }
    };
}
pub(crate) use table;
