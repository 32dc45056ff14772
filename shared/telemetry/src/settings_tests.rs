use super::*;

fn read_from(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
    let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    read("kuberay-operator", "1.0", find)
}

/// With an endpoint, so that traces are on.
fn on(variables: &[(&str, &str)]) -> Settings {
    let all: Vec<_> = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")].into_iter().chain(variables.iter().copied()).collect();
    read_from(&all).expect("usable").expect("on")
}

#[test]
fn nobody_asks_for_traces() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    for variables in [
        &[][..],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
        &[("OTEL_TRACES_SAMPLER", "always_on"), ("OTEL_SERVICE_NAME", "x")],
        &[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://collector:4318")],
        &[endpoint, ("OTEL_SDK_DISABLED", "True")],
        &[endpoint, ("OTEL_TRACES_EXPORTER", "none")],
        // Switched off is switched off, whatever else is wrong.
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense"), ("OTEL_SDK_DISABLED", "true")],
    ] {
        assert_eq!(read_from(variables), Ok(None), "{variables:?}");
    }
}

#[test]
fn the_address_is_that_of_traces_or_below_that_of_all_signals() {
    for (variable, value, wanted) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318", "http://collector:4318/v1/traces"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318/", "https://collector:4318/v1/traces"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://gate/otlp/", "http://gate/otlp/v1/traces"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[::1]:4318", "http://[::1]:4318/v1/traces"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:4318/in", "http://collector:4318/in"),
    ] {
        let settings = read_from(&[(variable, value)]).expect("usable").expect("on");
        assert_eq!((settings.endpoint.to_string().as_str(), settings.remarks), (wanted, Vec::new()), "{variable}={value}");
    }
    let both = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a/t"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b")];
    assert_eq!(read_from(&both).expect("usable").expect("on").endpoint, "http://a/t");
}

#[test]
fn what_cannot_be_followed_is_said_in_a_sentence() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    for (variables, wanted) in [
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")][..], "OTEL_EXPORTER_OTLP_ENDPOINT is \"collector:4318\""),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://collector:4317")], "write http://HOST:PORT"),
        (&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http:// x")], "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is"),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://")], "no address"),
        (&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\""),
        (&[endpoint, ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json")], "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is \"http/json\""),
        (&[endpoint, ("OTEL_TRACES_EXPORTER", "zipkin")], "OTEL_TRACES_EXPORTER is \"zipkin\""),
    ] {
        let said = read_from(variables).expect_err("unusable");
        assert!(said.contains(wanted), "{variables:?}: {said}");
    }
    let said = read_from(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:pa55word@collector:4318")]).expect_err("unusable");
    assert!(said.contains("OTEL_EXPORTER_OTLP_HEADERS") && !said.contains("pa55word"), "{said}");
}

#[test]
fn samplers_of_the_specification() {
    let sampling = |ratio, parent_based| Sampling { ratio, parent_based };
    for (name, argument, wanted, remarks) in [
        ("", "", sampling(1.0, true), 0),
        ("always_on", "", sampling(1.0, false), 0),
        ("always_off", "", sampling(0.0, false), 0),
        ("traceidratio", "0.25", sampling(0.25, false), 0),
        ("parentbased_always_on", "", sampling(1.0, true), 0),
        ("parentbased_always_off", "0.5", sampling(0.0, true), 0),
        ("parentbased_traceidratio", "0.01", sampling(0.01, true), 0),
        ("parentbased_traceidratio", "", sampling(1.0, true), 0),
        ("parentbased_traceidratio", "1.5", sampling(1.0, true), 1),
        ("parentbased_traceidratio", "NaN", sampling(1.0, true), 1),
        ("traceidratio", "a tenth", sampling(1.0, false), 1),
        ("jaeger_remote", "", sampling(1.0, true), 1),
    ] {
        let settings = on(&[("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", argument)]);
        assert_eq!((settings.sampling, settings.remarks.len()), (wanted, remarks), "{name} {argument}: {:?}", settings.remarks);
    }
}

#[test]
fn the_program_says_who_it_is_unless_it_is_told() {
    let resource = |variables: &[(&str, &str)]| {
        let settings = on(variables);
        let list: Vec<String> = settings.resource.iter().map(|(key, value)| format!("{key}={value}")).collect();
        (list.join(","), settings.remarks.len())
    };
    for (attributes, name, wanted, remarks) in [
        ("", "", "service.name=kuberay-operator,service.version=1.0", 0),
        ("", "mine", "service.name=mine,service.version=1.0", 0),
        ("service.name=a,x=y z", "", "service.name=a,service.version=1.0,x=y z", 0),
        ("service.name=a", "b", "service.name=b,service.version=1.0", 0),
        ("team=a%2Cb%20c , ,k==v", "", "k==v,service.name=kuberay-operator,service.version=1.0,team=a,b c", 0),
        ("nothing,=x", "", "service.name=kuberay-operator,service.version=1.0", 2),
    ] {
        let found = resource(&[("OTEL_RESOURCE_ATTRIBUTES", attributes), ("OTEL_SERVICE_NAME", name)]);
        assert_eq!(found, (wanted.to_owned(), remarks), "{attributes} {name}");
    }
}

#[test]
fn times_certificates_and_what_is_done_without() {
    let plain = on(&[]);
    assert_eq!((plain.timeout, plain.certificate), (Duration::from_secs(10), None));
    let own = on(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "250"), ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem")]);
    assert_eq!((own.timeout, own.certificate), (Duration::from_millis(250), Some("/ca.pem".into())));
    let first = on(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "250"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "9")]);
    assert_eq!(first.timeout, Duration::from_millis(9));
    for (variable, value) in
        [("OTEL_EXPORTER_OTLP_TIMEOUT", "2s"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"), ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")]
    {
        let settings = on(&[(variable, value)]);
        assert_eq!(settings.timeout, TIMEOUT);
        assert!(matches!(&settings.remarks[..], [one] if one.starts_with(variable) && one.contains(value)), "{:?}", settings.remarks);
    }
}
