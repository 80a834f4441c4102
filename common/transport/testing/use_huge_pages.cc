// Says how it was started at last: what GLIBC_TUNABLES is, and its arguments, a line each.
#include <cstdio>
#include <cstdlib>

#include "common/transport/process_tuning.h"

int main(int argc, char** argv) {
  rubato::UseHugePages();
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  std::puts(tunables == nullptr ? "" : tunables);
  for (int i = 0; i < argc; ++i) std::puts(argv[i]);
  return 0;
}
