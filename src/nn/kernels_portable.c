// The kernels for any processor: the compiler makes of 16-byte vectors what the machine has.
#define KERNELS_NAME  "portable"
#define KERNELS_TABLE nn_kernels_portable
#ifdef PSI_NN_DOUBLE
#define LANES 2 // numbers in a vector
#else
#define LANES 4
#endif
#define WIDE      1 // blocks of outputs in a tile of registers …
#define MOST_ROWS 3 // … and its rows
#define DEPTH     16

#include "nn/kernels_all.inc"
