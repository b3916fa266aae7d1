// Runs a fuzz target over the files of corpus folders, as they are and with single bytes changed: what can be had of
// fuzzing with any compiler, and in the time of an ordinary test. usage: <target>_fuzz <folder>...
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t most_changes = 512;  // per file

std::vector<std::filesystem::path> files_in(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator{argv[i]}) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void run(std::vector<std::uint8_t> content) {
  (void)LLVMFuzzerTestOneInput(content.data(), content.size());
  const std::size_t step = content.size() / most_changes + 1;
  for (std::size_t i = 0; i < content.size(); i += step) {
    content[i] ^= static_cast<std::uint8_t>(1U << (i % 8));
    (void)LLVMFuzzerTestOneInput(content.data(), content.size());
    content[i] ^= static_cast<std::uint8_t>(1U << (i % 8));
    (void)LLVMFuzzerTestOneInput(content.data(), i);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto files = files_in(argc, argv);
  for (const auto& path : files) {
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);  // the last line names the file that broke the target
    std::ifstream file{path, std::ios::binary};
    run({std::istreambuf_iterator<char>{file}, {}});
  }
  if (files.empty()) std::fprintf(stderr, "no files to run\n");
  return files.empty() ? 1 : 0;
}
