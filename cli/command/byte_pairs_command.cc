#include <iomanip>
#include <memory>
#include <string>

#include "cli/command/commands.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "worker/data/byte_pairs/byte_pairs.h"
#include "worker/data/byte_pairs/learn_from_files.h"

namespace rubato {
namespace {

using worker::BytePairs;

struct BytePairsOptions {
  worker::LearnOptions learn;
  std::string separator = ",";
  std::string output;
};

absl::Status LearnBytePairs(const Environment& environment, BytePairsOptions options) {
  if (options.separator.size() != 1) {
    return absl::InvalidArgumentError("--separator: value \"" + options.separator + "\"; allowed: one character");
  }
  options.learn.separator = options.separator[0];
  RUBATO_ASSIGN_OR_RETURN(const worker::LearnedPairs learned, LearnFromFiles(options.learn));
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(options.output, learned.pairs.Text()));
  *environment.out << "Wrote " << learned.pairs.size() << " tokens to " << options.output << ": "
                   << std::setprecision(3) << static_cast<double>(learned.bytes) / static_cast<double>(learned.tokens)
                   << " bytes of the text each, in the mean\n";
  if (learned.pairs.size() < options.learn.tokens) {
    *environment.out << "There are no more: no two of them follow each other twice\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddBytePairsCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("byte-pairs", "Learn byte pairs, the tokens of data.*.byte_pairs, from text");
  auto options = std::make_shared<BytePairsOptions>();
  command->add_option("FILE", options->learn.paths, "Files of text, plain or gzip: what the job trains with")
      ->required();
  command->add_option("--output", options->output, "The file to write")->required();
  command->add_option("--tokens", options->learn.tokens, "As many as there are at most; the 256 bytes are among them")
      ->check(CLI::Range(BytePairs::kBytes + 1, BytePairs::kMaxTokens))
      ->capture_default_str();
  command->add_flag("--lower-case", options->learn.lower_case, "Read A to Z as a to z, here and in the job");
  CLI::Option* const column =
      command->add_option("--column", options->learn.column, "The files have columns, and this one's text is read");
  command->add_option("--separator", options->separator, "Between columns")->capture_default_str()->needs(column);
  command
      ->add_option("--leave-out", options->learn.leave_out,
                   "The share at each file's end that is not read: data.text.test_fraction")
      ->check(CLI::Range(0.0, 0.999))
      ->capture_default_str()
      ->excludes(column);
  command->callback([options, environment, exit_code] {
    const absl::Status status = LearnBytePairs(*environment, *options);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "byte-pairs", status);
  });
}

}  // namespace rubato
