// Asking the system for large pages, where it has them.
#include "nn/memory.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };

psi_status nn_alloc_large(psi_ctx *ctx, size_t count, size_t size, void *out)
{
    psi_status status = PSI_OK;
    TRY(base_alloc(ctx, count, size, out));
    char *block;
    memcpy(&block, out, sizeof block);
    const size_t bytes = count * size;
#ifdef MADV_HUGEPAGE
    if (bytes >= LARGE_PAGE) {
        // only a wish: whether it is granted does not matter for the result
        char *page = block + (PAGE - (uintptr_t)block % PAGE);
        (void)madvise(page, (bytes - PAGE) / PAGE * PAGE, MADV_HUGEPAGE);
    }
#endif
    memset(block, 0, bytes);
done:
    return status;
}
