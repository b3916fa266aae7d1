#include "checkpoint/reader.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "checkpoint/content.hpp"
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

constexpr std::size_t most_open = 256;  ///< files, because a process may not open more

[[noreturn]] void fail_damaged(const std::string& path, const std::string& what) {
  throw core::Error{core::ExitCode::failed,
                    {.what = fmt::format("checkpoint '{}' is damaged: {}", path, what),
                     .fix = "resume from an older one; lockstep ckpt ls lists them"}};
}

/// Refuses an index whose digest is right: its fields are wrong on purpose or by another program, not by accident.
[[noreturn]] void refuse_impossible(const std::string& path, const std::string& what) {
  core::fail_usage(
      {.what = fmt::format("checkpoint '{}' is damaged: {}", path, what), .fix = std::string{damaged_fix}});
}

bool are_of_one_tensor(const Box& a, const Box& b) {
  return a.shape == b.shape && a.n_outer * a.n_rows * a.n_inner == b.n_outer * b.n_rows * b.n_inner;
}

}  // namespace

// Reads again if the checkpoint is removed or replaced meanwhile, because another one may have its name now.
Checkpoint::Checkpoint(const std::string& path) : path_{path} {
  constexpr int most_attempts = 10;
  for (int attempt = 1;; ++attempt) {
    if (is_gone(path)) throw gone_error(path);
    try {
      folder_ = std::make_shared<io::Folder>(path);
      read_index();
      return;
    } catch (const core::Error&) {
      if (attempt == most_attempts || !folder_ || folder_->is_in_place()) throw;
    }
  }
}

void Checkpoint::read_index() {
  std::string expected = read_part(done_name);
  while (!expected.empty() && expected.back() == '\n') expected.pop_back();
  const std::string text = read_part(index_name);
  if (io::digest_of(std::as_bytes(std::span{text})) != expected)
    fail_damaged(path_, fmt::format("{} does not match {}", index_name, done_name));
  index_ = parse_index(text, folder_->path_of(std::string{index_name}));
  open_.assign(n_files(), {});
  for (std::size_t i = 0; i < n_files() && n_files() <= most_open; ++i)
    if (folder_->has(index_.files[i].name)) open_[i].file = open_file(i);
}

std::string Checkpoint::read_part(std::string_view name) const {
  if (!folder_->has(std::string{name}))
    throw core::Error{core::ExitCode::failed,
                      {.what = fmt::format("checkpoint '{}' is incomplete: it has no {}", path_, name),
                       .fix = "resume from an older one; lockstep ckpt ls lists them"}};
  return io::read_text(folder_->open(std::string{name}));
}

std::shared_ptr<io::File> Checkpoint::open_file(std::size_t i) const {
  if (open_[i].file) return open_[i].file;
  const FileRecord& record = index_.files[i];
  if (!folder_->has(record.name)) {
    if (!folder_->is_in_place()) throw gone_error(path_);
    fail_damaged(path_, fmt::format("it has no {}", record.name));
  }
  return std::make_shared<io::File>(folder_->open(record.name));
}

void Checkpoint::check_files() const {
  for (std::size_t i = 0; i < n_files(); ++i) {
    const FileRecord& record = index_.files[i];
    if (const std::uint64_t size = open_file(i)->size().value; size != record.bytes)
      fail_damaged(path_, fmt::format("{} has {} bytes, not {}", record.name, size, record.bytes));
  }
}

void Checkpoint::verify(std::size_t i) const {
  const FileRecord& record = index_.files.at(i);
  const std::shared_ptr<io::File> file = open_file(i);
  if (const std::uint64_t size = file->size().value; size != record.bytes)
    fail_damaged(path_, fmt::format("{} has {} bytes, not {}", record.name, size, record.bytes));
  if (io::digest_of_file(*file) != record.digest) fail_damaged(path_, record.name + " differs from what was written");
  const std::shared_ptr<io::Hdf5File> hdf5 = open(i);
  for (const PieceRecord& piece : record.pieces) static_cast<void>(open_piece(*hdf5, i, piece));
}

core::Bytes Checkpoint::bytes() const noexcept {
  std::uint64_t n = 0;
  for (const FileRecord& file : index_.files) n += file.bytes;
  return {n};
}

std::vector<Box> Checkpoint::tensors() const {
  std::map<std::string, Box> all;
  for (const FileRecord& file : index_.files)
    for (const PieceRecord& piece : file.pieces)
      all.try_emplace(piece.box.tensor, whole(piece.box.tensor, piece.box.shape));
  std::vector<Box> boxes;
  for (auto& [name, box] : all) boxes.push_back(std::move(box));
  return boxes;
}

std::optional<Box> Checkpoint::find(const std::string& tensor) const {
  for (const FileRecord& file : index_.files)
    for (const PieceRecord& piece : file.pieces)
      if (piece.box.tensor == tensor) return whole(tensor, piece.box.shape);
  return std::nullopt;
}

// Opens by descriptor, because another file may have the name now. HDF5 refuses a file whose name is gone.
std::shared_ptr<io::Hdf5File> Checkpoint::open(std::size_t i) const {
  if (open_[i].hdf5) return open_[i].hdf5;
  const std::shared_ptr<io::File> file = open_file(i);
  std::shared_ptr<io::Hdf5File> opened;
  const auto complaint =
      core::complaint_of([&] { opened = std::make_shared<io::Hdf5File>(io::Hdf5File::open(*file)); });
  if (complaint && !is_in_place()) throw gone_error(path_);
  if (complaint && complaint->code() == core::ExitCode::usage) refuse_impossible(path_, complaint->problem().what);
  if (complaint) throw core::Error{*complaint};
  if (n_files() <= most_open) open_[i] = {.hdf5 = opened};
  return opened;
}

bool Checkpoint::is_in_place() const noexcept { return folder_->is_in_place(); }

io::Hdf5Dataset Checkpoint::open_piece(const io::Hdf5File& file, std::size_t i, const PieceRecord& piece) const {
  io::Hdf5Dataset dataset = file.open_dataset("/" + piece.box.tensor);
  std::uint64_t n = 1;
  bool is_too_large = dataset.dimensions().empty();
  for (const std::uint64_t size : dataset.dimensions()) is_too_large |= __builtin_mul_overflow(n, size, &n);
  if (is_too_large || n != piece.box.n_elements() || dataset.dtype() != core::DType::float32)
    refuse_impossible(path_, fmt::format("{} does not have the {} float32 elements of {} that the index records",
                                         index_.files[i].name, piece.box.n_elements(), piece.box.tensor));
  return dataset;
}

void Checkpoint::read(const Box& box, std::span<float> values) const {
  std::size_t n_read = 0;
  for (std::size_t i = 0; i < n_files(); ++i) {
    for (const PieceRecord& piece : index_.files[i].pieces) {
      if (piece.box.tensor != box.tensor) continue;
      if (!are_of_one_tensor(piece.box, box)) fail_damaged(path_, box.tensor + " has a different shape");
      const std::size_t n_common = count_common(piece.box, box);
      if (n_common == 0) continue;
      const std::shared_ptr<io::Hdf5File> file = open(i);
      const io::Hdf5Dataset dataset = open_piece(*file, i, piece);
      const bool is_all = n_common == box.n_elements() && n_common == piece.box.n_elements();
      std::vector<float> stored(is_all ? 0 : piece.box.n_elements());
      const std::span<float> target = is_all ? values : std::span{stored};
      dataset.read_rows(0, dataset.dimensions().front(), std::as_writable_bytes(target));
      n_read += is_all ? values.size() : copy_common(piece.box, stored, box, values);
    }
  }
  if (n_read != box.n_elements()) fail_damaged(path_, "it lacks a part of " + box.tensor);
}

bool is_gone(const std::string& path) noexcept {
  std::error_code error;
  return fs::status(path, error).type() == fs::file_type::not_found;
}

core::Error gone_error(const std::string& path) {
  return {core::ExitCode::usage,
          {.what = fmt::format("checkpoint '{}' is gone: its run has removed it meanwhile", path),
           .expected = "a checkpoint that its run keeps",
           .fix = "use a newer one (lockstep ckpt ls lists them), or let the run keep more: --keep N"}};
}

namespace {

/// Collective: returns nothing if a run has removed or replaced it meanwhile.
std::optional<Checkpoint> open_unless_gone(const runtime::Communicator& world, const std::string& path) {
  const std::string shared = world.broadcast(path);
  std::optional<Checkpoint> checkpoint;
  const auto complaint = core::complaint_of([&] {  // the same on all ranks
    runtime::together(world, [&] {
      checkpoint.emplace(shared);
      for (auto i = static_cast<std::size_t>(world.rank()); i < checkpoint->n_files();
           i += static_cast<std::size_t>(world.n_ranks()))
        checkpoint->verify(i);
    });
  });
  if (!complaint) return checkpoint;
  const bool is_other = is_gone(shared) || (checkpoint && !checkpoint->is_in_place());
  if (runtime::broadcast_value(world, world.rank() == 0 && is_other)) return std::nullopt;
  throw core::Error{*complaint};
}

}  // namespace

Checkpoint open_checkpoint(const runtime::Communicator& world, const std::string& path) {
  if (auto checkpoint = open_unless_gone(world, path)) {
    const std::string reason = misnamed_reason(checkpoint->path(), checkpoint->content());
    runtime::together(world, [&] { refuse_misnamed(checkpoint->path(), reason); });
    return std::move(*checkpoint);
  }
  throw gone_error(world.broadcast(path));
}

// Each removal takes a run some steps, so lists do not change forever.
std::optional<Checkpoint> open_first_whole(const runtime::Communicator& world, const ListPaths& list) {
  constexpr int most_lists = 100;
  std::set<std::string> told;  // on rank 0
  for (int n_lists = 1; n_lists <= most_lists; ++n_lists) {
    std::vector<std::string> paths;
    runtime::together(world, [&] { world.rank() == 0 ? void(paths = list()) : void(); });
    const std::uint64_t n = runtime::broadcast_value(world, std::uint64_t{paths.size()});
    bool has_changed = false;
    for (std::size_t i = 0; i < n && !has_changed; ++i) {
      const std::string path = world.rank() == 0 ? paths[i] : "";
      try {
        auto checkpoint = open_unless_gone(world, path);
        const std::string misnamed =
            world.broadcast(world.rank() == 0 && checkpoint ? misnamed_reason(path, checkpoint->content()) : "");
        if (checkpoint && misnamed.empty()) return checkpoint;
        has_changed = !checkpoint;
        if (!misnamed.empty() && world.rank() == 0 && told.insert(path).second)
          core::log_warning(fmt::format("checkpoint '{}' has the name of another step: {}; skipped", path, misnamed));
      } catch (const core::Error& error) {
        if (error.code() != core::ExitCode::failed) throw;
        if (world.rank() == 0 && told.insert(path).second)
          core::log_warning(fmt::format("{}; skipped", error.problem().what));
      }
    }
    if (!has_changed) return std::nullopt;
  }
  return std::nullopt;
}

Checkpoint open_newest(const runtime::Communicator& world, const std::string& path, std::string_view where) {
  const bool is_first = world.rank() == 0;
  if (runtime::broadcast_value(world, is_first && is_checkpoint(path))) return open_checkpoint(world, path);
  if (auto newest = open_first_whole(world, [&] { return require_checkpoints(path, where); }))
    return std::move(*newest);
  throw core::Error{core::ExitCode::failed,
                    {.what = fmt::format("no checkpoint in '{}' is whole", path), .where = std::string{where}}};
}

}  // namespace lockstep::checkpoint
