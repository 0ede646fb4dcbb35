// What qsort asks for numbers in ascending order. NaN has no place in it.
#ifndef PSI_BASE_ORDER_H
#define PSI_BASE_ORDER_H

#include <stdint.h>

#define ORDER(name, type)                                                                          \
    static inline int name(const void *a, const void *b)                                           \
    {                                                                                              \
        const type x = *(const type *)a, y = *(const type *)b;                                     \
        return (x > y) - (x < y);                                                                  \
    }
ORDER(base_by_real, double)
ORDER(base_by_index, int32_t)
ORDER(base_by_number, uint64_t)
#undef ORDER

#endif
