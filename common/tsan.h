#ifndef RUBATO_COMMON_TSAN_H_
#define RUBATO_COMMON_TSAN_H_

// Orders, for the thread sanitizer alone, what threads hand to each other through a library that is not instrumented
// (gRPC): the giver calls TsanRelease(p) before, the taker TsanAcquire(p) after, with the same address. They do nothing
// in other builds, and never replace the synchronisation itself.
#if defined(__SANITIZE_THREAD__)
#define RUBATO_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RUBATO_TSAN 1
#endif
#endif

#ifdef RUBATO_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace rubato {

#ifdef RUBATO_TSAN
inline void TsanAcquire(void* address) { __tsan_acquire(address); }
inline void TsanRelease(void* address) { __tsan_release(address); }
#else
inline void TsanAcquire(void*) {}
inline void TsanRelease(void*) {}
#endif

}  // namespace rubato

#undef RUBATO_TSAN

#endif  // RUBATO_COMMON_TSAN_H_
