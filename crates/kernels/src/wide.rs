//! Compiles a loop twice: with AVX-512 and FMA for processors that have them, and for any.

/// Returns whether the processor has what the wide versions need.
#[cfg(target_arch = "x86_64")]
pub fn is_wide() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("fma")
}

/// Defines functions, perhaps generic over an [`Element`](crate::Element), that choose between the
/// two versions when they are called. Bodies are loops that vectorise: no branches that depend on
/// values, no calls that are not inlined.
macro_rules! wide {
    ($(
        $(#[$meta:meta])*
        pub fn $name:ident $(<$element:ident>)? ($($argument:ident: $kind:ty),* $(,)?)
            $(-> $result:ty)? $body:block
    )*) => {$(
        $(#[$meta])*
        pub fn $name $(<$element: $crate::Element>)? ($($argument: $kind),*) $(-> $result)? {
            #[inline(always)]
            fn narrow $(<$element: $crate::Element>)? ($($argument: $kind),*) $(-> $result)?
            $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
                fn wide $(<$element: $crate::Element>)? ($($argument: $kind),*) $(-> $result)? {
                    narrow $(::<$element>)? ($($argument),*)
                }

                if $crate::wide::is_wide() {
                    #[expect(
                        unsafe_code,
                        reason = "a function with target features is unsafe to call from one without"
                    )]
                    // SAFETY: the processor has the features, as was just asked.
                    return unsafe { wide $(::<$element>)? ($($argument),*) };
                }
            }

            narrow $(::<$element>)? ($($argument),*)
        }
    )*};
}

pub(crate) use wide;
