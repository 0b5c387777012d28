"""The grammars of actions in what vLLM and SGLang constrain output by: xgrammar takes GBNF and regular expressions, llguidance
Lark and regular expressions."""

from llguidance import LLMatcher
from xgrammar import Grammar
from xgrammar.testing import _is_grammar_accept_string as accepts

from prime_bench import Instance, tasks

LINES = 10


def main():
    for task in tasks():
        for form, grammar in (("gbnf", Grammar.from_ebnf), ("regex", Grammar.from_regex)):
            made = grammar(task.grammar(form))
            for line in Instance(task.slug).reference()[:LINES]:
                assert accepts(made, line), (task.slug, form, line)
            for line in ("", "¿99?"):
                assert not accepts(made, line), (task.slug, form, line)
        for form, grammar in (("lark", LLMatcher.grammar_from_lark), ("regex", LLMatcher.grammar_from_regex)):
            refused = LLMatcher.validate_grammar(grammar(task.grammar(form)))
            assert not refused, (task.slug, form, refused)
    print("ok  grammars in xgrammar and llguidance")


main()
