//! Actions whose line is a word and natural numbers (`cmp 0 1`, `done`): most tasks have no others.

/// Defines an action type with its forms, its line and its reader:
/// `word_actions!(Action { Cmp(i, j) = "cmp", Done = "done" })` has `Action::FORMS`, `Display` and `Action::read`.
macro_rules! word_actions {
    (@form $field:ident) => { " <nat>" };
    ($name:ident { $($variant:ident $(($($field:ident),+))? = $word:literal),+ $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($variant $(($(word_actions!(@type $field)),+))?),+
        }

        impl $name {
            const FORMS: &'static [&'static str] =
                &[$(concat!($word $($(, word_actions!(@form $field))+)?)),+];

            fn read(form: usize, fields: &$crate::tasks::pattern::Fields<'_>) -> Option<Self> {
                // Not looked at where no line has a number.
                let _ = fields;
                let mut forms = 0..;
                $(
                    if forms.next() == Some(form) {
                        $($(let $field;)+ let mut places = 0..; $($field = fields.nat(places.next()?)?;)+)?
                        return Some(Self::$variant $(($($field),+))?);
                    }
                )+
                None
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
    (@type $field:ident) => { usize };
}

pub(crate) use word_actions;
