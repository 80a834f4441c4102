#ifndef RUBATO_COMMON_TRANSPORT_ALLOCATOR_H_
#define RUBATO_COMMON_TRANSPORT_ALLOCATOR_H_

namespace rubato {

// Keeps freed memory in the process instead of giving it back to the system at once. gRPC allocates and frees buffers
// for every message; returning and faulting in their pages again is what costs most for messages of 1 MiB and more.
// To be called once, first thing in main. Does nothing where the C library is not glibc.
void TuneAllocator();

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_ALLOCATOR_H_
