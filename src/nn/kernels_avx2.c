// The kernels for x86 processors with AVX2 and FMA: 16 registers of 8 numbers.
#if defined(__AVX2__) && defined(__FMA__)
#define KERNELS_NAME  "avx2"
#define KERNELS_TABLE nn_kernels_avx2
#define LANES         8
#define WIDE          1
#define MOST_ROWS     6
#define DEPTH         16

#include "nn/kernels_all.inc"
#else
typedef int nn_kernels_avx2_not_here;
#endif
