//! A SAM template, read and resolved as far as it can be without an account.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value, json};

/// Reads YAML; CloudFormation's tags become its functions (`!Ref x` is `{"Ref": "x"}`).
pub(crate) fn yaml(text: &str) -> Value {
    let documents = Yaml::load_from_str(text).unwrap();
    let [document] = &documents[..] else { panic!("{} documents", documents.len()) };
    plain(document)
}

fn plain(node: &Yaml<'_>) -> Value {
    match node {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => json!(value),
        Yaml::Value(Scalar::Integer(value)) => json!(value),
        Yaml::Value(Scalar::FloatingPoint(value)) => json!(value.into_inner()),
        Yaml::Value(Scalar::String(value)) => json!(value),
        Yaml::Representation(text, ..) => json!(text),
        Yaml::Sequence(nodes) => nodes.iter().map(plain).collect(),
        Yaml::Mapping(entries) => {
            let entry = |(name, value): (&Yaml<'_>, &Yaml<'_>)| match plain(name) {
                Value::String(name) => (name, plain(value)),
                other => panic!("the key {other} is no text: put it in quotes"),
            };
            Value::Object(entries.iter().map(entry).collect())
        }
        Yaml::Tagged(tag, inner) => function(&tag.suffix, plain(inner)),
        Yaml::Alias(_) | Yaml::BadValue => panic!("CloudFormation takes neither aliases nor what is no YAML"),
    }
}

fn function(tag: &str, argument: Value) -> Value {
    match (tag, argument) {
        ("Ref", name) => json!({ "Ref": name }),
        ("GetAtt", Value::String(path)) => {
            let (resource, attribute) = path.split_once('.').unwrap();
            json!({ "Fn::GetAtt": [resource, attribute] })
        }
        (other, argument) => json!({ format!("Fn::{other}"): argument }),
    }
}

/// A template, under some parameters.
pub(crate) struct Stack {
    template: Value,
    parameters: BTreeMap<String, Value>,
}

/// What `AWS::NoValue` becomes until it is dropped.
const NOTHING: &str = "<AWS::NoValue>";

impl Stack {
    /// With the defaults of its parameters, but for `chosen`.
    pub(crate) fn new(text: &str, chosen: &[(&str, Value)]) -> Self {
        let template = yaml(text);
        let declared = template["Parameters"].as_object().unwrap();
        let mut parameters: BTreeMap<_, _> = declared
            .iter()
            .map(|(name, declared)| {
                let default = &declared["Default"];
                let listed = declared["Type"] == "CommaDelimitedList";
                let list = || default.as_str().unwrap_or_default().split(',').collect();
                (name.clone(), if listed { list() } else { default.clone() })
            })
            .collect();
        for (name, value) in chosen {
            assert!(parameters.insert((*name).to_owned(), value.clone()).is_some(), "no parameter is called {name}");
        }
        Self { template, parameters }
    }

    /// What is declared of a parameter.
    pub(crate) fn declared(&self, parameter: &str) -> &Value {
        &self.template["Parameters"][parameter]
    }

    /// Every resource that there is under these parameters, resolved. `<Name>` and `<Name.Attribute>` are what only
    /// an account could tell.
    pub(crate) fn resources(&self) -> BTreeMap<String, Value> {
        let declared = self.template["Resources"].as_object().unwrap();
        let there = |resource: &Value| resource["Condition"].as_str().is_none_or(|name| self.condition(name));
        let resolved = |(name, resource): (&String, &Value)| (name.clone(), self.resolve(resource));
        declared.iter().filter(|(_, resource)| there(resource)).map(resolved).collect()
    }

    /// Those of one type.
    pub(crate) fn of(&self, kind: &str) -> BTreeMap<String, Value> {
        let mut resources = self.resources();
        resources.retain(|_, resource| resource["Type"] == kind);
        resources
    }

    /// The default settings of every function, which SAM merges into each.
    pub(crate) fn globals(&self) -> Value {
        self.resolve(&self.template["Globals"]["Function"])
    }

    fn condition(&self, name: &str) -> bool {
        let condition = self.template["Conditions"].get(name).unwrap_or_else(|| panic!("no condition {name}"));
        self.resolve(condition).as_bool().unwrap()
    }

    fn resolve(&self, value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.resolve(item)).filter(|item| item != NOTHING).collect(),
            Value::Object(entries) => {
                if let [(name, argument)] = &entries.iter().collect::<Vec<_>>()[..]
                    && (name.starts_with("Fn::") || *name == "Ref")
                {
                    return self.call(name, argument);
                }
                let entries = entries.iter().map(|(name, value)| (name.clone(), self.resolve(value)));
                Value::Object(entries.filter(|(_, value)| value != NOTHING).collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    fn call(&self, name: &str, argument: &Value) -> Value {
        match name {
            "Ref" => self.reference(argument.as_str().unwrap()),
            "Fn::GetAtt" => {
                let resource = argument[0].as_str().unwrap();
                self.reference(resource);
                json!(format!("<{resource}.{}>", argument[1].as_str().unwrap()))
            }
            "Fn::If" => {
                let chosen = if self.condition(argument[0].as_str().unwrap()) { 1 } else { 2 };
                self.resolve(&argument[chosen])
            }
            "Fn::Equals" => {
                let text = |value: &Value| self.resolve(value).to_string().replace('"', "");
                json!(text(&argument[0]) == text(&argument[1]))
            }
            "Fn::Not" => json!(!self.resolve(&argument[0]).as_bool().unwrap()),
            "Fn::Join" => {
                let items = self.resolve(&argument[1]);
                let items: Vec<_> = items.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect();
                json!(items.join(argument[0].as_str().unwrap()))
            }
            "Fn::FindInMap" => {
                let [map, row, column] = [0, 1, 2].map(|at| self.resolve(&argument[at]));
                let of = |value: &Value| value.as_str().unwrap().to_owned();
                self.template["Mappings"][of(&map)][of(&row)][of(&column)].clone()
            }
            "Fn::Sub" => json!(self.substitute(argument.as_str().unwrap())),
            other => panic!("`{other}` is not read here yet"),
        }
    }

    fn reference(&self, name: &str) -> Value {
        let known = self.template["Resources"].get(name).is_some() || name.starts_with("AWS::");
        match self.parameters.get(name) {
            Some(value) => value.clone(),
            None if known => json!(format!("<{name}>")),
            None => panic!("`{name}` is neither a parameter nor a resource"),
        }
    }

    fn substitute(&self, text: &str) -> String {
        let mut parts = text.split("${");
        let mut told = parts.next().unwrap().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap();
            let value = match name.split_once('.') {
                Some((resource, attribute)) => self.call("Fn::GetAtt", &json!([resource, attribute])),
                None => self.reference(name),
            };
            told += value.as_str().unwrap();
            told += rest;
        }
        told
    }
}

#[test]
fn tags_and_parameters_are_resolved() {
    let text = "
Parameters:
  Name: { Type: String, Default: a }
  Some: { Type: CommaDelimitedList, Default: '' }
Mappings: { Rows: { a: { Size: 3 } } }
Conditions:
  HasSome: !Not [!Equals [!Join ['', !Ref Some], '']]
Resources:
  Box:
    Type: T
    Properties: { Size: !FindInMap [Rows, !Ref Name, Size], Path: !Sub '${Name}/${Box.Arn}', List: [!If [HasSome, 1, !Ref AWS::NoValue], 2] }
  Other: { Type: T, Condition: HasSome }
";
    let resolved = Stack::new(text, &[]).resources();
    assert_eq!(resolved.len(), 1);
    assert_eq!(resolved["Box"]["Properties"], json!({ "Size": 3, "Path": "a/<Box.Arn>", "List": [2] }));
    let resolved = Stack::new(text, &[("Some", json!(["x"])), ("Name", json!("a"))]).resources();
    assert_eq!(resolved.len(), 2);
    assert_eq!(resolved["Box"]["Properties"]["List"], json!([1, 2]));
}
