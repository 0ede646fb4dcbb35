// OpenBLAS starts a thread for every processor but one as soon as it is loaded, before main. Ours
// are made by the context, so these would only wait; and where address space is limited their
// start fails and ends the process, or never ends. It counts the processors that it may run on:
// before it does, there is one, and afterwards all that there were.
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

static cpu_set_t allowed;
static bool narrowed;

static void be_on_one_processor(void)
{
    cpu_set_t one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    size_t first = 0;
    while (first < CPU_SETSIZE && !CPU_ISSET(first, &allowed)) first++;
    if (first == CPU_SETSIZE) return;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    narrowed = sched_setaffinity(0, sizeof one, &one) == 0;
}

__attribute__((constructor)) static void be_on_all_processors(void)
{
    if (narrowed) (void)sched_setaffinity(0, sizeof allowed, &allowed);
}

// What stands here runs before the constructors of all libraries; ours, above, after them.
__attribute__((section(".preinit_array"),
               used)) static void (*const first_of_all)(void) = be_on_one_processor;
