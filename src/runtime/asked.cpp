#include "runtime/asked.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "core/descriptor.hpp"

namespace lockstep::runtime {
namespace {

constexpr const char* uri_variable = "LOCKSTEP_SIGNAL_URI";  // a name that no result records

// The program that tells keeps this open until it ends, because ranks may ask until then.
int told = -1;
// A rank keeps this as a global, because signal handlers cannot read the environment.
std::array<char, 64> note_path{};

constexpr const char* note_name = "lockstep-signal";

// The place in the note, after the signal.
constexpr off_t place_of_start = sizeof(int);
constexpr off_t place_of_exit = 2 * sizeof(int);

// On another node the same pid is another process, whose files are not ours.
bool is_note(const char* path) {
  std::array<char, 256> target{};
  const ssize_t n = readlink(path, target.data(), target.size());
  return n > 0 &&
         std::string_view{target.data(), static_cast<std::size_t>(n)}.starts_with(fmt::format("/memfd:{}", note_name));
}

}  // namespace

void prepare_to_tell_signal() {
  told = memfd_create(note_name, MFD_CLOEXEC);
  if (told >= 0) setenv(uri_variable, fmt::format("/proc/{}/fd/{}", getpid(), told).c_str(), 1);
}

void tell_signal(int signal) noexcept {
  if (told >= 0) static_cast<void>(!pwrite(told, &signal, sizeof signal, 0));
}

bool was_rank_started() noexcept {
  char is_started = 0;
  return told < 0 || (pread(told, &is_started, 1, place_of_start) == 1 && is_started != 0);
}

void find_place_to_tell() noexcept {
  const char* const place = std::getenv(uri_variable);
  const std::string_view text{place != nullptr ? place : ""};
  if (text.empty() || text.size() >= note_path.size() || !is_note(place)) return;
  *std::ranges::copy(text, note_path.begin()).out = '\0';
}

bool has_place_to_tell() noexcept { return note_path.front() != '\0'; }

void tell_start() noexcept {
  if (note_path.front() == '\0') return;
  const core::Descriptor file{open(note_path.data(), O_WRONLY | O_CLOEXEC)};
  if (file) static_cast<void>(!pwrite(file.get(), "s", 1, place_of_start));
}

bool tell_exit(int code) noexcept {
  if (code == 0 || note_path.front() == '\0') return true;
  const core::Descriptor file{open(note_path.data(), O_RDWR | O_CLOEXEC)};
  if (!file) return true;
  flock(file.get(), LOCK_EX);  // ranks may fail at the same time
  int first = 0;
  if (pread(file.get(), &first, sizeof first, place_of_exit) == sizeof first && first != 0) return false;
  return pwrite(file.get(), &code, sizeof code, place_of_exit) == sizeof code;
}

int told_exit() noexcept {
  int code = 0;
  return told >= 0 && pread(told, &code, sizeof code, place_of_exit) == sizeof code ? code : 0;
}

int told_signal() noexcept {
  if (note_path.front() == '\0') return 0;
  const int file = open(note_path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  int signal = 0;
  const bool is_told = read(file, &signal, sizeof signal) == sizeof signal;
  close(file);
  return is_told ? signal : 0;
}

}  // namespace lockstep::runtime
