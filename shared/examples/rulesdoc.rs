//! Prints docs/rules.md: every rule of the webhook, of `check` and of the operator.

fn main() {
    print!("{}", shared::validation::rules_markdown());
}
