//! A client's CEL expression, parsed and validated before it is evaluated. Only the names and
//! functions listed here are allowed; patterns are compiled once.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::thread;

use cel::Env;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};
use cel::parser::ParseErrors;

use super::readings::{Reading, readings};
use super::{exact, functions};
use crate::error::{Fault, quoted};
use crate::limits::{EXPRESSION_BYTES_MAX, PARSE_DEPTH_MAX, TREE_DEPTH_MAX};
use crate::pattern::Pattern;

/// The functions of CEL that expressions may call.
pub(super) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(false);
    exact::add_to(&mut env);
    functions::add_to(&mut env);
    Arc::new(env)
});

/// Replaces `matches`: the second argument is the index of a compiled pattern. No source can
/// contain this name.
pub const MATCHES: &str = "@matches";

/// The variables of an expression.
const VARIABLES: [&str; 6] = ["input", "state", "answer", "step", "previous", "steps"];

/// Types by name, as in `type(input.n) == int`.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

/// Functions of one argument.
const FUNCTIONS: [&str; 9] =
    ["bool", "bytes", "double", "dyn", "int", "size", "string", "type", "uint"];

/// Functions of two texts.
const METHODS: [&str; 3] = ["contains", "endsWith", "startsWith"];

/// Stack of the parsing thread: the parser takes about 10 KiB per level, and more unoptimised.
const PARSE_STACK_BYTES: usize = 32 << 20;

/// Mistakes after which the parser gives up.
const MISTAKES_MAX: u32 = 4;

/// A validated expression.
#[derive(Debug)]
pub struct Expression {
    /// The syntax tree, with internal names of functions.
    pub tree: IdedExpr,
    /// The patterns of its `matches`.
    pub patterns: Arc<[Pattern]>,
    variables: BTreeSet<&'static str>,
    /// What it reads outside of loops, for the reason of what it refuses.
    pub(super) readings: Vec<Reading>,
}

impl Expression {
    /// Returns whether it uses this variable.
    pub fn mentions(&self, variable: &str) -> bool {
        self.variables.contains(variable)
    }

    /// Parses and validates an expression.
    ///
    /// # Errors
    /// It is empty, too long, too deep, not CEL, or uses something that problems do not have.
    pub fn parse(source: &str) -> Result<Self, Fault> {
        Fault::unless_short("the expression", source.len(), EXPRESSION_BYTES_MAX)?;
        if source.trim().is_empty() {
            return Err(Fault::new("the expression is empty", "write one, such as `answer > 1`"));
        }

        // On its own thread, because the parser needs more stack than a caller may have left.
        let text = source.to_owned();
        let parsing =
            thread::Builder::new().name("expression".to_owned()).stack_size(PARSE_STACK_BYTES);
        let parsed = parsing.spawn(move || {
            // A tree too deep for other stacks must be dropped on this one.
            let mut tree = tree_of(&text)?;
            let mut walk = Walk::default();
            walk.visit(&mut tree, 0)?;
            let readings = readings(&tree);
            let (patterns, variables) = (walk.patterns.into(), walk.variables);
            Ok(Self { tree, patterns, variables, readings })
        });

        let parsed = parsed.map_err(|error| {
            Fault::new(format!("no thread to parse it: {error}"), "try it again")
        })?;

        parsed.join().unwrap_or_else(|_| {
            Err(Fault::new("the parser fails on it", "write it in another way"))
        })
    }
}

fn tree_of(source: &str) -> Result<IdedExpr, Fault> {
    let parser =
        ENV.parser().max_recursion_depth(PARSE_DEPTH_MAX).error_recovery_limit(MISTAKES_MAX);
    parser.parse(source).map_err(|errors| mistake(&errors))
}

fn mistake(errors: &ParseErrors) -> Fault {
    if errors.errors.iter().any(|error| error.msg.contains("Recursion limit")) {
        return too_deep();
    }

    let first = errors.errors.first();
    let place = first.map_or((1, 1), |error| error.pos);
    let message = first.map_or("", |error| error.msg.as_str());

    Fault::new(
        format!("not a CEL expression: line {}, column {}: {}", place.0, place.1, quoted(&message)),
        "write one over `input`, `state` and `answer`, such as `answer.x * answer.y == input.n`",
    )
}

fn too_deep() -> Fault {
    Fault::new(
        "the expression is nested too deep, or has too long a chain of operators",
        format!(
            "split it into several checks; up to {PARSE_DEPTH_MAX} brackets stand in each other"
        ),
    )
}

/// Validates an expression.
#[derive(Default)]
struct Walk {
    /// Names bound by the enclosing comprehensions.
    bound: Vec<String>,
    patterns: Vec<Pattern>,
    variables: BTreeSet<&'static str>,
}

impl Walk {
    fn visit(&mut self, tree: &mut IdedExpr, depth: usize) -> Result<(), Fault> {
        if depth >= TREE_DEPTH_MAX {
            return Err(too_deep());
        }
        let below = depth + 1;

        match &mut tree.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.visit(&mut select.operand, below),
            Expr::List(list) => {
                list.elements.iter_mut().try_for_each(|element| self.visit(element, below))
            }
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.visit(&mut entry.key, below)?;
                    self.visit(&mut entry.value, below)
                }
                EntryExpr::StructField(_) => Err(message_type()),
            }),
            Expr::Call(call) => self.call(call, below),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, below),
            Expr::Struct(_) => Err(message_type()),
            Expr::Unspecified => {
                Err(Fault::new("a part of the expression is missing", "write all of it"))
            }
        }
    }

    fn name(&mut self, name: &str) -> Result<(), Fault> {
        // A loop's own names hide the variables.
        if self.bound.iter().any(|bound| bound == name) || TYPES.contains(&name) {
            return Ok(());
        }

        let Some(variable) = VARIABLES.into_iter().find(|variable| *variable == name) else {
            let problem = format!("unknown name `{name}`");
            return Err(Fault::new(
                problem,
                "a check sees `input`, `step`, `previous`, `steps`, `answer` and `state` (with the \
                 lines as `steps`, and `answer`)",
            ));
        };

        self.variables.insert(variable);
        Ok(())
    }

    fn comprehension(
        &mut self,
        comprehension: &mut ComprehensionExpr,
        depth: usize,
    ) -> Result<(), Fault> {
        self.visit(&mut comprehension.iter_range, depth)?;
        self.visit(&mut comprehension.accu_init, depth)?;

        // Bound from here on: the range and the start are evaluated outside the loop.
        let bound = self.bound.len();
        self.bound.extend([comprehension.accu_var.clone(), comprehension.iter_var.clone()]);
        self.bound.extend(comprehension.iter_var2.clone());

        self.visit(&mut comprehension.loop_cond, depth)?;
        self.visit(&mut comprehension.loop_step, depth)?;
        self.visit(&mut comprehension.result, depth)?;

        self.bound.truncate(bound);
        Ok(())
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Result<(), Fault> {
        // First, because it renames the function to one that no source can name.
        if call.func_name == "matches" {
            self.matches(call)?;
        }
        Self::rename(call);

        let name = call.func_name.as_str();
        let arguments = call.args.len();
        let is_known = match &call.target {
            None => {
                is_operator(name, arguments)
                    || (FUNCTIONS.contains(&name) && arguments == 1)
                    || functions::is_internal(name)
            }
            Some(_) => {
                (METHODS.contains(&name) && arguments == 1)
                    || (name == "size" && arguments == 0)
                    || name == MATCHES
            }
        };

        if !is_known {
            return Err(Fault::new(
                format!("there is no function `{}` with {arguments} arguments", quoted(&name)),
                "there are the operators, `has`, `all`, `exists`, `exists_one`, `map`, `filter`, `size`, `contains`, \
                 `startsWith`, `endsWith`, `matches`, `split`, `sum`, `sort`, `distinct`, `range` \
                 and the conversions between types",
            ));
        }

        // Operators of macros are replaced too: macros are expanded by now.
        if let (None, Some(exact)) = (&call.target, exact::replacement(name)) {
            exact.clone_into(&mut call.func_name);
        }

        if let Some(target) = &mut call.target {
            self.visit(target, depth)?;
        }
        call.args.iter_mut().try_for_each(|argument| self.visit(argument, depth))
    }

    /// Gives a function that this crate adds its internal name; its method form becomes the
    /// function form.
    fn rename(call: &mut CallExpr) {
        let arguments = call.args.len() + usize::from(call.target.is_some());
        let Some(internal) = functions::internal(&call.func_name, arguments) else { return };
        if let Some(target) = call.target.take() {
            call.args.insert(0, *target);
        }
        internal.clone_into(&mut call.func_name);
    }

    /// Compiles the pattern of `text.matches("…")` or `matches(text, "…")`.
    fn matches(&mut self, call: &mut CallExpr) -> Result<(), Fault> {
        // The function form becomes the method form.
        if call.target.is_none() && call.args.len() == 2 {
            call.target = Some(Box::new(call.args.remove(0)));
        }

        let [IdedExpr { expr: Expr::Literal(literal), .. }] = call.args.as_mut_slice() else {
            return Err(no_pattern());
        };
        let LiteralValue::String(pattern) = &*literal else { return Err(no_pattern()) };

        let pattern = Pattern::anywhere(pattern.inner())?;
        let number = i64::try_from(self.patterns.len()).map_err(|_| too_deep())?;

        self.patterns.push(pattern);
        *literal = LiteralValue::Int(number.into());
        MATCHES.clone_into(&mut call.func_name);
        Ok(())
    }
}

fn is_operator(name: &str, arguments: usize) -> bool {
    match arguments {
        1 => matches!(
            name,
            operators::LOGICAL_NOT | operators::NEGATE | operators::NOT_STRICTLY_FALSE
        ),
        2 => matches!(
            name,
            operators::LOGICAL_AND
                | operators::LOGICAL_OR
                | operators::ADD
                | operators::SUBSTRACT
                | operators::MULTIPLY
                | operators::DIVIDE
                | operators::MODULO
                | operators::EQUALS
                | operators::NOT_EQUALS
                | operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS
                | operators::IN
                | operators::INDEX
        ),
        3 => name == operators::CONDITIONAL,
        _ => false,
    }
}

fn no_pattern() -> Fault {
    Fault::new(
        "the pattern of `matches` is not written out",
        "write it as a text, as in `answer.matches('^[a-z]+$')`",
    )
}

fn message_type() -> Fault {
    Fault::new("there are no message types", "write a map, as in `{'x': 1}`")
}
