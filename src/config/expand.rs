//! Variables in the entries of servers, in all the ways in which clients write them.

use super::server::sounds_secret;
use crate::secret::Hidden;

/// Which variables there are, and how they are written.
#[derive(Clone, Copy)]
pub struct Variables<'a> {
    pub own: &'a dyn Fn(&str) -> Option<String>,
    /// Whether `$NAME` is one too.
    pub bare: bool,
}

/// Puts the values of variables into texts, and remembers what it met.
pub struct Expander<'a> {
    variables: Variables<'a>,
    /// Variables that have no value.
    pub unset: Vec<String>,
    /// The values of those whose names say that they are secret.
    pub secrets: Vec<Hidden>,
}

impl<'a> Expander<'a> {
    pub fn new(variables: Variables<'a>) -> Self {
        Self {
            variables,
            unset: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// A variable of hotcell's own environment.
    pub fn own(&self, name: &str) -> Option<Hidden> {
        (self.variables.own)(name).map(|value| Hidden::new(&value))
    }

    /// `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `{env:NAME}` are replaced; so is `$NAME` where that is usual.
    pub fn expand(&mut self, text: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            let (before, here) = rest.split_at(at);
            expanded += before;
            let (inside, after) = match braced(here) {
                Some(found) => found,
                None => match bare(here).filter(|_| self.variables.bare) {
                    Some(found) => found,
                    None => {
                        expanded += &here[..1];
                        rest = &here[1..];
                        continue;
                    }
                },
            };
            expanded += &self.value(inside)?;
            rest = after;
        }
        Ok(expanded + rest)
    }

    fn value(&mut self, inside: &str) -> Result<String, String> {
        let name = inside.strip_prefix("env:").unwrap_or(inside);
        let (name, default) = match name.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (name, None),
        };
        if !is_name(name) {
            let what = inside.escape_debug();
            return Err(format!(
                "`${{{what}}}` is known only to the program whose file this is"
            ));
        }
        // The home, as some editors call it.
        let own = match name {
            "userHome" => "HOME",
            name => name,
        };
        match ((self.variables.own)(own), default) {
            (Some(value), _) => {
                if sounds_secret(name) {
                    self.secrets.push(Hidden::new(&value));
                }
                Ok(value)
            }
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => {
                self.unset.push(name.to_owned());
                Ok(String::new())
            }
        }
    }
}

/// What is between the braces of `${...}` or `{env:...}`, and what comes after.
fn braced(text: &str) -> Option<(&str, &str)> {
    let inside = match text.strip_prefix("${") {
        Some(inside) => inside,
        None => text.strip_prefix('{').filter(|it| it.starts_with("env:"))?,
    };
    inside.split_once('}')
}

/// The name of `$NAME`, and what comes after.
fn bare(text: &str) -> Option<(&str, &str)> {
    let name = text.strip_prefix('$')?;
    let end = name.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let (name, after) = name.split_at(end.unwrap_or(name.len()));
    is_name(name).then_some((name, after))
}

fn is_name(text: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
    !text.is_empty() && text.chars().all(plain) && !text.starts_with(|it: char| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_the_clients_write_them() {
        let own = |name: &str| {
            ["A", "HOME", "MY_TOKEN"]
                .contains(&name)
                .then(|| format!("<{name}>"))
        };
        let expand = |text: &str, bare: bool| {
            let mut expander = Expander::new(Variables { own: &own, bare });
            let text = expander.expand(text);
            (text, expander.unset, expander.secrets.len())
        };
        for (text, expected) in [
            ("${userHome}/x", "<HOME>/x"),
            ("a${A}b${env:A}{env:A}", "a<A>b<A><A>"),
            ("${B:-usual}${A:-x}${B:-}", "usual<A>"),
            ("$A {A} ${A", "$A {A} ${A"),
            ("é${A}$", "é<A>$"),
        ] {
            assert_eq!(expand(text, false).0.as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(expand("$A-$A_$1$", true).0.as_deref(), Ok("<A>-$1$"));
        assert_eq!(
            expand("${B}${MY_TOKEN}", false),
            (Ok("<MY_TOKEN>".to_owned()), vec!["B".to_owned()], 1)
        );
        for foreign in ["${input:key}", "${workspaceFolder}/x", "${}", "${a b}"] {
            let known = foreign == "${workspaceFolder}/x";
            assert_eq!(expand(foreign, false).0.is_ok(), known, "{foreign}");
        }
    }
}
