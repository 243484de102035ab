/* SPDX-License-Identifier: Apache-2.0 */
#include "text/simd.h"

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

static bool has_avx512(void)
{
#if defined(TOKMAP_NO_AVX512) /* to test the code for machines without it */
    return false;
#else
    return has_avx2() && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
#endif
}
#endif

bool simd_works(simd_level level)
{
#if defined(__x86_64__)
    if (level == SIMD_AVX512)
        return has_avx512();
    if (level == SIMD_AVX2)
        return has_avx2();
#endif
    return level == SIMD_BEST || level == SIMD_SCALAR;
}

simd_level simd_best(void)
{
    if (simd_works(SIMD_AVX512))
        return SIMD_AVX512;
    return simd_works(SIMD_AVX2) ? SIMD_AVX2 : SIMD_SCALAR;
}
