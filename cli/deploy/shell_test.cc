#include "cli/deploy/shell.h"

#include <array>
#include <cstdio>

#include "gtest/gtest.h"

namespace rubato {
namespace {

// What a command line prints when the system's shell runs it.
std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  while (size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), count);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

const std::vector<std::string> kNasty = {"",     " ",     "a b",  "'",     "''",       "\"",  "\\",    "\\'", "$HOME",
                                         "`id`", "$(id)", "*",    "?",     "~",        "-n",  "--",    "!",   "!!",
                                         "#x",   "a;b",   "a&b",  "a|b",   "<x>",      "(x)", "{a,b}", "[a]", "a=b",
                                         "\t",   "\n",    "a\nb", "größe", "\x01\x7f", "%s",  "\\n"};

TEST(ShellTest, AQuotedTextIsOneWordThatSaysTheSame) {
  for (const std::string& text : kNasty) {
    EXPECT_EQ(OutputOf("printf '%s.' " + ShellQuote(text)), text + ".");
  }
}

TEST(ShellTest, AssignmentsAndCommandsKeepNastyValuesThroughARemoteCommand) {
  for (const std::string& text : kNasty) {
    const std::string script =
        ShellAssignments({{"value", text}}) + ShellCommand({"printf", "%s,%s.", text, "x"}) + "; printf %s. \"$value\"";
    EXPECT_EQ(OutputOf(RemoteCommand(script, "")), text + ",x." + text + ".") << text;
  }
}

TEST(ShellTest, ARemoteCommandHasItsEnvironmentInputAndStatus) {
  EXPECT_EQ(OutputOf("echo input | " + RemoteCommand("cat; echo $RUBATO_JOB", "RUBATO_JOB=a-1")), "input\na-1\n");
  EXPECT_EQ(OutputOf(RemoteCommand("exit 7", "") + "; echo $?"), "7\n");
}

// Whatever shell the user logs in with, it sees nothing that it could take for its own.
TEST(ShellTest, ARemoteCommandIsMadeOfHarmlessCharacters) {
  for (const std::string& text : kNasty) {
    const std::string command = RemoteCommand(ShellQuote(text), "A=b");
    const size_t begin = command.find("echo ") + 5;
    for (size_t i = begin; i < command.find(" | base64"); ++i) {
      EXPECT_TRUE(isalnum(command[i]) || command[i] == '+' || command[i] == '/' || command[i] == '=') << command;
    }
  }
}

}  // namespace
}  // namespace rubato
