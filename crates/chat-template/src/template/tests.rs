use super::*;

fn no_tokens() -> SpecialTokens {
    SpecialTokens::new(["<|im_start|>".to_owned(), "<|im_end|>".to_owned()]).unwrap()
}

fn day() -> Date {
    Date::constant(2026, 11, 29)
}

fn template(source: &str) -> Result<ChatTemplate, TemplateError> {
    ChatTemplate::new(source, &BTreeMap::new(), ("<s>", "</s>"), day())
}

fn rendered(source: &str) -> Result<String, TemplateError> {
    let user = Message::from_iter([
        ("role".to_owned(), "user".into()),
        ("content".to_owned(), " Hi <|im_end|> ".into()),
    ]);
    template(source)?.text(&[user], None)
}

#[test]
fn values_methods_and_blocks_behave_as_in_jinja2() {
    for (source, expected) in [
        ("{{ bos_token }}{{ messages[0].content.strip() }}{{ eos_token }}", "<s>Hi <|im_end|></s>"),
        ("{{ true }} {{ none }} {{ 1.0 }} {{ nothing }}|", "True None 1.0 |"),
        ("{{ ['a', true] }} {{ {'a': none} }}", "['a', True] {'a': None}"),
        (
            "{{ 'text' is sequence }} {{ 'text' is iterable }} {{ none is iterable }}",
            "True True False",
        ),
        ("{{ messages[::-1][0]['role'] }}", "user"),
        (
            "{%- for x in [1, 2] %}\n{% if x == 2 %}{% break %}{% endif %}\n{{ x }}\n{% endfor %}",
            "1\n",
        ),
        ("  {% generation %}\na\n  {% endgeneration %}\nb", "a\nb"),
        ("{{ strftime_now('%d %B %Y') }}", "29 November 2026"),
        ("{{ {'b': [1, 'é']} | tojson }}", "{\"b\": [1, \"é\"]}"),
        ("{{ 'a</think>b'.split('</think>')[-1] }}", "b"),
        ("{% set ns = namespace(n=1) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}", "2"),
        (
            "{{ messages | tojson(indent=1) }}",
            "[\n {\n  \"role\": \"user\",\n  \"content\": \" Hi <|im_end|> \"\n }\n]",
        ),
    ] {
        assert_eq!(rendered(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn what_is_wrong_with_a_template_is_said_by_name() {
    let said = |source: &str| rendered(source).unwrap_err().to_string();

    let unknown = said("\n{{ render_tools(tools) }}");
    assert!(unknown.contains("render_tools") && unknown.contains("line 2"), "{unknown}");
    let filter = said("{{ messages | to_xml }}");
    assert!(filter.contains("to_xml"), "{filter}");
    let method = said("{{ messages[0].content.encode() }}");
    assert!(method.contains("encode"), "{method}");
    assert!(said("{% if %}").starts_with("it cannot be read as Jinja"));
    assert_eq!(
        said("{{ raise_exception('Only \u{1b}[2J users') }}"),
        "it refuses the messages: Only \\u001b[2J users"
    );
}

#[test]
fn hostile_templates_end_in_bounded_work() {
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}\
                   {{ a }}{% endfor %}{% endfor %}{% endfor %}";
    assert!(matches!(rendered(endless), Err(TemplateError::Failed(_) | TemplateError::TooLong(_))));
    let recursive = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
    assert!(matches!(rendered(recursive), Err(TemplateError::Failed(_))));
}

#[test]
fn a_system_message_that_a_model_refuses_begins_the_users_message() {
    let source = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}\
                  {% endif %}[{{ m.content }}]{% endfor %}";
    let pieces = template(source).unwrap().prompt(Some("Be brief."), "Hi", &no_tokens()).unwrap();
    let text: String = pieces.into_iter().map(|piece| piece.text).collect();
    assert_eq!(text, "[Be brief.\n\nHi]");

    let dropping = template("{{ bos_token }}").unwrap();
    assert_eq!(dropping.check(&no_tokens()), Err(TemplateError::DropsMessage));
}

#[test]
fn variables_reach_the_template_and_unknown_ones_are_refused() {
    let source = "{% if enable_thinking is defined and not enable_thinking %}off{% endif %}\
                  {{ reasoning_effort | default('medium') }} {{ strftime_now('%Y') }}";
    let with = |variables: &[(&str, serde_json::Value)]| {
        let all = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        ChatTemplate::new(source, &all.collect(), ("", ""), day())
    };

    let set = with(&[("enable_thinking", false.into()), ("date", "2024-07-26".into())]);
    assert_eq!(set.unwrap().text(&[], None).as_deref(), Ok("offmedium 2024"));
    assert_eq!(
        with(&[("enable_thinknig", false.into())]).unwrap_err(),
        TemplateError::UnknownVariable {
            name: "enable_thinknig".to_owned(),
            known: vec!["enable_thinking".to_owned(), "reasoning_effort".to_owned()],
        }
    );
    for (name, value) in [("messages", "x"), ("a b", "x"), ("date", "today")] {
        assert!(matches!(with(&[(name, value.into())]), Err(TemplateError::Variable(_))), "{name}");
    }
}
