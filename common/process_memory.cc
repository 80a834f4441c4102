#include "common/process_memory.h"

#include <unistd.h>

#include <fstream>

namespace rubato {

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  if (!(file >> total_pages >> resident_pages)) return 0;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

}  // namespace rubato
