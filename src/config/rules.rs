//! What programs may do with a server: which tools, and how much of them in one run.

use std::time::Duration;

/// Per server. Nothing is decided where nothing is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    pub allow: Vec<Pattern>,
    pub ask: Vec<Pattern>,
    pub deny: Vec<Pattern>,
    /// Calls in one run.
    pub calls: Option<u64>,
    /// Bytes of arguments and results in one run.
    pub bytes: Option<u64>,
    /// How long one call may take.
    pub timeout: Option<Duration>,
    /// None: as for all servers.
    pub redact: Option<Redaction>,
}

/// Personal data in whose place programs get tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Redaction {
    pub email: bool,
    pub phone: bool,
    pub card: bool,
}

impl Redaction {
    pub const ALL: Self = Self {
        email: true,
        phone: true,
        card: true,
    };

    /// These kinds; none if there is one that is not known.
    pub fn of(kinds: &[String]) -> Option<Self> {
        let mut redaction = Self::default();
        for kind in kinds {
            match kind.as_str() {
                "email" => redaction.email = true,
                "phone" => redaction.phone = true,
                "card" => redaction.card = true,
                _ => return None,
            }
        }
        Some(redaction)
    }
}

/// What is to be done about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    Allow,
    /// The user must agree to it.
    Ask,
    /// `deny` names it.
    Deny,
    /// `allow` is there, and does not name it.
    NotAllowed,
}

/// The name of a tool, in which `*` stands for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Rules {
    /// Whether `ask` has this name to the letter, and there is no `allow`.
    pub fn asks_for_that_alone(&self, tool: &str) -> bool {
        self.allow.is_empty() && self.ask.iter().any(|it| it.0 == tool)
    }

    /// `deny` comes before `allow`, and `allow` before `ask`. Where there is an `allow`, what nothing names is not allowed.
    pub fn judge(&self, tool: &str) -> Ruling {
        let named = |patterns: &[Pattern]| patterns.iter().any(|it| it.matches(tool));
        match () {
            () if named(&self.deny) => Ruling::Deny,
            () if named(&self.allow) => Ruling::Allow,
            () if named(&self.ask) => Ruling::Ask,
            () if self.allow.is_empty() => Ruling::Allow,
            () => Ruling::NotAllowed,
        }
    }
}

impl Pattern {
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else {
            return false;
        };
        let mut parts: Vec<&str> = parts.collect();
        let Some(last) = parts.pop() else {
            return rest.is_empty();
        };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(list: &[&str]) -> Vec<Pattern> {
        list.iter().map(|it| Pattern::new(it)).collect()
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, fits) in [
            ("get", "get", true),
            ("get", "get_issue", false),
            ("get_*", "get_issue", true),
            ("get_*", "get_", true),
            ("get_*", "forget_", false),
            ("*_issue", "get_issue", true),
            ("*", "", true),
            ("a*b*c", "a_b_b_c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("", "", true),
        ] {
            assert_eq!(
                Pattern::new(pattern).matches(name),
                fits,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn deny_comes_before_allow_and_allow_before_ask() {
        let rules = Rules {
            allow: patterns(&["get_*", "create_issue"]),
            ask: patterns(&["create_*"]),
            deny: patterns(&["*_secret"]),
            ..Rules::default()
        };
        for (tool, ruling) in [
            ("get_issue", Ruling::Allow),
            ("get_secret", Ruling::Deny),
            ("create_issue", Ruling::Allow),
            ("create_label", Ruling::Ask),
            ("delete_all", Ruling::NotAllowed),
        ] {
            assert_eq!(rules.judge(tool), ruling, "{tool}");
        }
        assert_eq!(Rules::default().judge("anything"), Ruling::Allow);
    }
}
