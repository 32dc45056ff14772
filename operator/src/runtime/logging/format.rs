//! The form of a log line.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};
use tracing::{Event, Subscriber, field::Visit};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::Writer,
        time::{FormatTime as _, SystemTime},
    },
    registry::LookupSpan,
};

/// `{"level":"info","ts":"…","logger":"…","msg":"…",…}`, as KubeRay's JSON log has it.
pub(super) struct Json;

/// `TIME<tab>LEVEL<tab>logger<tab>message<tab>{…}`.
pub(super) struct Console;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (message, fields) = gather(context, event);
        let mut line = Map::new();
        line.insert("level".to_owned(), event.metadata().level().as_str().to_ascii_lowercase().into());
        line.insert("ts".to_owned(), now()?.into());
        line.insert("logger".to_owned(), event.metadata().target().into());
        line.insert("msg".to_owned(), message.into());
        // A field never hides what every line has.
        for (key, value) in fields {
            line.entry(key).or_insert(value);
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

impl<S, N> FormatEvent<S, N> for Console
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (message, fields) = gather(context, event);
        let metadata = event.metadata();
        write!(writer, "{}\t{}\t{}\t{message}", now()?, metadata.level(), metadata.target())?;
        if !fields.is_empty() {
            write!(writer, "\t{}", Value::Object(fields))?;
        }
        writeln!(writer)
    }
}

fn now() -> Result<String, fmt::Error> {
    let mut text = String::new();
    SystemTime.format_time(&mut Writer::new(&mut text))?;
    Ok(text)
}

/// The message, and the fields of the event and of what it happened in.
fn gather<S, N>(context: &FmtContext<'_, S, N>, event: &Event<'_>) -> (String, Map<String, Value>)
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    let mut fields = Map::new();
    for span in context.event_scope().into_iter().flat_map(tracing_subscriber::registry::Scope::from_root) {
        let extensions = span.extensions();
        let formatted = extensions.get::<FormattedFields<N>>().map(|formatted| formatted.fields.as_str()).unwrap_or_default();
        if let Ok(Value::Object(of_span)) = serde_json::from_str(formatted) {
            fields.extend(of_span);
        }
    }
    let mut gathered = Gathered { message: String::new(), fields };
    event.record(&mut gathered);
    (gathered.message, gathered.fields)
}

struct Gathered {
    message: String,
    fields: Map<String, Value>,
}

impl Gathered {
    fn add(&mut self, field: &tracing::field::Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Gathered {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &tracing::field::Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &tracing::field::Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &tracing::field::Field, value: f64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &tracing::field::Field, value: bool) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string cannot fail.
            let _ = write!(self.message, "{value:?}");
        } else {
            self.add(field, format!("{value:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt as _};

    use super::*;
    use crate::{config::Encoder, runtime::logging::sink};

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Buffer {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    fn logged(encoder: Encoder) -> String {
        let buffer = Buffer::default();
        let subscriber = tracing_subscriber::registry().with(vec![sink(encoder, buffer.clone())]);
        tracing::subscriber::with_default(subscriber, || {
            let _span = tracing::info_span!("reconcile", namespace = "a", name = "b").entered();
            tracing::warn!(count = 3, msg = "mine", "made \"it\"\nat last");
        });
        String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_json_line_has_level_time_logger_message_and_fields() {
        let text = logged(Encoder::Json);
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "warn");
        assert_eq!(line["msg"], "made \"it\"\nat last");
        assert_eq!((&line["namespace"], &line["name"], &line["count"]), (&"a".into(), &"b".into(), &3.into()));
        assert!(line["ts"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
        assert!(line["logger"].as_str().unwrap().starts_with("operator::"));
    }

    #[test]
    fn a_console_line_has_tabs() {
        let text = logged(Encoder::Console);
        let parts: Vec<&str> = text.trim_end().split('\t').collect();
        assert_eq!(parts[1], "WARN");
        assert!(parts[3].starts_with("made"), "{text}");
        assert!(text.contains("\"count\":3"), "{text}");
    }
}
