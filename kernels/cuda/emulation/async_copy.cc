// Copies of an emulated GPU's threads arrive as late as they may: when the thread waits for them. Until then their
// place is full of NaN.

#include "kernels/cuda/async_copy.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/cuda/emulation/threads.h"

namespace rubato::cuda {
namespace {

struct Copy {
  const void* from;
  bool exists;
  void* to;
  int bytes;
};

// What one thread of a block has not waited for.
struct Pending {
  uint3 block = {};
  std::vector<Copy> copies;
};

Pending& OfThisThread() {
  static auto* const threads = new std::vector<Pending>(1024);
  const emulation::Place& here = emulation::Here();
  Pending& pending = (*threads)[here.thread.x + here.threads.x * (here.thread.y + here.threads.y * here.thread.z)];
  if (!pending.copies.empty() && std::memcmp(&pending.block, &here.block, sizeof(uint3)) != 0) {
    std::fprintf(stderr, "CopyAsync: a thread has ended without AwaitCopies\n");
    std::abort();
  }
  pending.block = here.block;
  return pending;
}

void Enqueue(const Copy& copy) {
  if ((reinterpret_cast<uintptr_t>(copy.from) | reinterpret_cast<uintptr_t>(copy.to)) % copy.bytes != 0) {
    std::fprintf(stderr, "CopyAsync: from %p to %p, which are not both at a multiple of %d bytes\n", copy.from, copy.to,
                 copy.bytes);
    std::abort();
  }
  std::memset(copy.to, 0xff, copy.bytes);
  OfThisThread().copies.push_back(copy);
}

}  // namespace

template <>
void CopyAsync<4>(const void* from, bool exists, void* to) {
  Enqueue({from, exists, to, 4});
}

template <>
void CopyAsync<16>(const void* from, bool exists, void* to) {
  Enqueue({from, exists, to, 16});
}

void AwaitCopies() {
  std::vector<Copy>& copies = OfThisThread().copies;
  for (const Copy& copy : copies) {
    if (copy.exists) {
      std::memcpy(copy.to, copy.from, copy.bytes);
    } else {
      std::memset(copy.to, 0, copy.bytes);
    }
  }
  copies.clear();
}

}  // namespace rubato::cuda
