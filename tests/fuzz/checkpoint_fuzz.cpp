// The folder of a checkpoint, or of a bad step: an index with its right digest, and a rank's file that is one, or a
// link, a pipe, a folder, or not there. Input: a letter for the file, the index, and behind a zero byte the file's
// bytes. In the index @digest and @bytes stand for what the file has.
#include <sys/stat.h>

#include <cstdlib>
#include <optional>

#include "checkpoint/compare.hpp"
#include "checkpoint/tensors.hpp"
#include "checkpoint/writer.hpp"
#include "importer_fuzz.hpp"
#include "io/digest.hpp"
#include "training/check/replay.hpp"

namespace {

using namespace lockstep;
namespace fs = std::filesystem;

constexpr std::uint64_t most_elements = std::uint64_t{1} << 16;

const fuzz::Folder& folder() {
  static const fuzz::Folder one;
  return one;
}

/// A file as Lockstep writes it, of parameter/bias [1] and parameter/weight [2, 3].
const std::string& written() {
  static const std::string bytes = [] {
    const std::string path = folder().path() + "/made/step-000000001";
    const std::vector<checkpoint::Box> boxes{checkpoint::whole("parameter/bias", {1}),
                                             checkpoint::whole("parameter/weight", {2, 3})};
    const auto fill = [](std::size_t i, std::span<float> values) {
      std::ranges::fill(values, static_cast<float>(i) + 0.5F);
    };
    std::optional<checkpoint::RankFile> file;
    checkpoint::write_checkpoint(runtime::Communicator::alone(), path, "{}", boxes, fill, file);
    std::ifstream stream{path + "/rank-00000.h5", std::ios::binary};
    return std::string{std::istreambuf_iterator<char>{stream}, {}};
  }();
  return bytes;
}

void replace_all(std::string& text, std::string_view word, const std::string& by) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
}

void write(const std::string& path, std::string_view content) { std::ofstream{path, std::ios::binary} << content; }

/// Whether it is a regular file of the folder.
bool make_rank_file(char kind, const std::string& path, std::string_view content) {
  const std::string outside = folder().path() + "/outside.h5";
  if (kind == 'l') {
    write(outside, content);
    fs::create_symlink(outside, path);
  } else if (kind == 'p') {
    if (mkfifo(path.c_str(), 0600) != 0) std::abort();
  } else if (kind == 'f') {
    fs::create_directory(path);
  } else if (kind != 'a') {
    write(path, content);
    return true;
  }
  return false;
}

/// What can be opened can be read, and equals itself.
void read_all(const checkpoint::Checkpoint& from) {
  for (const checkpoint::TensorSource& source : {checkpoint::all_tensors(from), checkpoint::weights_of(from)})
    for (std::size_t i = 0; i < source.tensors.size(); ++i) {
      if (nn::n_elements(source.tensors[i].spec.shape) > most_elements) return;
      std::vector<float> values(nn::n_elements(source.tensors[i].spec.shape));
      source.read(i, values);
    }
  if (checkpoint::compare(from, from).n_differing > 0) std::abort();
}

void try_checkpoint(const std::string& path, bool has_file) {
  try {
    const checkpoint::Checkpoint from = checkpoint::open_checkpoint(runtime::Communicator::alone(), path);
    if (from.n_files() > 0 && !has_file) std::abort();
    read_all(from);
  } catch (const core::Error& error) {
    if (std::string_view{error.what()}.find("json.exception") != std::string_view::npos) std::abort();
    if (std::string_view{error.what()}.find("broken promise") != std::string_view::npos) std::abort();
  }
}

void try_replay(const std::string& path) {
  try {
    static_cast<void>(training::parse_replay({"--replay", path}));
  } catch (const core::Error& error) {
    if (std::string_view{error.what()}.find("json.exception") != std::string_view::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > fuzz::most_input_bytes) return 0;
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const std::size_t end = input.find('\0');
  std::string index{input.substr(1, end == std::string_view::npos ? end : end - 1)};
  const std::string_view content =
      input[0] == 'b' && end != std::string_view::npos ? input.substr(end + 1) : std::string_view{written()};
  replace_all(index, "@digest", io::digest_of(std::as_bytes(std::span{content})));
  replace_all(index, "@bytes", std::to_string(content.size()));
  const std::string path = folder().path() + "/checkpoint";
  fs::remove_all(path);
  fs::create_directories(path);
  write(path + "/index.json", index);
  write(path + "/DONE", io::digest_of(std::as_bytes(std::span{index})) + "\n");
  const bool has_file = make_rank_file(input[0], path + "/rank-00000.h5", content);
  try_checkpoint(path, has_file);
  if (index.find("bad_step") != std::string::npos) try_replay(path);
  return 0;
}
