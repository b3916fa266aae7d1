#include "checkpoint/reader.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>

#include "checkpoint/folder.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "io/digest.hpp"
#include "io/file.hpp"
#include "io/hdf5.hpp"
#include "runtime/together.hpp"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_damaged(const std::string& path, const std::string& what) {
  throw core::Error{core::ExitCode::failed,
                    {.what = fmt::format("checkpoint '{}' is damaged: {}", path, what),
                     .fix = "go on from an older one; lockstep names them when it looks for the newest"}};
}

std::string read_part(const std::string& path, std::string_view name) try {
  return io::read_text((fs::path{path} / name).string());
} catch (const core::Error& error) {
  if (std::error_code unknown; error.code() != core::ExitCode::usage || fs::exists(fs::path{path} / name, unknown))
    throw;
  throw core::Error{core::ExitCode::failed,
                    {.what = fmt::format("checkpoint '{}' is incomplete: it has no {}", path, name),
                     .fix = "go on from an older one"}};
}

bool are_of_one_tensor(const Box& a, const Box& b) {
  return a.shape == b.shape && a.n_outer * a.n_rows * a.n_inner == b.n_outer * b.n_rows * b.n_inner;
}

bool is_cut_alike(const Box& a, const Box& b) { return a.n_rows == b.n_rows && a.n_inner == b.n_inner; }

}  // namespace

Checkpoint::Checkpoint(const std::string& path) : path_{path} {
  std::string expected = read_part(path, done_name);
  while (!expected.empty() && expected.back() == '\n') expected.pop_back();
  const std::string text = read_part(path, index_name);
  if (io::digest_of(std::as_bytes(std::span{text})) != expected)
    fail_damaged(path, fmt::format("{} and {} do not fit", index_name, done_name));
  index_ = parse_index(text, (fs::path{path} / index_name).string());
}

std::string Checkpoint::path_of(const FileRecord& file) const { return (fs::path{path_} / file.name).string(); }

void Checkpoint::check_file(const FileRecord& file) const {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path_of(file), error);
  if (error == std::errc::no_such_file_or_directory) fail_damaged(path_, fmt::format("it has no {}", file.name));
  if (error)
    throw core::Error{core::ExitCode::system,
                      {.what = fmt::format("cannot look at '{}': {}", path_of(file), error.message())}};
  if (size != file.bytes) fail_damaged(path_, fmt::format("{} has {} bytes, not {}", file.name, size, file.bytes));
}

void Checkpoint::check_files() const {
  for (const FileRecord& file : index_.files) check_file(file);
}

void Checkpoint::verify(std::size_t i) const {
  const FileRecord& file = index_.files.at(i);
  check_file(file);
  if (io::digest_of_file(path_of(file)) != file.digest) fail_damaged(path_, file.name + " is not what was written");
}

core::Bytes Checkpoint::bytes() const noexcept {
  std::uint64_t n = 0;
  for (const FileRecord& file : index_.files) n += file.bytes;
  return {n};
}

std::vector<Box> Checkpoint::tensors() const {
  std::map<std::string, Box> all;
  for (const FileRecord& file : index_.files)
    for (const Piece& piece : file.pieces) all.try_emplace(piece.box.tensor, whole(piece.box.tensor, piece.box.shape));
  std::vector<Box> boxes;
  for (auto& [name, box] : all) boxes.push_back(std::move(box));
  return boxes;
}

std::optional<Box> Checkpoint::find(const std::string& tensor) const {
  for (const FileRecord& file : index_.files)
    for (const Piece& piece : file.pieces)
      if (piece.box.tensor == tensor) return whole(tensor, piece.box.shape);
  return std::nullopt;
}

// Kept open, but for so many that a process may have no room for them.
std::shared_ptr<io::Hdf5File> Checkpoint::open(std::size_t file) const {
  constexpr std::size_t most_open = 256;
  open_.resize(n_files());
  if (open_[file]) return open_[file];
  auto opened = std::make_shared<io::Hdf5File>(io::Hdf5File::open(path_of(index_.files[file])));
  if (n_files() <= most_open) open_[file] = opened;
  return opened;
}

void Checkpoint::read(const Box& box, std::span<float> values) const {
  std::size_t n_read = 0;
  for (std::size_t i = 0; i < n_files(); ++i) {
    for (const Piece& piece : index_.files[i].pieces) {
      if (piece.box.tensor != box.tensor) continue;
      if (!are_of_one_tensor(piece.box, box)) fail_damaged(path_, box.tensor + " has another shape");
      if (is_cut_alike(piece.box, box) && intersection(piece.box.rows, box.rows).empty()) continue;
      const std::shared_ptr<io::Hdf5File> file = open(i);
      const io::Hdf5Dataset dataset = file->open_dataset("/" + box.tensor);
      const bool is_all = piece.box == box;
      std::vector<float> stored(is_all ? 0 : piece.box.n_elements());
      const std::span<float> target = is_all ? values : std::span{stored};
      dataset.read_rows(0, dataset.dimensions().front(), std::as_writable_bytes(target));
      n_read += is_all ? values.size() : copy_common(piece.box, stored, box, values);
    }
  }
  if (n_read != box.n_elements()) fail_damaged(path_, "it does not have all of " + box.tensor);
}

Checkpoint open_checkpoint(const runtime::Communicator& world, const std::string& path) {
  const std::string shared = world.broadcast(path);
  std::optional<Checkpoint> checkpoint;
  runtime::together(world, [&] {
    checkpoint.emplace(shared);
    for (auto i = static_cast<std::size_t>(world.rank()); i < checkpoint->n_files();
         i += static_cast<std::size_t>(world.n_ranks()))
      checkpoint->verify(i);
  });
  return std::move(*checkpoint);
}

std::optional<Checkpoint> open_first_whole(const runtime::Communicator& world, const std::vector<std::string>& paths) {
  const std::uint64_t n = runtime::broadcast_value(world, std::uint64_t{paths.size()});
  for (std::size_t i = 0; i < n; ++i) {
    try {
      return open_checkpoint(world, world.rank() == 0 ? paths[i] : "");
    } catch (const core::Error& error) {
      if (error.code() != core::ExitCode::failed) throw;
      if (world.rank() == 0) core::log_warning(fmt::format("{}; passed over", error.problem().what));
    }
  }
  return std::nullopt;
}

Checkpoint open_newest(const runtime::Communicator& world, const std::string& path, std::string_view where) {
  const bool is_first = world.rank() == 0;
  if (runtime::broadcast_value(world, is_first && is_checkpoint(path))) return open_checkpoint(world, path);
  std::vector<std::string> paths;
  runtime::together(world, [&] {
    if (is_first) paths = require_checkpoints(path, where);
  });
  if (auto newest = open_first_whole(world, paths)) return std::move(*newest);
  throw core::Error{core::ExitCode::failed,
                    {.what = fmt::format("no checkpoint in '{}' is whole", path), .where = std::string{where}}};
}

}  // namespace lockstep::checkpoint
