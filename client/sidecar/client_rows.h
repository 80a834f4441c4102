#ifndef RUBATO_CLIENT_SIDECAR_CLIENT_ROWS_H_
#define RUBATO_CLIENT_SIDECAR_CLIENT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/key_hash.h"
#include "common/model_spec.h"
#include "worker/ps_client/parameters.h"

namespace rubato::client {

// A client's rows of tables in a member's steps: keys come in the client's order, each once, and go to the servers in
// that of their hashes; rows go back in the client's. Used by the thread that steps.
//
//   rows.Ask(table, keys);                         // For the next step, in the one before.
//   RUBATO_ASSIGN_OR_RETURN(const bool there, rows.Await());
//   std::string answer = rows.Take();              // Before BeginStep.
//   rows.Push(table, keys, gradients, pushed);
class ClientRows {
 public:
  // Fetches rows of keys, which come in the order of their hashes, as the servers have them (RowPuller::Pull).
  using Pull = std::function<absl::Status(int table, const std::vector<uint64_t>& keys, float* rows)>;

  // Pointers outlive it. `seed` is the job's.
  ClientRows(const ModelSpec* spec, uint64_t seed, worker::Parameters* parameters, Pull pull);

  void Ask(int table, const std::vector<uint64_t>& keys);
  // As Parameters::AwaitRows, of all tables.
  absl::StatusOr<bool> Await();
  // For each table how many rows were asked for, and the rows, as FrameKind::kBegin is answered. Nothing is asked for
  // any more.
  std::string Take();
  void Push(int table, const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
            const worker::Parameters::Pushed& pushed);
  // The rows of the keys as the servers have them. Errors of Pull.
  absl::StatusOr<std::string> Read(int table, const std::vector<uint64_t>& keys) const;

 private:
  // In the order of the keys' hashes, and by key where it was.
  struct Sorted {
    std::vector<uint64_t> keys;
    std::vector<uint32_t> places;
  };
  struct Table {
    KeyHash hash;
    size_t dimension = 0;
    Sorted asked;
  };

  static Sorted Sort(const KeyHash& hash, const std::vector<uint64_t>& keys);
  // Appends them as the client had their keys.
  static void AppendRows(const Sorted& keys, size_t dimension, const float* rows, std::string* to);

  worker::Parameters* const parameters_;
  const Pull pull_;
  std::vector<Table> tables_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_CLIENT_ROWS_H_
