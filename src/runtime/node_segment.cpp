#include "runtime/node_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <new>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "runtime/session.hpp"

namespace lockstep::runtime {
namespace {

constexpr const char* segments_folder = "/dev/shm";
constexpr std::string_view name_begin = "lockstep-";
constexpr std::size_t n_random_digits = 24;  // in a name; a board has fewer

/// Returns the process in the name of a segment; 0 if the name is another one.
pid_t creator_in(std::string_view name) {
  if (!name.starts_with(name_begin)) return 0;
  name.remove_prefix(name_begin.size());
  pid_t creator = 0;
  const auto [rest, status] = std::from_chars(name.data(), name.data() + name.size(), creator);
  const std::string_view digits = name.substr(static_cast<std::size_t>(rest - name.data()));
  const bool is_name = status == std::errc{} && digits.size() == 1 + n_random_digits && digits.front() == '-' &&
                       digits.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
  return is_name ? std::max(creator, 0) : 0;
}

bool is_abandoned(const std::filesystem::path& path) {
  constexpr std::time_t least_age_s = 60;
  const pid_t creator = creator_in(path.filename().string());
  struct stat status {};
  if (creator == 0 || lstat(path.c_str(), &status) != 0) return false;
  return S_ISREG(status.st_mode) && status.st_uid == geteuid() && std::time(nullptr) - status.st_mtime >= least_age_s &&
         kill(creator, 0) != 0 && errno == ESRCH;
}

/// The step that failed on one rank; all zero: none did.
struct Failure {
  enum class Step : int { none, create, open, reserve, map };
  Step step = Step::none;
  int error = 0;
  int rank = 0;
};

std::string_view name(Failure::Step step) {
  constexpr std::array<std::string_view, 5> names{"", "create", "open", "reserve", "map"};
  return names[static_cast<std::size_t>(step)];
}

/// Memory of all ranks, one after another, each on its own pages, so that its owner places it.
struct Layout {
  std::vector<std::size_t> begins;  ///< and the end
  [[nodiscard]] std::size_t total() const noexcept { return begins.back(); }
};

// Collective.
Layout plan_layout(const Communicator& node, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto sizes = gather_values<std::size_t>(node, std::span<const std::size_t>{&bytes, 1});
  sizes.resize(static_cast<std::size_t>(node.n_ranks()));
  node.broadcast(std::as_writable_bytes(std::span{sizes}));
  Layout layout{{0}};
  // Every part gets memory, because an empty one would have no address.
  for (const std::size_t size : sizes)
    layout.begins.push_back(layout.begins.back() + std::max<std::size_t>(1, (size + page - 1) / page) * page);
  return layout;
}

// Collective: returns the failure of the lowest rank that has one.
Failure agree(const Communicator& node, Failure mine) {
  mine.rank = node.rank();
  const auto all = gather_values<Failure>(node, std::span<const Failure>{&mine, 1});
  const auto first = std::ranges::find_if(all, [](const Failure& f) { return f.step != Failure::Step::none; });
  return broadcast_value(node, first != all.end() ? *first : Failure{});
}

std::string describe_room() {
  struct statvfs room {};
  if (statvfs(segments_folder, &room) != 0) return fmt::format("there is no {}", segments_folder);
  return fmt::format("{} has {} left", segments_folder,
                     core::format_bytes({std::uint64_t{room.f_bavail} * room.f_frsize}));
}

[[noreturn]] void fail(const Failure& failure, std::size_t total, int n_ranks, const std::string& room) {
  throw core::Error{
      core::ExitCode::system,
      {.what = fmt::format("{} ranks on {} cannot share {} of memory: local rank {} cannot {} it: {}; {}", n_ranks,
                           host_name(), core::format_bytes({total}), failure.rank, name(failure.step),
                           core::system_reason(failure.error), room),
       .where = "",
       .expected = fmt::format("enough room in {}, address space, memory and file descriptors", segments_folder),
       .fix = "enlarge it (mount -o remount,size=2G /dev/shm; docker run --shm-size 2g), or start fewer ranks per "
              "node; reduce_all also has algorithms without shared memory, such as --algorithm ring"},
      core::SourceLocation::current()};
}

// The most that is reserved at once; between reservations, signals are checked.
constexpr std::size_t largest_reservation = std::size_t{1} << 30;

// Older kernels interrupt a reservation for any signal, and then it starts again.
int reserve(int file, std::size_t begin, std::size_t size) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = posix_fallocate(file, static_cast<off_t>(begin), static_cast<off_t>(size));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

class NodeSegment final : public SharedSegment {
 public:
  NodeSegment(const Communicator& node, std::size_t bytes) : layout_{plan_layout(node, bytes)} {
    std::array<char, 64> path{};
    core::Descriptor file;
    const std::string room = node.broadcast(node.rank() == 0 ? describe_room() : std::string{});
    Failure mine;
    if (node.rank() == 0) mine = create(path, file);
    if (const Failure first = agree(node, mine); first.step != Failure::Step::none)
      fail(first, layout_.total(), node.n_ranks(), room);
    node.broadcast(std::as_writable_bytes(std::span{path}));
    if (!file) file = core::Descriptor{::open(path.data(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
    if (!file) mine = {Failure::Step::open, errno};
    const Failure unopened = agree(node, mine);
    if (node.rank() == 0) ::unlink(path.data());  // before it has a page: a process killed from here on leaves nothing
    if (unopened.step != Failure::Step::none) fail(unopened, layout_.total(), node.n_ranks(), room);
    if (const Failure first = agree(node, reserve_and_map(node, file.get())); first.step != Failure::Step::none) {
      unmap();
      fail(first, layout_.total(), node.n_ranks(), room);
    }
    const std::span<std::byte> own = part(node.rank());
    std::memset(own.data(), 0, own.size());
    node.barrier();
  }
  ~NodeSegment() override { unmap(); }
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  std::span<std::byte> part(int rank) const override {
    const auto r = static_cast<std::size_t>(rank);
    return {memory_ + layout_.begins[r], layout_.begins[r + 1] - layout_.begins[r]};
  }

 private:
  // Chooses a name that nobody can predict.
  Failure create(std::array<char, 64>& path, core::Descriptor& file) const {
    remove_abandoned_segments(segments_folder);
    std::random_device random;
    fmt::format_to_n(path.data(), path.size() - 1, "{}/{}{}-{:08x}{:08x}{:08x}", segments_folder, name_begin, getpid(),
                     random(), random(), random());
    file = core::Descriptor{::open(path.data(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
    if (file && ftruncate(file.get(), static_cast<off_t>(layout_.total())) == 0) return {};
    const int error = errno;
    if (file) ::unlink(path.data());
    return {Failure::Step::create, error};
  }

  // Each rank reserves its own part: a full file system is an error now, not a SIGBUS at an access.
  Failure reserve_and_map(const Communicator& node, int file) {
    const auto rank = static_cast<std::size_t>(node.rank());
    for (std::size_t begin = layout_.begins[rank]; begin < layout_.begins[rank + 1]; begin += largest_reservation)
      if (const int error = reserve(file, begin, std::min(largest_reservation, layout_.begins[rank + 1] - begin)))
        return {Failure::Step::reserve, error};
    void* const memory = mmap(nullptr, layout_.total(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return {Failure::Step::map, errno};
    memory_ = static_cast<std::byte*>(memory);
    return {};
  }

  void unmap() noexcept {
    if (memory_ != nullptr) munmap(memory_, layout_.total());
    memory_ = nullptr;
  }

  Layout layout_;
  std::byte* memory_ = nullptr;
};

/// For a single rank: ordinary memory, which may have more room than /dev/shm.
class LoneSegment final : public SharedSegment {
 public:
  explicit LoneSegment(std::size_t bytes) : size_{bytes}, memory_{::operator new(size_, alignment)} {
    std::memset(memory_.get(), 0, size_);
  }
  std::span<std::byte> part(int) const override { return {static_cast<std::byte*>(memory_.get()), size_}; }

 private:
  static constexpr std::align_val_t alignment{128};
  struct Delete {
    void operator()(void* memory) const noexcept { ::operator delete(memory, alignment); }
  };
  std::size_t size_;
  std::unique_ptr<void, Delete> memory_;
};

}  // namespace

void remove_abandoned_segments(const std::string& folder) noexcept try {
  std::error_code error;
  for (std::filesystem::directory_iterator entry{folder, error}, end; !error && entry != end; entry.increment(error))
    if (is_abandoned(entry->path())) ::unlink(entry->path().c_str());
} catch (const std::exception&) {
  // Leftovers cost memory, but do not fail a run.
}

std::unique_ptr<SharedSegment> share_on_node(const Communicator& node, std::size_t bytes) {
  if (node.n_ranks() == 1) return std::make_unique<LoneSegment>(bytes);
  return std::make_unique<NodeSegment>(node, bytes);
}

}  // namespace lockstep::runtime
