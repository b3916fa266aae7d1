#include "training/doctor/meeting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>

#include "core/descriptor.hpp"
#include "core/error.hpp"
#include "training/doctor/asked.hpp"

namespace lockstep::training::doctor {
namespace {

constexpr int n_rounds = 7;
constexpr core::Seconds names_limit{5};
constexpr core::Seconds meeting_limit{10};
constexpr core::Seconds making_limit{5};

double wall_clock() noexcept {
  std::timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Returns nothing if it resolves.
std::string look_up(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (error != 0) return fmt::format("{} ({})", name, gai_strerror(error));
  freeaddrinfo(found);
  return "";
}

/// Returns the path of a file made there; empty if none can be made.
std::string make_token(const std::string& folder) {
  std::string path = (std::filesystem::path{folder} / ".lockstep-doctor-XXXXXX").string();
  const core::Descriptor file{mkostemp(path.data(), O_CLOEXEC)};
  return file ? path : "";
}

}  // namespace

// File systems show files to other nodes late; listing the folder makes NFS ask the server.
bool await_file(const std::string& path, const core::Clock& clock) {
  const std::filesystem::path folder = std::filesystem::path{path}.parent_path();
  for (const core::Timer since{clock}; since.elapsed() < meeting_limit;) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return true;
    for (std::filesystem::directory_iterator entry{folder, error}; !error && entry != decltype(entry){};)
      entry.increment(error);
    clock.sleep({0.1});
  }
  return false;
}

Skew bound_skew(const std::vector<Round>& rounds) {
  Skew skew{-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  for (const Round& round : rounds) {
    skew.low = std::max(skew.low, round.read - round.returned);
    skew.high = std::min(skew.high, round.read - round.sent);
  }
  return skew;
}

std::vector<Skew> compare_clocks(const runtime::Communicator& world) {
  std::vector<std::vector<Round>> rounds(world.rank() == 0 ? static_cast<std::size_t>(world.n_ranks()) : 0);
  for (int i = 0; i < n_rounds; ++i) {
    world.barrier();
    const double sent = runtime::broadcast_value(world, wall_clock());
    const double mine = wall_clock();
    const std::vector<double> all = runtime::gather_values(world, std::span{&mine, 1});
    const double returned = wall_clock();
    for (std::size_t rank = 0; rank < all.size(); ++rank) rounds[rank].push_back({sent, all[rank], returned});
  }
  std::vector<Skew> skews;
  for (const std::vector<Round>& of_rank : rounds) skews.push_back(bound_skew(of_rank));
  return skews;
}

Resolved resolve(const std::vector<std::string>& names) {
  Asked<Resolved> asked{[names] {
    Resolved all{.n = static_cast<int>(names.size())};
    for (const std::string& name : names)
      if (std::string complaint = look_up(name); !complaint.empty()) all.unresolved.push_back(std::move(complaint));
    return all;
  }};
  return asked.within(names_limit).value_or(Resolved{});
}

std::string meet_in(const runtime::Communicator& world, const std::string& folder, bool looks) {
  std::string made;
  if (world.rank() == 0)
    made = Asked<std::string>{[folder] { return make_token(folder); }}.within(making_limit).value_or("");
  const std::string token = world.broadcast(made);
  std::string seen = "nothing to see";
  if (!token.empty() && looks) {
    Asked<bool> is_there{[token] { return await_file(token, core::real_clock()); }};
    seen = is_there.within({meeting_limit.value + 1}).value_or(false)
               ? "seen"
               : fmt::format("not seen within {:.0f} s", meeting_limit.value);
  }
  world.barrier();
  if (!made.empty()) static_cast<void>(Asked<int>{[made] { return unlink(made.c_str()); }}.within(making_limit));
  return seen;
}

}  // namespace lockstep::training::doctor
