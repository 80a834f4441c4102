// Writes the corpus files that are made by code: make_corpus <directory> writes update_log_*, idx_*, cifar_*, text_*,
// byte_pairs_*, columns_*, libsvm_*, hello_*, gradient_* and client_* there, each as its fuzz target's comment says.
#include <zlib.h>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "client/link/model.h"
#include "common/codec_traits.h"
#include "common/shared_memory/hello.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/update_log.h"
#include "kernels/codec/codec.h"

namespace rubato {
namespace {

void Write(const std::string& directory, const std::string& name, const std::string& bytes) {
  std::ofstream(JoinPath(directory, name), std::ios::binary) << bytes;
}

absl::StatusOr<std::string> UpdateLog(const std::string& directory) {
  const std::string path = JoinPath(directory, "log.tmp");
  RUBATO_RETURN_IF_ERROR(RemoveFile(path));
  v1::LogHeader header;
  header.set_job_name("fuzz");
  header.set_server_incarnation(5);
  RUBATO_ASSIGN_OR_RETURN(auto log, UpdateLogWriter::Create(path, header));
  v1::UpdateLogRecord plan;
  plan.mutable_plan()->set_generation(1);
  plan.mutable_plan()->add_members()->set_incarnation(9);
  RUBATO_RETURN_IF_ERROR(log->Append(plan));
  for (int step = 0; step < 2; ++step) {
    v1::UpdateLogRecord update;
    update.mutable_update()->set_step(step);
    update.mutable_update()->set_incarnation(9);
    update.mutable_update()->set_applied_version(step + 1);
    RUBATO_RETURN_IF_ERROR(log->Append(update));
  }
  RUBATO_RETURN_IF_ERROR(log->Close());
  RUBATO_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  RUBATO_RETURN_IF_ERROR(RemoveFile(path));
  return bytes;
}

std::string Idx(const std::vector<uint8_t>& dimensions, const std::string& payload) {
  std::string bytes = {0, 0, 8, static_cast<char>(dimensions.size())};
  for (const uint8_t dimension : dimensions) bytes += std::string{0, 0, 0, static_cast<char>(dimension)};
  return bytes + payload;
}

std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  constexpr int kGzipWindow = 15 + 16;
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  std::string compressed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

std::string IdxPair(const std::string& images, const std::string& labels) {
  return images + labels + std::string{static_cast<char>(labels.size() >> 8), static_cast<char>(labels.size())};
}

void WriteHellos(const std::string& directory) {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(3);
  task.set_incarnation(9);
  Write(directory, "hello_worker", EncodeHello(task));
  Write(directory, "hello_welcome", EncodeWelcome(17));
  Write(directory, "hello_refusal", EncodeWelcome(absl::ResourceExhaustedError("no room")));
}

// One of each codec, of 300 elements.
void WriteGradients(const std::string& directory) {
  std::vector<float> gradient;
  for (int i = 0; i < 300; ++i) gradient.push_back(static_cast<float>(i % 17) * 0.25f - 2);
  const int64_t n = static_cast<int64_t>(gradient.size());
  for (const v1::Codec codec : AllCodecs()) {
    const CodecSpec spec = {.codec = codec, .fraction = 0.1};
    std::vector<float> residual(gradient.size());
    std::vector<uint8_t> encoded(static_cast<size_t>(MaxEncodedBytes(spec, n)));
    encoded.resize(static_cast<size_t>(Encode(spec, gradient.data(), n, residual.data(), 1, 2, encoded.data())));
    const size_t count = gradient.size() - 1;
    Write(directory, "gradient_" + std::to_string(codec),
          std::string(encoded.begin(), encoded.end()) + static_cast<char>(count >> 8) + static_cast<char>(count) +
              static_cast<char>(codec) + static_cast<char>(codec) + std::string("\0\x0d", 2));
  }
}

// Their sidecar answers well; the numbers are those of client_fuzzer's calls.
void WriteCalls(const std::string& directory) {
  const std::string well(1, '\0');
  // Two tensors of 4 and 2 x 3 elements in one group, SGD, no table.
  const std::string tensors = {0, 2, 1, 'a', 1, 4, 0, 1, 'b', 2, 2, 3, 0, 0, 1, 1, 0, 1, 0, 0};
  // start, begin, touch, push, push, report, begin, lease, get.
  const std::string step = {1, 2, 0, 22, 0, 0, 7, 0, 0, 8,  7, 0,  1, 8,   10, 8, 0,
                            0, 0, 0, 0,  0, 0, 0, 2, 0, 11, 0, 13, 1, 'k', 9,  0};
  Write(directory, "client_step", well + tensors + step);
  // No tensor, a table of rows of 3 floats; rows are read, pushed and asked for.
  const std::string table = {0, 0, 1, 1, 'u', 3, 1, 0, 0, 4, 1, 1, 0, 1, 0, 0};
  const std::string rows = {1, 2,  0, 23, 0, 3, 5, 6, 5, 1, 0,  25, 0, 2, 5, 6,
                            0, 24, 0, 2,  5, 6, 2, 8, 2, 0, 23, 0,  1, 6, 1, 0};
  Write(directory, "client_rows", well + table + rows);
  client::Model model;
  model.tensors.push_back({.name = "w", .shape = {2, 3}});
  model.groups.push_back({.learning_rate = 0.1});
  model.algorithm = 1;
  Write(directory, "client_model", '\xff' + client::EncodeModel(model));
}

absl::Status WriteAll(const std::string& directory) {
  RUBATO_ASSIGN_OR_RETURN(const std::string log, UpdateLog(directory));
  Write(directory, "update_log_whole", log + '\0');
  Write(directory, "update_log_torn", log.substr(0, log.size() - 3) + '\0');
  Write(directory, "update_log_repaired", log + '\1');
  const std::string images = Idx({3, 2, 3}, std::string(18, '\x40'));
  const std::string labels = Idx({3}, {0, 1, 3});
  Write(directory, "idx_plain", IdxPair(images, labels));
  Write(directory, "idx_gzip", IdxPair(Gzip(images), Gzip(labels)));
  Write(directory, "idx_flat", IdxPair(Idx({3, 6}, std::string(18, '\x7f')), labels));
  const std::string records = '\3' + std::string(3072, '\x40') + '\x9' + std::string(3072, '\x7f');
  Write(directory, "cifar_plain", records + '\0');
  Write(directory, "cifar_two_files", records + '\1');
  Write(directory, "cifar_gzip", Gzip(records) + '\0');
  const std::string text = "In the beginning was the Word, and the Word was with others.";
  Write(directory, "text_plain", text + '\0');
  Write(directory, "text_held_out", text + '\x40');
  Write(directory, "text_gzip", Gzip(text) + '\x40');
  const std::string pairs = "tokens 260\n116 104 th\n256 101 the\n32 257 _the\n104 101 he\n";
  Write(directory, "byte_pairs_few", "rubato byte pairs 1\nlower_case 0\n" + pairs);
  Write(directory, "byte_pairs_lower_case", "rubato byte pairs 1\nlower_case 1\n" + pairs);
  const std::string columns = "y,a,b,c,d\n1,0.5,3,x,One two\n0,,,,\n";
  Write(directory, "columns_plain", columns + '\0');
  Write(directory, "columns_quoted",
        "d,c,b,a,y\r\n\"a, \"\"b\"\"\n c\",\"\",1,-2,3\r\n,,0,1e3,0\r\n" + std::string("\4"));
  Write(directory, "columns_gzip", Gzip(columns) + '\2');
  const std::string sparse = "+1 1:0.5 7:-2 18446744073709551615:1e-3\n-1 qid:3 2:0 # a comment\n";
  Write(directory, "libsvm_sparse", sparse + '\x0a');
  Write(directory, "libsvm_dense", "0 1:0.25 2:3\r\n2\r\n" + std::string(1, '\0'));
  Write(directory, "libsvm_gzip", Gzip(sparse) + '\x08');
  WriteHellos(directory);
  WriteGradients(directory);
  WriteCalls(directory);
  return absl::OkStatus();
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  const absl::Status status =
      argc == 2 ? rubato::WriteAll(argv[1]) : absl::InvalidArgumentError("usage: make_corpus <directory>");
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}
