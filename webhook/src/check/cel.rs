//! The rules in the Common Expression Language that our definitions carry.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use cel::{Env, Program, Value as CelValue};
use serde_json::Value;
use shared::schema::{Rule, RuleEngine};

/// Compiles each expression once. The environment is made when the first rule is asked: most objects meet none.
#[derive(Default)]
pub(super) struct CelEngine {
    compiled: RefCell<Compiled>,
}

#[derive(Default)]
struct Compiled {
    environment: Option<Arc<Env>>,
    programs: HashMap<Box<str>, Option<Program>>,
}

impl CelEngine {
    fn evaluate(&self, expression: &str, this: &Value, old: Option<&Value>) -> Option<CelValue> {
        let mut compiled = self.compiled.borrow_mut();
        let environment = Arc::clone(compiled.environment.get_or_insert_with(|| Arc::new(Env::stdlib())));
        let program = compiled.programs.entry(expression.into()).or_insert_with(|| environment.compile(expression).ok()).as_ref()?;
        let mut context = cel::Context::with_env(environment);
        context.add_variable("self", this).ok()?;
        if let Some(old) = old {
            context.add_variable("oldSelf", old).ok()?;
        }
        program.execute(&context).ok()
    }
}

impl RuleEngine for CelEngine {
    /// A rule that has no answer (a field it asks for is missing, and the schema says so) counts as kept.
    fn broken(&self, rule: &Rule, this: &Value, old: Option<&Value>) -> Option<String> {
        if self.evaluate(&rule.expression, this, old) != Some(CelValue::Bool(false)) {
            return None;
        }
        let message = rule.message_expression.as_ref().and_then(|expression| match self.evaluate(expression, this, old) {
            Some(CelValue::String(text)) => Some(text.to_string()),
            _ => None,
        });
        Some(message.unwrap_or_else(|| rule.message.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::schema::Schema;

    use super::*;

    #[test]
    fn expressions_are_evaluated_on_json() {
        let schema = Schema::compile(&json!({"type": "object", "x-kubernetes-validations": [
            {"rule": "!has(self.a) || self.a in ['x', 'y']", "message": "a is x or y"},
            {"rule": "!has(self.n) || self.n >= 0", "messageExpression": "'n is ' + string(self.n)"},
            {"rule": "!has(oldSelf.a) || has(self.a)", "message": "a stays"},
            {"rule": "!has(self.l) || self.l.all(e, e.size() < 3)", "message": "short words"},
            {"rule": "!has(self.m) || self.m.matches('^[a-c]+$')", "message": "letters"},
        ]}));
        let engine = CelEngine::default();
        let broken = |new: Value, old: Option<Value>| -> Vec<String> {
            schema.check(&new, old.as_ref(), &engine).into_iter().map(|error| error.message).collect()
        };
        assert_eq!(broken(json!({}), None), [""; 0]);
        assert_eq!(broken(json!({"a": "x", "n": 1, "l": ["ab"], "m": "abc"}), None), [""; 0]);
        assert_eq!(broken(json!({"a": "z", "n": -1, "l": ["abc"], "m": "d"}), None), ["a is x or y", "n is -1", "short words", "letters"]);
        assert_eq!(broken(json!({}), Some(json!({"a": "x"}))), ["a stays"]);
        assert_eq!(broken(json!({"n": "no number"}), None), [""; 0], "no answer is no refusal");
    }
}
