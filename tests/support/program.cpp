#include "support/program.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "core/error.hpp"
#include "runtime/communicator_threads.hpp"
#include "support/text.hpp"

namespace lockstep::support {
namespace {

namespace fs = std::filesystem;

/// Lines that have `word`.
std::size_t count_lines(const std::string& text, std::string_view word) {
  std::istringstream lines{text};
  std::size_t n = 0;
  for (std::string line; std::getline(lines, line);)
    if (has(line, word)) ++n;
  return n;
}

void expect_says(const Ended& ended, std::string_view text, const std::vector<std::string>& says) {
  for (const std::string& words : says)
    EXPECT_TRUE(has(text, words)) << "not said: " << words << "\n--- stdout\n"
                                  << ended.out << "--- stderr\n"
                                  << ended.err;
}

/// Records the error with which the program would end the job in abort_job().
void note(Ended& ended, std::string& failure, const core::Error& error) {
  ended.exit_code = core::to_int(error.code());
  failure = std::string{"error: "} + error.what() + "\n";
}

std::string joined(const runtime::Communicator& world, const std::string& mine) {
  std::string all;
  for (const std::string& text : world.gather(mine)) all += text;
  return world.broadcast(all);
}

}  // namespace

std::string Ended::line(const std::string& key) const {
  std::istringstream lines{out};
  for (std::string text; std::getline(lines, text);)
    if (text.starts_with(key + " ")) return text.substr(key.size() + 1);
  return {};
}

Ended run_ranks(const std::vector<int>& nodes, const RunRank& run) {
  std::vector<int> exit_codes(nodes.size());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::string failure;
  Ended ended;
  try {
    runtime::run_as_threads({.nodes = nodes, .patience = {300}}, [&](runtime::Communicator& world) {
      exit_codes[static_cast<std::size_t>(world.rank())] = run(world);
    });
    ended.exit_code = exit_codes.front();
    EXPECT_EQ(std::ranges::count(exit_codes, ended.exit_code), std::ssize(exit_codes)) << "ranks end differently";
  } catch (const core::Error& error) {
    note(ended, failure, error);
  }
  ended.out = testing::internal::GetCapturedStdout();
  ended.err = testing::internal::GetCapturedStderr() + failure;
  return ended;
}

Ended run_processes(const runtime::Communicator& world, const RunRank& run) {
  world.barrier();  // a rank that is ahead may be about to change files that others read
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::string failure;
  Ended ended;
  try {
    ended.exit_code = run(world);
  } catch (const core::Error& error) {
    note(ended, failure, error);
  }
  const std::string out = testing::internal::GetCapturedStdout(), err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(world.highest(static_cast<std::uint8_t>(ended.exit_code)), ended.exit_code) << "ranks end differently";
  ended.out = joined(world, out);
  ended.err = joined(world, err + failure);
  return ended;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  bool is_quoted = false;
  bool is_word = false;
  for (const char c : line) {
    if (c == '\'') is_quoted = !is_quoted;
    const bool is_space = c == ' ' && !is_quoted;
    if (!is_space && !is_word) words.emplace_back();
    is_word = !is_space;
    if (is_word && c != '\'') words.back() += c;
  }
  return words;
}

std::map<std::string, std::string> files_here() {
  std::map<std::string, std::string> files;
  std::error_code ignored;  // links in a circle
  for (const auto& entry : fs::recursive_directory_iterator{"."}) {
    std::ostringstream bytes;
    if (entry.is_regular_file(ignored)) bytes << std::ifstream{entry.path(), std::ios::binary}.rdbuf();
    files[entry.path().string()] = std::move(bytes).str();
  }
  return files;
}

InFolder::InFolder(const runtime::Communicator& world)
    : world_{world}, before_{fs::current_path()}, folder_{fs::temp_directory_path() / "program-XXXXXX"} {
  if (world.rank() == 0 && mkdtemp(folder_.data()) == nullptr) core::fail_system("mkdtemp");
  folder_ = world.broadcast(folder_);
  fs::current_path(folder_);
}

InFolder::~InFolder() {
  fs::current_path(before_);
  world_.barrier();
  if (world_.rank() == 0) fs::remove_all(folder_);
}

void InFolder::write(const std::string& path, std::string_view bytes) {
  fs::create_directories(fs::absolute(path).parent_path());
  std::ofstream{path, std::ios::binary} << bytes;
}

Variables::Variables(const Values& values) {
  for (const auto& [name, value] : values) {
    const char* const before = std::getenv(name.c_str());
    before_[name] = before != nullptr ? std::optional<std::string>{before} : std::nullopt;
    setenv(name.c_str(), value.c_str(), 1);
  }
}

Variables::~Variables() {
  for (const auto& [name, value] : before_)
    static_cast<void>(value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str()));
}

bool matches(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex{pattern, std::regex::ECMAScript | std::regex::multiline});
}

void expect_refused(const Program& program, const Refused& refused) {
  for (const int n_ranks : {1, 3}) {
    if (refused.n_ranks != 0 && n_ranks == 3) break;
    SCOPED_TRACE(refused.line);
    const auto before = files_here();
    const Ended ended = program(words_of(refused.line), refused.n_ranks != 0 ? refused.n_ranks : n_ranks);
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_EQ(count_lines(ended.err, "error: "), 1U) << ended.err;
    EXPECT_EQ(ended.out, "");
    expect_says(ended, ended.err, refused.says);
    EXPECT_TRUE(before == files_here()) << "something was touched";
  }
}

Ended expect_done(const Program& program, const std::string& line, int n_ranks) {
  SCOPED_TRACE(line);
  Ended ended = program(words_of(line), n_ranks);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_FALSE(has(ended.err, "error: ")) << ended.err;
  return ended;
}

void expect_told(const Ended& ended, int code, const std::vector<std::string>& says) {
  EXPECT_EQ(ended.exit_code, code) << ended.err;
  expect_says(ended, ended.out + ended.err, says);
}

}  // namespace lockstep::support
