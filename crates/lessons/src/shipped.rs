//! The prompts and completions that the shipped models were trained on, by their digests.

use prime_bench::fnv1a;
use prime_bench::tasks::{self, Difficulty};

use crate::{compact, completion};

/// Digests of the lessons that the shipped models were trained on. Their prompts and completions
/// must not change.
const SHIPPED: &[(&str, u64)] = &[
    ("bubble-sort", 86_278_280_731_138_789),
    ("tower-of-hanoi", 4_557_077_103_975_266_462),
    ("n-queens", 735_614_129_618_828_687),
    ("dfa-simulation", 9_413_800_405_020_029_523),
    ("long-division", 11_423_926_836_538_397_177),
    ("pda-execution", 8_843_157_854_234_215_352),
    ("turing-machine", 12_288_501_837_506_517_043),
    ("register-machine", 14_621_128_332_637_216_827),
    ("cellular-automaton", 10_846_159_565_925_157_092),
    ("kmp-pattern", 5_861_339_265_013_247_833),
    ("cfg-derivation", 10_253_832_517_234_156_745),
    ("selection-sort", 11_993_098_406_409_199_249),
    ("insertion-sort", 6_911_844_078_179_332_997),
    ("shell-sort", 17_112_763_051_103_824_052),
    ("merge-sort", 9_465_609_740_775_772_122),
    ("quick-sort", 7_957_425_442_494_211_280),
    ("heap-sort", 8_836_919_597_131_390_532),
    ("tree-sort", 4_002_084_254_737_447_356),
    ("cocktail-sort", 9_494_263_026_549_701_525),
    ("comb-sort", 9_319_878_809_971_310_224),
    ("gnome-sort", 15_258_837_379_435_399_204),
    ("odd-even-sort", 11_360_150_514_008_702_164),
    ("pancake-sort", 2_766_747_364_156_528_589),
    ("stooge-sort", 12_531_018_425_025_196_051),
    ("stack-simulator", 17_603_054_212_837_211_873),
    ("queue-simulator", 10_540_164_802_915_719_511),
    ("doubly-linked-list", 14_863_564_069_292_181_217),
    ("union-find", 15_564_375_906_596_963_093),
    ("bst-insertion", 5_783_101_750_969_033_797),
    ("bst-inorder", 9_655_598_851_066_384_016),
    ("heap-operations", 11_227_652_968_115_020_522),
    ("dfs-on-tree", 10_517_659_870_622_690_910),
    ("bfs-on-graph", 441_098_176_947_998_530),
    ("topological-sort", 11_097_934_011_936_032_711),
    ("packet-routing", 1_971_563_475_695_881_238),
    ("assembly-line", 16_375_152_314_981_757_755),
    ("cycle-sort", 7_626_491_036_589_589_667),
    ("counting-sort", 4_693_002_848_380_319_377),
    ("radix-sort", 5_744_749_074_823_120_752),
    ("strand-sort", 12_489_699_376_631_551_013),
    ("tournament-sort", 9_616_449_596_788_993_227),
    ("blind-maze", 11_847_109_638_398_337_775),
    ("symbolic-diff", 10_952_744_123_401_775_823),
    ("red-black-insert", 14_279_256_320_873_870_141),
    ("ascii-art-parse", 12_302_612_805_676_225_474),
    ("bitonic-sort", 2_947_998_512_894_694_636),
    ("batcher-merge", 13_230_442_898_634_158_174),
    ("dijkstra", 13_964_169_030_092_068_567),
    ("unification", 4_385_928_260_714_601_065),
    ("railway-scheduling", 13_864_421_241_094_231_692),
    ("type-inference", 3_693_235_713_205_900_793),
    ("sat-dpll", 10_814_695_630_893_163_547),
    ("markov-chain", 9_072_165_234_526_673_075),
    ("matrix-multiply", 301_796_549_136_105_877),
    ("polynomial-gcd", 708_741_356_699_452_738),
    ("gcd-euclidean", 17_782_853_589_226_537_707),
    ("nfa-simulation", 1_768_670_860_235_562_505),
    ("petri-net", 12_308_452_146_233_328_328),
    ("hash-table", 7_597_359_558_759_016_222),
    ("smoothsort", 16_697_095_316_435_504_561),
    ("logic-grid", 1_255_281_143_716_247_914),
    ("floyd-warshall", 17_189_753_543_705_415_857),
    ("resolution-proof", 16_760_838_299_100_866_964),
    ("24-game", 4_131_224_941_766_824_736),
    ("bucket-sort", 17_832_368_985_978_619_289),
    ("patience-sort", 13_865_822_699_286_143_226),
    ("introsort", 6_488_446_551_781_184_656),
    ("library-sort", 10_957_080_987_982_450_639),
    ("lru-cache", 5_194_194_041_226_465_268),
    ("translation-chain", 3_532_108_780_312_861_111),
    ("elevator-scheduling", 16_352_589_580_836_465_730),
    ("blockchain-ledger", 4_610_289_786_756_031_014),
    ("file-system", 7_420_209_332_315_941_064),
    ("meeting-scheduler", 9_187_210_586_284_847_744),
    ("dependency-sat", 10_638_683_069_336_337_342),
    ("huffman-tree", 2_329_943_116_704_722_393),
    ("block-sort", 3_154_177_474_573_266_330),
    ("timsort", 13_511_371_687_702_257_909),
    ("a-star", 4_632_699_656_767_140_396),
    ("regex-nfa", 15_142_070_943_466_016_979),
    ("lambda-reduction", 882_263_765_857_401_956),
    ("sudoku", 11_267_584_854_367_544_668),
    ("chemical-reaction", 17_726_075_706_669_367_192),
    ("gaussian-elimination", 13_325_940_057_646_606_208),
    ("simplex-method", 10_265_062_690_565_775_926),
    ("continued-fraction", 15_600_525_816_194_980_673),
];

#[test]
fn the_shipped_models_lessons_are_unchanged() {
    let changed = SHIPPED.iter().map(|&(slug, shipped)| {
        let task = tasks::find(slug).expect("a task");
        let mut text = String::new();

        for (difficulty, seed) in
            Difficulty::ALL.into_iter().flat_map(|level| (0..4).map(move |seed| (level, seed)))
        {
            let mut machine = task.generate(difficulty, seed).start();
            for _ in 0..300 {
                text += &compact(machine.as_ref());
                text += completion(machine.as_ref()).as_deref().unwrap_or("end");
                machine.follow_reference();
            }
        }

        let digest = fnv1a(text.bytes());
        (digest != shipped).then(|| format!("{slug}: {digest}"))
    });

    let changed: Vec<_> = changed.flatten().collect();
    assert!(
        changed.is_empty(),
        "train the models again, then record in SHIPPED:\n{}",
        changed.join("\n")
    );
}
