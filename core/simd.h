// Included by every kernel file before <hwy/highway.h>'s foreach_target: which instruction sets are compiled.
// x86-64: scalar (Highway's EMU128), SSE4, AVX2, AVX-512; arm64: scalar and NEON.
#pragma once

#define HWY_COMPILE_ALL_ATTAINABLE
// SSSE3 adds nothing over SSE4 here, and AVX3_DL nothing over AVX3 for float kernels.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
// Highway falls back to one-lane vectors, which lack most operations, where g++ 12.2 mistakes 16-bit MulHigh
// loops (GCC bug 106322). No kernel here multiplies that way, so the four-lane emulation is kept.
#define HWY_BROKEN_EMU128 0
