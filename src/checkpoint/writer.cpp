#include "checkpoint/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "checkpoint/folder.hpp"
#include "checkpoint/index.hpp"
#include "core/error.hpp"
#include "core/pending.hpp"
#include "core/temporary.hpp"
#include "io/digest.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/together.hpp"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Names of the files of the existing checkpoint, if there is one.
std::set<std::string> names_in(const std::string& path) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry{path, error}, end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == index_name || name == done_name || is_rank_file(name)) names.insert(name);
  }
  return names;
}

/// Called on rank 0.
void make_folder(const std::string& path, std::optional<core::PendingFolder>& pending) {
  const fs::path folder = fs::path{path}.parent_path();
  if (fs::is_symlink(fs::symlink_status(path)))
    core::fail_usage({.what = fmt::format("'{}' is a symbolic link, which no checkpoint replaces", path),
                      .expected = "a new name, or a checkpoint to replace",
                      .fix = "move the link away"});
  std::error_code error;
  const bool is_new = fs::create_directories(folder, error);
  if (error && fs::exists(folder) && !fs::is_directory(folder))
    core::fail_usage({.what = fmt::format("'{}' is not a folder, so no checkpoint can be in it", folder.string()),
                      .expected = "a folder, or nothing of this name",
                      .fix = "move it away"});
  if (error) core::fail_system(fmt::format("cannot make the folder '{}': {}", folder.string(), error.message()));
  if (is_new) core::sync_to_disk(fs::absolute(folder).parent_path().string());
  core::remove_leftovers(folder.string(), "");
  pending.emplace(path, names_in(path), "");
}

/// Lays out the file, unless that was already done for the same boxes.
void lay_out(const std::string& folder, int rank, const std::vector<Box>& boxes, std::optional<RankFile>& file) {
  if (!file || file->boxes() != boxes) file.emplace(folder, rank, boxes);
}

/// Collective: returns the folder that all ranks write to; `pending` is rank 0's.
std::string begin_folder(const runtime::Communicator& world, const std::string& path,
                         std::optional<core::PendingFolder>& pending) {
  const bool is_first = world.rank() == 0;
  runtime::together(world, [&] { is_first ? make_folder(path, pending) : void(); });
  return world.broadcast(is_first ? fs::absolute(pending->path()).string() : "");
}

/// Called on rank 0 when all files are on the disk.
void commit(core::PendingFolder& pending, const std::string& content, const std::vector<std::string>& records,
            runtime::Drill* drill) {
  Index index{.content = content};
  for (const std::string& text : records)
    if (!text.empty()) index.files.push_back(parse_file_record(text));
  const std::string text = to_text(index);
  const std::string digest = io::digest_of(std::as_bytes(std::span{text})) + "\n";
  const fs::path folder{pending.path()};
  if (const int error = drill != nullptr ? drill->write("sync") : 0)
    core::fail_system(fmt::format("cannot sync '{}': {}", (folder / index_name).string(), core::system_reason(error)));
  core::write_whole((folder / index_name).string(), std::as_bytes(std::span{text}));
  core::write_whole((folder / done_name).string(), std::as_bytes(std::span{digest}));
  pending.commit();
}

}  // namespace

void write_checkpoint(const runtime::Communicator& world, const std::string& path, const std::string& content,
                      const std::vector<Box>& mine, const FillBox& fill, std::optional<RankFile>& file,
                      runtime::Drill* drill) {
  std::optional<core::PendingFolder> pending;
  const std::string folder = begin_folder(world, path, pending);
  std::string record;
  runtime::together(world, [&] {
    if (mine.empty()) return;
    lay_out(folder, world.rank(), mine, file);
    record = to_text(file->write(folder, fill, drill));
  });
  const std::vector<std::string> records = world.gather(record);
  runtime::together(world, [&] { world.rank() == 0 ? commit(*pending, content, records, drill) : void(); });
}

struct BackgroundSave::State {
  const runtime::Communicator& world;
  std::string content;
  FillBox fill;
  runtime::Drill* drill;
  std::optional<core::PendingFolder> pending{};
  std::string folder{};
  std::string record{};
  std::vector<std::string> records{};
  std::exception_ptr error{};  ///< of the current stage
  std::atomic<std::uint64_t> n_done{0};
  std::uint64_t n_joined = 0;
  std::thread thread{};

  ~State() { wait(); }
  void wait() noexcept {
    if (thread.joinable()) thread.join();
  }
  void start(const std::function<void()>& stage);
};

void BackgroundSave::State::start(const std::function<void()>& stage) {
  const runtime::NoInterrupts signals_are_for_others;
  thread = std::thread{[this, stage] {
    try {
      stage();
    } catch (...) {
      error = std::current_exception();
    }
    ++n_done;
  }};
}

BackgroundSave::BackgroundSave(const runtime::Communicator& world, const std::string& path, std::string content,
                               const std::vector<Box>& mine, FillBox fill, std::optional<RankFile>& file,
                               runtime::Drill* drill)
    : state_{new State{.world = world, .content = std::move(content), .fill = std::move(fill), .drill = drill}} {
  State& state = *state_;
  state.folder = begin_folder(world, path, state.pending);
  runtime::together(world, [&] {
    if (mine.empty()) return void(++state.n_done);
    lay_out(state.folder, world.rank(), mine, file);
    state.start(
        [&state, &written = *file] { state.record = to_text(written.write(state.folder, state.fill, state.drill)); });
  });
}

BackgroundSave::~BackgroundSave() = default;

std::uint64_t BackgroundSave::n_done() const noexcept { return state_->n_done; }

bool BackgroundSave::may_advance(std::uint64_t n_done_of_all) const noexcept {
  return n_done_of_all == (state_->n_joined + 1) * static_cast<std::uint64_t>(state_->world.n_ranks());
}

bool BackgroundSave::advance() {
  State& state = *state_;
  runtime::together(state.world, [&] {
    state.wait();
    if (state.error) std::rethrow_exception(state.error);
  });
  if (++state.n_joined == n_stages) return true;
  state.records = state.world.gather(state.record);
  runtime::together(state.world, [&] {
    state.world.rank() == 0
        ? state.start([&state] { commit(*state.pending, state.content, state.records, state.drill); })
        : void(++state.n_done);
  });
  return false;
}

}  // namespace lockstep::checkpoint
