# SPDX-License-Identifier: Apache-2.0
"""The regular expressions of the public tokenizers, as their files write them, and the characters that ByteLevel
writes for bytes."""

SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K_08 = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
GPT2_08 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = QWEN2.replace(r"?\p{L}+|", r"?[\p{L}\p{M}]+|").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
NANOCHAT = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
LING = NANOCHAT.replace(r"\p{N}{1,2}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + SHORT + "?|" + r"[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*"
         + SHORT + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = O200K.replace(SHORT + "?", "").replace(r"\p{N}{1,3}", r"\p{N}")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        + SHORT + r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        + SHORT + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DS_CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
DS_BIG = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
          "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
DEEPSEEK3 = [r"\p{N}{1,3}", DS_CJK, DS_BIG]
# The three range ends that copies in NFC damage are written as escapes.
DS_LETTERS = ("A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-"
              "\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎ"
              "ꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃")
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
JAIS2 = CL100K.removesuffix(r"|\s+(?!\S)|\s+") + "".join(r"|\s{%d}(?!\S)" % (1 << n) for n in range(9, 1, -1)) + r"|\s{1,2}(?!\S)|\s{1}"
SEED = SHORT + "|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
SPARK_BIG = DS_BIG.replace(" ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|", " ?[\\p{P}\\p{S}]+|[\r\n]|")
MINICPM = SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
INDIC = SHORT + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}|\p{M}|\u200C|\u200D)+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
EXAONE_MOE = SHORT + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
YOUTU = ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", O200K.replace(r"\p{N}{1,3}", r"\p{N}")]
TINY_AYA_DIGITS = r"\d{1,3}(?=(?:\d{3})*\b)"
SUPERBPE_1 = r"(?=(\d{3})+(?!\d))| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SUPERBPE_2 = r"(?=(\d{3})+(?!\d))"
CLIP = r"""<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""
CLIP_OLD = r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""
NOUGAT = r"[\(\)\[\]\{\}]|([!\"#\$%\&'\*\+,\-\./:;<=>\?\\\^_`\|\~])\1*"
# DeepSeek-V3's, with escapes for the line ends.
DEEPSEEK3_ESCAPED = [s.replace("\r", "\\r").replace("\n", "\\n") for s in DEEPSEEK3]
DIGITS, LINES, CJK_TO_HANGUL = r"\p{N}{1,3}", r"(?:\r?\n)+(?!\r?\n)", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

# Pre-tokenizers in sequence, but GPT-2's. True and False are Digits, individual or not; LINES is merged with what follows.
LISTS = {
    "cl100k": [CL100K], "qwen2": [QWEN2], "qwen35": [QWEN35], "o200k": [O200K], "tekken": [TEKKEN],
    "deepseek3": DEEPSEEK3_ESCAPED, "nanochat": [NANOCHAT], "cl100k_08": [CL100K_08], "seed": [SEED],
    "k2_horizon": [INDIC], "jais2": [JAIS2], "k_exaone": [EXAONE_MOE], "kimi": [KIMI], "bloom": [BLOOM],
    "clip": [CLIP], "clip_old": [CLIP_OLD], "minicpm5": [DIGITS, MINICPM], "ax_k2": [DS_CJK, QWEN2],
    "tiny_aya": [TINY_AYA_DIGITS, O200K], "youtu_llm": YOUTU, "spark_x2": [DIGITS, DS_CJK, SPARK_BIG, True],
    "laguna": [LINES, QWEN2], "viking": [BLOOM, True], "superbpe_1": [False, SUPERBPE_1],
    "superbpe_2": [False, SUPERBPE_2],
    "deepseek_llm": ["[\r\n]", r"\s?[" + DS_LETTERS + "]+",
                     r"\s?[!-/:-~！-／：-～‘-‟" + "\u3000-\u3002" + "]+", r"\s+$", CJK_TO_HANGUL, True],
    "deepseek_coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK_TO_HANGUL, True],
}


def byte_letters():
    """The character of each byte."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in kept]
    return [chr(b) if b in kept else chr(0x100 + moved.index(b)) for b in range(256)]
