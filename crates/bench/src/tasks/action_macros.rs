//! Macros that write an action type, its forms, its reader and its `Display` from one declaration.

/// Defines an action type whose lines are a word followed by natural numbers: `Cmp(i, j) = "cmp"`
/// reads and writes `cmp 0 1`, and `Done = "done"` ends the trace.
macro_rules! word_actions {
    (@form $field:ident) => { " <nat>" };
    (@type $field:ident) => { usize };
    ($(#[$attribute:meta])+ $name:ident {
        $($(#[$note:meta])* $variant:ident $(($($field:ident),+))? = $word:literal),+ $(,)?
    }) => {
        $(#[$attribute])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$note])* $variant $(($(word_actions!(@type $field)),+))?),+
        }

        impl $crate::tasks::TaskAction for $name {
            const FORMS: &'static [&'static str] =
                &[$(concat!($word $($(, word_actions!(@form $field))+)?)),+];

            // No field is read where no line has a number.
            #[allow(unused_variables)]
            fn read(form: usize, fields: &$crate::tasks::pattern::Fields<'_>) -> Option<Self> {
                // A repetition has no index: the counter numbers the forms.
                let mut forms = 0..;
                $(
                    if forms.next() == Some(form) {
                        $($(let $field;)+ let mut places = 0..; $($field = fields.nat(places.next()?)?;)+)?
                        return Some(Self::$variant $(($($field),+))?);
                    }
                )+
                None
            }

            fn is_done(&self) -> bool {
                match self {
                    $(Self::$variant { .. } => $word == "done"),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant $(($($field),+))? => {
                        f.write_str($word)?;
                        $($(write!(f, " {}", $field)?;)+)?
                        Ok(())
                    })+
                }
            }
        }
    };
    ($name:ident { $($variants:tt)+ }) => {
        word_actions!(
            /// An action line; the page explains its forms.
            $name { $($variants)+ }
        );
    };
}

/// Defines an action type from pairs of a line's form ([`pattern`]) and the format string that
/// writes it: `Solve(i: usize, value: Rational) = "x<nat> = <rat>", "x{i} = {value}";`. The fields
/// stand in the order of the form.
macro_rules! line_actions {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $(
                $(#[$note:meta])*
                $variant:ident $(($($field:ident: $type:ty),+))?
                    $({ $($(#[$named_note:meta])* $named:ident: $named_type:ty),+ $(,)? })?
                    = $form:literal, $format:literal;
            )+
        }
    ) => {
        $(#[$attribute])*
        pub enum $name {
            $(
                $(#[$note])*
                $variant $(($($type),+))? $({ $($(#[$named_note])* $named: $named_type),+ })?
            ),+
        }

        impl $crate::tasks::TaskAction for $name {
            const FORMS: &'static [&'static str] = &[$($form),+];

            fn read(form: usize, fields: &$crate::tasks::pattern::Fields<'_>) -> Option<Self> {
                // A repetition has no index: the counter numbers the forms.
                let mut forms = 0..;
                $(
                    if forms.next() == Some(form) {
                        $(let mut places = 0..; $(let $field = line_actions!(@read fields, places, $type);)+)?
                        $(let mut places = 0..; $(let $named = line_actions!(@read fields, places, $named_type);)+)?
                        return Some(Self::$variant $(($($field),+))? $({ $($named),+ })?);
                    }
                )+
                None
            }

            fn is_done(&self) -> bool {
                match self {
                    $(Self::$variant { .. } => $form == "done"),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant $(($($field),+))? $({ $($named),+ })? => write!(f, $format),)+
                }
            }
        }
    };
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $($(#[$note:meta])* $visibility:vis $field:ident: $type:ty),+ $(,)?
        } = $form:literal, $format:literal
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[$note])* $visibility $field: $type),+
        }

        impl $crate::tasks::TaskAction for $name {
            const FORMS: &'static [&'static str] = &[$form];

            fn read(_: usize, fields: &$crate::tasks::pattern::Fields<'_>) -> Option<Self> {
                let mut places = 0..;
                $(let $field = line_actions!(@read fields, places, $type);)+
                Some(Self { $($field),+ })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let Self { $($field),+ } = self;
                write!(f, $format)
            }
        }
    };
    (@read $fields:ident, $places:ident, $type:ty) => {
        <$type as $crate::tasks::action::LineField>::read($fields, $places.next()?)?
    };
}

/// Defines an enum that one field of a line writes as a word: `Hit = "hit"`.
macro_rules! words {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$note:meta])* $variant:ident = $word:literal),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$note])* $variant),+
        }

        impl $crate::tasks::action::LineField for $name {
            fn read(fields: &$crate::tasks::pattern::Fields<'_>, index: usize) -> Option<Self> {
                match fields.text(index)? {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $word),+
                })
            }
        }
    };
}

pub(crate) use {line_actions, word_actions, words};
