#include "worker/data/byte_pairs/blocks_of_pieces.h"

#include <algorithm>
#include <vector>

#include "common/status.h"
#include "worker/data/byte_pairs/byte_pairs.h"

namespace rubato::worker {

constexpr int64_t kBlockBytes = 1 << 20;

absl::Status ForEachBlockOfPieces(const StoredBytes& text, int64_t begin, int64_t end,
                                  absl::FunctionRef<absl::Status(absl::string_view block)> visit) {
  std::vector<uint8_t> scratch;
  while (begin < end) {
    const int64_t count = std::min(kBlockBytes, end - begin);
    RUBATO_ASSIGN_OR_RETURN(const uint8_t* data, text.Read(begin, count, &scratch));
    const absl::string_view block(reinterpret_cast<const char*>(data), static_cast<size_t>(count));
    size_t whole = block.size();
    if (begin + count < end) {
      // A piece at the end may go on in the next block, which begins with it.
      for (whole = 0; block.size() - whole > kMaxPieceBytes;) whole += PieceLength(block.substr(whole));
    }
    RUBATO_RETURN_IF_ERROR(visit(block.substr(0, whole)));
    begin += static_cast<int64_t>(whole);
  }
  return absl::OkStatus();
}

}  // namespace rubato::worker
