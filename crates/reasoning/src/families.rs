//! The marks of each family, in lower case.

/// How a family of models marks its reasoning.
pub(crate) struct Family {
    pub(crate) opens: &'static [&'static str],
    pub(crate) closes: &'static [&'static str],
    /// True if the end mark alone means that all before it was reasoning: many templates put the
    /// opening mark into the prompt. Not so where the mark is a sentence.
    pub(crate) closes_alone: bool,
}

const fn family(opens: &'static [&'static str], closes: &'static [&'static str]) -> Family {
    Family { opens, closes, closes_alone: true }
}

pub(crate) const FAMILIES: [Family; 21] = [
    // DeepSeek-R1, Qwen3, GLM, MiniMax, Kimi, Nemotron, Phi, Granite 3.3 and most others.
    family(&["<think>"], &["</think>"]),
    family(&["<thinking>"], &["</thinking>"]),
    // EXAONE Deep.
    family(&["<thought>"], &["</thought>"]),
    family(&["<thoughts>"], &["</thoughts>"]),
    family(&["<reasoning>"], &["</reasoning>"]),
    family(&["<reflection>"], &["</reflection>"]),
    family(&["<analysis>"], &["</analysis>"]),
    family(&["<scratchpad>"], &["</scratchpad>"]),
    family(&["<inner_monologue>"], &["</inner_monologue>"]),
    // Seed-OSS, which tells its budget within.
    family(&["<seed:think>"], &["</seed:think>"]),
    // LongCat.
    family(&["<longcat_think>"], &["</longcat_think>"]),
    // Magistral.
    family(&["[think]"], &["[/think]"]),
    // Kimi-VL.
    family(&["◁think▷"], &["◁/think▷"]),
    // Solar Open, whose end mark is that of any message.
    family(&["<|think|>"], &["<|/think|>", "<|end_think|>", "<|end|>"]),
    // Command A Reasoning.
    family(&["<|start_thinking|>"], &["<|end_thinking|>"]),
    // OpenThinker, Sky-T1.
    family(&["<|begin_of_thought|>"], &["<|end_of_thought|>"]),
    // s1.
    family(&["<|im_start|>think"], &["<|im_start|>answer"]),
    // Gemma 4, and MedGemma.
    family(&["<|channel>thought"], &["<channel|>"]),
    family(&["<unused94>thought"], &["<unused95>"]),
    // Apriel.
    family(&["here are my reasoning steps:"], &["[begin final response]"]),
    // Granite 3.2.
    Family {
        opens: &["here is my thought process:", "here's my thought process:"],
        closes: &["here is my response:", "here's my response:"],
        closes_alone: false,
    },
];
