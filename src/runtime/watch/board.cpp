#include "runtime/watch/board.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <utility>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/fnv.hpp"

namespace lockstep::runtime {
namespace {

constexpr std::size_t n_slots = 512;

/// Others can also write to /dev/shm, so this opens only a regular file of this user.
std::optional<struct stat> status_of_own(const core::Descriptor& file) {
  struct stat status {};
  const bool is_own = file && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
  return is_own ? std::optional{status} : std::nullopt;
}

/// Returns "a link", "a folder", "a file of user 1000"; empty if no other user's file has the name.
std::string what_has_taken(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return "";
  if (S_ISLNK(status.st_mode)) return "a link";
  if (S_ISDIR(status.st_mode)) return "a folder";
  if (!S_ISREG(status.st_mode)) return "a pipe or device";
  return status.st_uid != geteuid() ? fmt::format("a file of user {}", status.st_uid) : "";
}

/// Only the first process of the node fails, which ends the job; the others would report the same.
void refuse_if_taken(const LauncherHint& hint, const std::string& path) {
  const std::string what = what_has_taken(path);
  if (what.empty() || hint.local_rank.value_or(0) != 0) return;
  throw core::Error{
      core::ExitCode::system,
      {.what = fmt::format("'{}' is {}: the ranks of this node need a file of their own with this name", path, what),
       .where = "",
       .expected = "no file of another user, folder or link of this name",
       .fix = "remove it, or ask its owner to do so: it keeps this job from running, and may be there on purpose"}};
}

/// Whether a process that exists and has not left holds the slot.
bool is_held(const BoardSlot& slot) { return slot.left.load() == 0 && find_owner(slot).has_value(); }

// A younger board may belong to processes that have not taken their slots yet.
constexpr std::time_t least_age_s = 60;

constexpr std::size_t key_digits = 16;  // of a name

ProcessKey find_my_key() {
  const auto me = read_process(getpid());
  return make_process_key(getpid(), me ? me->start_time : 0);
}

}  // namespace

struct Board::Layout {
  std::atomic<ProcessKey> reporter;
  std::atomic<std::uint32_t> report_is_out;
  std::atomic<std::uint32_t> file_is_removed;
  std::array<BoardSlot, n_slots> slots;
};

ProcessKey make_process_key(pid_t pid, std::uint64_t start_time) noexcept {
  return static_cast<std::uint64_t>(pid) << 32 | (start_time & 0xffffffff);
}

pid_t pid_of(ProcessKey key) noexcept { return static_cast<pid_t>(key >> 32); }

std::optional<ProcessStatus> find_owner(const BoardSlot& slot) {
  const ProcessKey key = slot.owner.load(std::memory_order_acquire);
  if (key == 0) return std::nullopt;
  const auto process = read_process(pid_of(key));
  if (!process || make_process_key(pid_of(key), process->start_time) != key) return std::nullopt;
  if (process->state == 'Z' || process->state == 'X') return std::nullopt;
  return process;
}

int signal_stopped(std::span<BoardSlot> slots, int signal) {
  int n = 0;
  for (const BoardSlot& slot : slots) {
    const auto process = find_owner(slot);
    const pid_t pid = pid_of(slot.owner.load());
    if (process && is_standing_still(process->state) && is_of_this_user(pid) && kill(pid, signal) == 0) ++n;
  }
  return n;
}

std::unique_ptr<Board> Board::join(const LauncherHint& hint, const std::string& directory) {
  if (hint.name.empty()) return nullptr;
  const std::string prefix = fmt::format("lockstep-{}-", getuid());
  std::string path = fmt::format("{}/{}{:016x}", directory, prefix, core::fnv1a(hint.job_key));
  if (hint.local_rank.value_or(0) == 0) remove_abandoned(directory, prefix);
  const core::Descriptor file{open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)};
  const auto before = status_of_own(file);
  if (!before) refuse_if_taken(hint, path);
  if (!before) return nullptr;
  // Reserves the file now: a full file system is an error here, not a SIGBUS at the first access.
  if (posix_fallocate(file.get(), 0, sizeof(Layout)) != 0) {
    if (before->st_size == 0) unlink(path.c_str());  // without room, no process has a board
    return nullptr;
  }
  void* const memory = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  std::unique_ptr<Board> board{
      new Board{static_cast<Layout*>(memory), std::move(path), hint.n_local_ranks.value_or(0)}};
  board->clear_if_abandoned();
  if (!board->take_slot(hint)) return nullptr;
  if (board->is_complete()) board->remove_file();
  return board;
}

/// Removes boards of jobs that were killed before all their processes had arrived, and whose launchers will not return.
void Board::remove_abandoned(const std::string& directory, const std::string& prefix) {
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator{directory, error}; !error && entry != end(entry);
       entry.increment(error)) {
    const std::string path = entry->path().string();
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || name.size() != prefix.size() + key_digits) continue;
    const core::Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    const auto status = status_of_own(file);
    if (!status || status->st_size != static_cast<off_t>(sizeof(Layout)) ||
        std::time(nullptr) - status->st_mtime < least_age_s)
      continue;
    void* const memory = mmap(nullptr, sizeof(Layout), PROT_READ, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) continue;
    const Layout& layout = *static_cast<const Layout*>(memory);
    if (std::none_of(layout.slots.begin(), layout.slots.end(), is_held)) unlink(path.c_str());
    munmap(memory, sizeof(Layout));
  }
}

Board::Board(Layout* layout, std::string path, int n_expected) noexcept
    : layout_{layout}, path_{std::move(path)}, n_expected_{std::min(n_expected, static_cast<int>(n_slots))} {}

Board::~Board() {
  if (mine_ != nullptr) {
    mine_->left.store(1, std::memory_order_release);
    if (!is_anyone_here()) remove_file();
  }
  munmap(layout_, sizeof(Layout));
}

std::span<BoardSlot> Board::slots() const noexcept { return layout_->slots; }

/// A job that was killed during its start may have left a file. Several processes may find it; each frees only slots
/// whose owner is gone, so none can undo the arrival of another.
void Board::clear_if_abandoned() noexcept {
  if (is_anyone_here()) return;
  layout_->reporter.store(0);
  layout_->report_is_out.store(0);
  for (BoardSlot& slot : slots()) {
    ProcessKey owner = slot.owner.load();
    if (owner != 0 && !find_owner(slot)) slot.owner.compare_exchange_strong(owner, 0);
  }
}

bool Board::take_slot(const LauncherHint& hint) noexcept {
  const ProcessKey key = find_my_key();
  const auto try_take = [&](BoardSlot& slot) {
    ProcessKey seen = slot.owner.load();
    if (is_held(slot) || !slot.owner.compare_exchange_strong(seen, key)) return false;
    slot.rank.store(hint.rank.value_or(-1));
    slot.position.store(0);
    slot.phase.store(0);
    slot.left.store(0);
    slot.unit.store(0);
    slot.wait.store(0);
    mine_ = &slot;
    return true;
  };
  const auto all = slots();
  if (hint.local_rank && static_cast<std::size_t>(*hint.local_rank) < all.size())
    return try_take(all[static_cast<std::size_t>(*hint.local_rank)]);
  return std::any_of(all.begin(), all.end(), try_take);
}

bool Board::is_complete() const {
  const auto expected = slots().first(static_cast<std::size_t>(n_expected_));
  return !expected.empty() &&
         std::all_of(expected.begin(), expected.end(), [](const BoardSlot& slot) { return slot.owner.load() != 0; });
}

bool Board::is_anyone_here() const {
  const auto all = slots();
  return std::any_of(all.begin(), all.end(), is_held);
}

/// Called by one process only, because a later run under the same launcher may already have created a file of that
/// name.
void Board::remove_file() noexcept {
  if (layout_->file_is_removed.exchange(1) == 0) unlink(path_.c_str());
}

bool Board::claim_report() noexcept {
  ProcessKey nobody = 0;
  return layout_->reporter.compare_exchange_strong(nobody, mine_->owner.load());
}

void Board::publish_report() noexcept {
  layout_->report_is_out.store(1, std::memory_order_release);
  remove_file();
}

bool Board::is_report_out() const noexcept { return layout_->report_is_out.load(std::memory_order_acquire) != 0; }

}  // namespace lockstep::runtime
