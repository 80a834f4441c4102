#include "common/transport/allocator.h"

#include <malloc.h>

namespace rubato {

void TuneAllocator() {
#ifdef __GLIBC__
  // Free memory at the top of the heap that is kept.
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  // Setting the first stops glibc from adapting this one, the size from which an allocation is a mapping of its own,
  // unmapped when it is freed. This is the largest value that it takes.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
}

}  // namespace rubato
