/* SPDX-License-Identifier: Apache-2.0 */
#include "base/simd.h"

bool simd_works(simd_level level)
{
    bool works = level == SIMD_BEST || level == SIMD_SCALAR || level == SIMD_BLOCKS;
#if defined(__x86_64__)
    works |= __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
             __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    if (level == SIMD_AVX512)
        works &= __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
#endif
#if defined(TOKMAP_NO_AVX512) /* to test the code for machines without AVX-512 */
    works &= level != SIMD_AVX512;
#endif
    return works;
}

simd_level simd_best(void)
{
    if (simd_works(SIMD_AVX512))
        return SIMD_AVX512;
    return simd_works(SIMD_AVX2) ? SIMD_AVX2 : SIMD_SCALAR;
}
