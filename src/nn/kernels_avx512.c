// The kernels for x86 processors with AVX-512: 32 registers of 16 numbers, so that a tile is 6 rows
// by 64 outputs and only 10 loads feed 24 multiplications.
#if defined(__AVX512F__)
#define KERNELS_NAME  "avx512"
#define KERNELS_TABLE nn_kernels_avx512
#define LANES         16
#define WIDE          4
#define MOST_ROWS     12
#define DEPTH         8

#include "nn/kernels_all.inc"
#else
typedef int nn_kernels_avx512_not_here;
#endif
