#ifndef RUBATO_WORKER_DATA_BYTE_PAIRS_BLOCKS_OF_PIECES_H_
#define RUBATO_WORKER_DATA_BYTE_PAIRS_BLOCKS_OF_PIECES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/data/stored_bytes.h"

namespace rubato::worker {

// Visits the bytes [begin, end) of a text, which are there, one after another in blocks of whole pieces (PieceLength),
// so that they can be encoded block by block. Errors of StoredBytes::Read and of `visit`, at the first of which it
// ends.
absl::Status ForEachBlockOfPieces(const StoredBytes& text, int64_t begin, int64_t end,
                                  absl::FunctionRef<absl::Status(absl::string_view block)> visit);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_BYTE_PAIRS_BLOCKS_OF_PIECES_H_
